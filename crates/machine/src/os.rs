//! The tests of [`vmtax_core::os`], measured on this machine.
//!
//! Each runs in a fresh process of this very program, started under a hidden argument: small, with one thread and no
//! memory of ours, so that `fork` and `exec` cost what they cost a small program. A timer ends the loop, so that the loop
//! holds no clock; the rate is over the time it really ran, on the monotonic clock, where UnixBench divides by the time
//! asked for.
//!
//! Other differences from UnixBench: `exec` replaces this program by itself, with Rust's start instead of a small C
//! program's (its rate compares between places, and with UnixBench's only in size); before a file is copied it is
//! written and read once, not for two seconds each. As in UnixBench the two processes of `context` run wherever the kernel
//! puts them, on one CPU or two: rates of 26,000 and 120,000 a second were seen within two minutes.

mod calls;
mod exec;
mod files;
mod pipes;
mod spawn;
mod timer;

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, Write},
    path::Path,
    process::ExitCode,
    sync::atomic::AtomicBool,
    time::Duration,
};

use vmtax_core::os::Test;

use crate::process::{self, Bounds, Command, End};

/// The hidden argument that makes a program run a test.
const ARGUMENT: &str = "__os";

/// How often a test did what it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Count {
    /// [`Test::operation`]s.
    pub operations: u64,
    /// In this time.
    pub elapsed: Duration,
}

impl Count {
    /// Operations a second.
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64()
    }
}

/// Why a test gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its process could not be run.
    #[error(transparent)]
    Process(#[from] process::Error),
    /// Its process failed.
    #[error("`{test}` ended as {end:?}, saying `{said}`")]
    Failed {
        /// The test.
        test: Test,
        /// How its process ended.
        end: End,
        /// What it said.
        said: String,
    },
    /// Not one operation was done.
    #[error("`{test}` did nothing in {:.1} s: more time", elapsed.as_secs_f64())]
    Nothing {
        /// The test.
        test: Test,
        /// The time it had.
        elapsed: Duration,
    },
}

/// Runs a test for `time`, at least a hundredth of a second, with its files in `directory`. The program that calls this
/// has [`crate::dispatch`] as the first statement of its `main`.
pub fn run(test: Test, time: Duration, directory: &Path, stop: &AtomicBool) -> Result<Count, Error> {
    let microseconds = time.max(Duration::from_millis(10)).as_micros();
    let words = ["/proc/self/exe", ARGUMENT, test.name(), &microseconds.to_string()].map(str::to_owned);
    let command = Command { words: &words, directory, open_files: 0 };
    let ended = process::run(&command, &Bounds::within(time * 2 + Duration::from_secs(60)), stop)?;
    let said = String::from_utf8_lossy(&ended.stdout);
    match (ended.end, read(&said)) {
        (End::Code(0), Some(Count { operations: 0, elapsed })) => Err(Error::Nothing { test, elapsed }),
        (End::Code(0), Some(count)) => Ok(count),
        (end, _) => {
            let said = String::from_utf8_lossy(&ended.stderr).lines().last().unwrap_or("nothing").to_owned();
            Err(Error::Failed { test, end, said })
        }
    }
}

/// Runs a test if this process was started for one; part of [`crate::dispatch`].
pub fn dispatch() -> Option<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    if arguments.next()? != OsStr::new(ARGUMENT) {
        return None;
    }
    let arguments: Vec<String> = arguments.map(OsString::into_string).collect::<Result<_, _>>().ok()?;
    let [test, microseconds, state @ ..] = arguments.as_slice() else { return None };
    let (test, time) = (Test::named(test)?, Duration::from_micros(microseconds.parse().ok()?));
    let count = match test {
        Test::Syscall => calls::count(time),
        Test::Exec => exec::count(time, state),
        Test::Spawn => spawn::count(time),
        Test::Pipe => pipes::through_one(time),
        Test::Context => pipes::between_two(time),
        Test::FileCopy(buffer) => files::copied(buffer, time),
    };
    let told = count.and_then(|count| write!(io::stdout(), "{}", said(&count)));
    Some(match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    })
}

fn said(count: &Count) -> String {
    format!("{} {}\n", count.operations, count.elapsed.as_nanos())
}

fn read(said: &str) -> Option<Count> {
    let (operations, nanoseconds) = said.strip_suffix('\n')?.split_once(' ')?;
    let elapsed = Duration::from_nanos(nanoseconds.parse().ok()?);
    (elapsed > Duration::ZERO).then_some(Count { operations: operations.parse().ok()?, elapsed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_as_it_is_said() {
        let count = Count { operations: 1_000, elapsed: Duration::from_millis(500) };
        assert_eq!((read(&said(&count)), count.rate()), (Some(count), 2_000.0));
        for nothing in ["", "1000", "1000 5", "x 5\n", "1000 0\n"] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }
}
