//! The `vmtax` command: reads the command line, runs one subcommand, and turns what comes of it into text and an exit code.
//!
//! Exit codes: 0 success, 1 when something measured failed, 2 for wrong usage or a host that cannot do what was asked
//! (nothing was measured), 130 and the like when a signal ended it (128 and its number).

use std::{io::Write, process::ExitCode};

use clap::Parser;

mod agent;
mod cli;
mod command;
mod guest;
mod image;
mod lab;
mod output;
mod program;
mod progress;
mod signal;
mod store;

fn main() -> ExitCode {
    if let Some(code) = vmtax_machine::dispatch().or_else(agent::dispatch).or_else(guest::keeper::dispatch) {
        return code;
    }
    match command::run(cli::Cli::parse().command) {
        Ok(code) => code,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{}", output::explained(&error));
            if command::is_refusal(&error) { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
