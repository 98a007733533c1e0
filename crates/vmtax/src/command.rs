//! The subcommands, one file each, and the difference between "I will not" and "it went wrong".

use std::{path::PathBuf, process::ExitCode};

use vmtax_core::plan::Diagnostics;
use vmtax_machine::knob;

use crate::{
    cli::{Command, Results},
    guest::GuestError,
    image::ImageError,
    store::{Store, StoreError},
};

mod bloat;
mod compare;
mod completions;
mod doctor;
mod export;
mod hand;
mod image;
mod man;
mod matrix;
mod reserve;
mod restore;
mod rights;
mod run;
mod sandbox;
mod show;
mod studies;
mod touch;
mod translate;
mod walk;

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

/// Something went wrong after measuring had begun.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Late(pub &'static str);

/// Runs one subcommand.
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Matrix(args) => matrix::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Studies(args) => studies::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Touch(args) => touch::run(&args),
        Command::Walk(args) => walk::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Reserve(args) => reserve::run(&args),
        Command::Rights(args) => rights::run(&args),
        Command::Bloat(args) => bloat::run(&args),
        Command::Image(args) => image::run(&args),
        Command::Sandbox(args) => sandbox::run(&args),
        Command::Translate(args) => translate::run(&args),
        Command::Restore => restore::run(),
        Command::Completions { shell } => completions::run(shell),
        Command::Man => man::run(),
    }
}

/// Whether an error means that nothing was done: exit code 2.
pub fn is_refusal(error: &anyhow::Error) -> bool {
    let refuses = |cause: &(dyn std::error::Error + 'static)| {
        cause.is::<Refusal>()
            || cause.is::<StoreError>()
            || cause.is::<knob::Error>()
            || cause.is::<Diagnostics>()
            || cause.is::<ImageError>()
            || cause.downcast_ref::<GuestError>().is_some_and(GuestError::is_refusal)
    };
    !error.is::<Late>() && error.chain().any(refuses)
}

/// The results file that is meant. SQLite says of a directory that there is a disk error.
fn results_file(results: &Results) -> anyhow::Result<PathBuf> {
    let path = results.db.clone().map_or_else(Store::default_path, Ok)?;
    if path.is_dir() {
        let file = path.join("results.db");
        return Err(Refusal::new(
            format!("cannot keep results in {}: it is a directory", path.display()),
            format!("name a file: --db {}", file.display()),
        )
        .into());
    }
    Ok(path)
}
