//! A program that replaces itself by itself, with its count and the time of the first as arguments.
//!
//! No timer: it would have to be set again in each, and the handler with it. Each looks at the clock instead, as
//! UnixBench's does; the clock is the monotonic one, which means the same in every process.

use std::{env, io, os::unix::process::CommandExt, process::Command, time::Duration};

use rustix::time::{ClockId, clock_gettime};

use super::{ARGUMENT, Count};

/// `state` is empty in the first process; then operations so far, and nanoseconds of the clock at the first.
pub(super) fn count(time: Duration, state: &[String]) -> io::Result<Count> {
    let now = now();
    let (operations, begin) = match state {
        [] => (0, now),
        [operations, begin] => (parse(operations)?, Duration::from_nanos(parse(begin)?)),
        _ => return Err(io::Error::other("exec: expected a count and a time")),
    };
    let elapsed = now.saturating_sub(begin);
    if elapsed >= time {
        return Ok(Count { operations, elapsed });
    }
    let test = vmtax_core::os::Test::Exec.name();
    let state = [time.as_micros(), u128::from(operations + 1), begin.as_nanos()].map(|number| number.to_string());
    let program = env::args_os().next().unwrap_or_else(|| "/proc/self/exe".into());
    Err(Command::new("/proc/self/exe").arg0(program).arg(ARGUMENT).arg(test).args(state).exec())
}

fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn parse(number: &str) -> io::Result<u64> {
    number.parse().map_err(io::Error::other)
}
