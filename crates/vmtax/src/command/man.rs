//! `vmtax man`: the manual page, from the same definitions as the command line.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::{cli::Cli, output};

/// Prints the page of `vmtax`, and after it those of the subcommands.
pub fn run() -> anyhow::Result<ExitCode> {
    let mut command = Cli::command();
    command.build();
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        Man::new(sub.clone()).render(&mut page)?;
    }
    output::print(&String::from_utf8(page)?)?;
    Ok(ExitCode::SUCCESS)
}
