//! The subcommands, one file each, and the difference between "I will not" and "it went wrong".

use std::process::ExitCode;

use vmtax_machine::knob;

use crate::{cli::Command, store::StoreError};

mod completions;
mod doctor;
mod man;
mod matrix;
mod restore;
mod show;

/// A wrong argument, or a host that cannot do what was asked. Nothing was measured.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    message: String,
    /// The way out.
    pub help: Option<String>,
}

impl Refusal {
    /// What is wrong, and the way out.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Refusal { message: message.into(), help: Some(help.into()) }
    }
}

/// Runs one subcommand.
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Matrix(args) => matrix::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Restore => restore::run(),
        Command::Completions { shell } => completions::run(shell),
        Command::Man => man::run(),
    }
}

/// Whether an error means that nothing was done: exit code 2.
pub fn is_refusal(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<Refusal>() || cause.is::<StoreError>() || cause.is::<knob::Error>())
}
