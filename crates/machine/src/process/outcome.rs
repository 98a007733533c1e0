//! How a program ended, and why it may not have begun.

use std::{io, os::unix::process::ExitStatusExt, process::ExitStatus};

use vmtax_core::program::Usage;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Code(i32),
    /// By this signal, which was not ours.
    Signal(i32),
    /// It took longer than it may, and was killed.
    Hung,
    /// It printed more than it may, and was killed.
    Flooded,
    /// It left less of the disk free than it must, and was killed.
    DiskFull,
    /// A stop was asked for, and it was killed.
    Stopped,
}

/// What it left behind.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub end: End,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it printed on its other output.
    pub stderr: Vec<u8>,
    /// What it took, with all it waited for.
    pub usage: Usage,
}

/// Why a program was not run, or not to an end that is known.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such program.
    #[error("`{program}` is not installed")]
    Missing {
        /// Its name.
        program: String,
    },
    /// It needs more open files than this user may have.
    #[error("`{program}` needs {needed} open files, and the limit is {limit}: ulimit -n {needed}, as root")]
    OpenFiles {
        /// Its name.
        program: String,
        /// Files it opens.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// It could not be started.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// Its name.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// It could not be waited for.
    #[error("cannot wait for a program: {0}")]
    Wait(io::Error),
}

pub(super) fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Code(code),
        (None, signal) => End::Signal(signal.unwrap_or(0)),
    }
}
