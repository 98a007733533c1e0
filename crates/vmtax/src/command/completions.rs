//! `vmtax completions SHELL`: from the same definitions as the command line.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{cli::Cli, output};

/// Prints the script.
pub fn run(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "vmtax", &mut script);
    output::print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}
