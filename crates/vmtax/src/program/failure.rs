//! Why a trial of a program gave nothing, with the way out.

use std::{io, path::PathBuf, time::Duration};

use vmtax_core::{
    program::{Needs, Unfit, Unreadable},
    units::Bytes,
};
use vmtax_machine::process;

/// Why a trial of a program gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It is not installed.
    #[error("`{program}` is not installed: {remedy}")]
    Missing {
        /// Its name.
        program: String,
        /// What installs it.
        remedy: String,
    },
    /// Its parameters do not fit one another.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// What it printed cannot be used.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// It could not be started.
    #[error(transparent)]
    Process(process::Error),
    /// It did not end.
    #[error("`{command}` did not end within {}s and was killed, last saying `{last}`: does it run by hand?", time.as_secs_f64())]
    Hung {
        /// What was run.
        command: String,
        /// The time it had.
        time: Duration,
        /// Its last line.
        last: String,
    },
    /// It failed.
    #[error("`{command}` ended with exit code {code}, last saying `{last}`: run it by hand")]
    Code {
        /// What was run.
        command: String,
        /// Its exit code.
        code: i32,
        /// Its last line.
        last: String,
    },
    /// It was killed.
    #[error("`{command}` was killed by signal {signal}, last saying `{last}`{}", signal_help(*signal))]
    Signal {
        /// What was run.
        command: String,
        /// The signal.
        signal: i32,
        /// Its last line.
        last: String,
    },
    /// It printed without end.
    #[error("`{command}` printed more than 16 MiB and was killed, last saying `{last}`: make it quieter")]
    Flooded {
        /// What was run.
        command: String,
        /// Its last line.
        last: String,
    },
    /// It filled the disk.
    #[error("`{command}` filled the disk and was killed: smaller files, or TMPDIR on a larger disk")]
    DiskFull {
        /// What was run.
        command: String,
    },
    /// There is too little disk for what it writes.
    #[error("{} needs {needed}, and {free} are free: smaller files, or TMPDIR on a larger disk", directory.display())]
    Room {
        /// What it writes, and what must stay free.
        needed: Bytes,
        /// What is free.
        free: Bytes,
        /// Where.
        directory: PathBuf,
    },
    /// Its server ended.
    #[error("the server `{command}` ended, last saying `{last}`: is its port taken?")]
    Server {
        /// What was run.
        command: String,
        /// Its last line.
        last: String,
    },
    /// Its server does not listen.
    #[error("the server `{command}` does not listen on port {port}: run it by hand")]
    Deaf {
        /// What was run.
        command: String,
        /// The port.
        port: u16,
    },
    /// The private directory could not be made, or not be removed.
    #[error("the private directory of a program: {0}; set TMPDIR to a directory that can be written to")]
    Directory(io::Error),
    /// A signal ended the run.
    #[error("stopped")]
    Stopped,
}

impl From<process::Error> for Failure {
    fn from(error: process::Error) -> Failure {
        match error {
            process::Error::Missing { program } => {
                let remedy = "install it, or put it in PATH".to_owned();
                Failure::Missing { program, remedy }
            }
            error @ (process::Error::OpenFiles { .. } | process::Error::Start { .. } | process::Error::Wait(_)) => {
                Failure::Process(error)
            }
        }
    }
}

impl Failure {
    /// Names the package where it was this program that is missing.
    pub(super) fn with_remedy(self, needs: &Needs) -> Failure {
        match self {
            Failure::Missing { program, .. } if program == needs.program => {
                Failure::Missing { program, remedy: needs.remedy() }
            }
            other => other,
        }
    }
}

const SIGKILL: i32 = 9;

fn signal_help(signal: i32) -> &'static str {
    if signal == SIGKILL { ": was memory short? (dmesg)" } else { ": run it by hand" }
}
