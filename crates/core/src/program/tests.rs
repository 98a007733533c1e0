//! Recorded outputs, each with what must be read from it, and laws that hold for every program.
//!
//! `testdata/programs/NAME/NOTES` says which command printed each.

mod failures;
mod figures;
mod laws;
mod scripts;

use super::*;

/// A recorded run: standard output and standard error.
pub(super) struct Recorded {
    pub program: &'static Program,
    pub values: Values,
    pub stdout: &'static str,
    pub stderr: &'static str,
}

impl Recorded {
    pub fn read(&self) -> Result<Finding, Unreadable> {
        self.read_as(self.stdout)
    }

    /// With another standard output.
    pub fn read_as(&self, stdout: &str) -> Result<Finding, Unreadable> {
        let run = Output { stdout, stderr: self.stderr, usage: Usage::default() };
        (self.program.read)(&self.values, &Outputs { run, reference: None })
    }
}

pub(super) fn values(program: &str, given: &[(&str, &str)]) -> Values {
    Values::written(Program::named(program).unwrap(), given)
}

macro_rules! recorded {
    ($program:literal, $file:literal $(, $name:ident = $value:literal)*) => {
        $crate::program::tests::Recorded {
            program: $crate::program::Program::named($program).unwrap(),
            values: $crate::program::tests::values($program, &[$((stringify!($name), $value)),*]),
            stdout: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/programs/", $file, ".txt")),
            stderr: "",
        }
    };
}
pub(super) use recorded;

/// Recorded successes of every program whose output is read, for the laws.
pub(super) fn successes() -> Vec<Recorded> {
    vec![
        recorded!("sysbench-cpu", "sysbench/cpu", threads = "2"),
        recorded!(
            "sysbench-memory",
            "sysbench/memory-read",
            block_size = "1M",
            total_size = "2G",
            oper = "read",
            scope = "global"
        ),
        recorded!("sysbench-fileio", "sysbench/fileio-rndrw", threads = "2"),
        recorded!("sysbench-mutex", "sysbench/mutex", threads = "2"),
        recorded!("sysbench-threads", "sysbench/threads", threads = "2"),
        recorded!("hackbench", "hackbench/process", groups = "2"),
        recorded!("hackbench", "hackbench/old", groups = "15", form = "old"),
        recorded!("perf-messaging", "perf-messaging/process", groups = "2"),
        recorded!("netperf", "netperf/stream"),
        recorded!("netperf", "netperf/rr", test = "tcp_rr"),
        recorded!("netperf", "netperf/rr-keys", test = "tcp_rr"),
        recorded!("iperf3", "iperf3/stream", seconds = "1"),
        recorded!("sockperf", "sockperf/ping-pong"),
        recorded!("ab", "ab/plain", requests = "200", concurrency = "4"),
        recorded!("unixbench", "unixbench/ept-off"),
        recorded!("stress-ng", "stress-ng/vm"),
    ]
}
