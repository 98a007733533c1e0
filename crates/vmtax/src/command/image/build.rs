//! `vmtax image build`: a root file system with programs, made or found.

use std::{fs, process::ExitCode};

use vmtax_core::units::MIB;

use super::Refusal;
use crate::{
    cli::BuildArgs,
    image::{
        build::{self, ALWAYS, Origin},
        cache::Kept,
    },
    output,
};

/// Makes it, unless it is there, and says what is in it.
pub fn run(args: &BuildArgs) -> anyhow::Result<ExitCode> {
    let origin = match &args.from {
        Some(path) => Origin::at(path)?,
        None => Origin::packages(&args.include),
    };
    let cache = Kept::Root.place().ok_or_else(|| {
        Refusal::new("cannot keep an image: there is no cache directory", "set HOME or XDG_CACHE_HOME")
    })?;
    let root = build::build(&origin, &cache, &args.name)?;
    let packages = root.packages()?;
    let is_chief = |line: &&String| line.split(' ').next().is_some_and(|name| ALWAYS.contains(&name));
    let chief: Vec<&str> = packages.iter().filter(is_chief).map(String::as_str).collect();
    output::print(&format!(
        "image      {}\ndirectory  {}\ndisk       {:.1} MiB\npackages   {}\n",
        args.name,
        root.directory().display(),
        fs::metadata(root.disk())?.len() as f64 / MIB as f64,
        [&[&*format!("{} in all", packages.len())], &chief[..]].concat().join("\n           "),
    ))?;
    Ok(ExitCode::SUCCESS)
}
