//! `vmtax show [RUN]`: prints a kept run again.

use std::process::ExitCode;

use vmtax_core::run::Run;
use vmtax_report::{export, matrix};

use super::Refusal;
use crate::{
    cli::{Form, ShowArgs},
    output,
    store::Store,
};

/// Loads the run and prints it.
pub fn run(args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let path = args.results.db.clone().map_or_else(Store::default_path, Ok)?;
    let store = Store::open_to_read(&path)?;
    let id = match &args.run {
        Some(id) => id.clone(),
        None => store
            .latest()?
            .ok_or_else(|| Refusal::new(format!("{} holds no run", path.display()), "vmtax matrix makes one"))?,
    };
    print(&store.load(&id)?, &args.form)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a run in the form asked for.
pub fn print(run: &Run, form: &Form) -> anyhow::Result<()> {
    let text = match form {
        Form { json: true, .. } => export::json(run)?,
        Form { csv: true, .. } => export::csv(run)?,
        Form { .. } => matrix::text(run)?,
    };
    Ok(output::print(&text)?)
}
