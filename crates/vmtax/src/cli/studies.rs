//! The arguments of `vmtax studies`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct StudiesArgs {
    #[command(subcommand)]
    pub command: Option<StudiesCommand>,
}

#[derive(Debug, Subcommand)]
pub enum StudiesCommand {
    /// Its plan in short, and what was published, with how that is judged
    Show {
        /// The name of a study
        study: String,
    },
}
