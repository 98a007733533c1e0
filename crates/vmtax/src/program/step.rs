//! One command of a script.

use std::{path::Path, sync::atomic::AtomicBool, time::Duration};

use vmtax_core::program::{Output, Unreadable, Usage};
use vmtax_machine::process::{self, Bounds, End};

use super::Failure;

/// A command, and its bounds.
pub(super) struct Step<'a> {
    pub words: &'a [String],
    pub directory: &'a Path,
    pub open_files: u64,
    pub time: Duration,
}

/// What a command that ended by itself printed.
#[derive(Debug)]
pub(super) struct Text {
    command: String,
    code: i32,
    pub stdout: String,
    pub stderr: String,
    pub usage: Usage,
}

impl Step<'_> {
    /// Runs it to an end of its own; its exit code may tell of a failure.
    pub fn run(&self, stop: &AtomicBool) -> Result<Text, Failure> {
        let Step { words, directory, open_files, time } = *self;
        let ended = process::run(&process::Command { words, directory, open_files }, &Bounds::within(time), stop)?;
        let command = words.join(" ");
        let (stdout, stderr) = (text(&ended.stdout), text(&ended.stderr));
        let last = || last_line(&[&stderr, &stdout].map(String::clone));
        match ended.end {
            End::Code(code) => Ok(Text { command, code, stdout, stderr, usage: ended.usage }),
            End::Signal(signal) => Err(Failure::Signal { command, signal, last: last() }),
            End::Hung => Err(Failure::Hung { command, time, last: last() }),
            End::Flooded => Err(Failure::Flooded { command, last: last() }),
            End::DiskFull => Err(Failure::DiskFull { command }),
            End::Stopped => Err(Failure::Stopped),
        }
    }
}

impl Text {
    pub fn output(&self) -> Output<'_> {
        Output { stdout: &self.stdout, stderr: &self.stderr, usage: self.usage }
    }

    /// Itself, if its exit code says so.
    pub fn success(self) -> Result<Text, Failure> {
        match self.code {
            0 => Ok(self),
            code => Err(Failure::Code { last: self.last(), command: self.command, code }),
        }
    }

    /// What was read of it, unless its exit code says that it failed: then what it says itself, or else its last line.
    pub fn explain<T>(&self, read: Result<T, Unreadable>) -> Result<T, Failure> {
        match (read, self.code) {
            (Ok(value), 0) => Ok(value),
            (Err(error), 0) => Err(error.into()),
            (Err(error @ Unreadable::Failed { .. }), _) => Err(error.into()),
            (Ok(_) | Err(_), code) => Err(Failure::Code { command: self.command.clone(), code, last: self.last() }),
        }
    }

    fn last(&self) -> String {
        last_line(&[self.stderr.clone(), self.stdout.clone()])
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The last line that says something, of the first output that does; short, and harmless to a terminal.
pub(super) fn last_line(outputs: &[String]) -> String {
    const MOST: usize = 100;
    let last = outputs.iter().find_map(|output| output.lines().rev().find(|line| !line.trim().is_empty()));
    let clean = |c: char| if c.is_control() { '?' } else { c };
    last.map_or("nothing".to_owned(), |line| line.trim().chars().take(MOST).map(clean).collect())
}
