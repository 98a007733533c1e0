//! What the operating system does for programs, as UnixBench's tests define it: system calls, processes, pipes, files.
//!
//! The tests themselves are `vmtax`'s own and need nothing installed. Each is related to the rate of UnixBench's baseline
//! system; their mean is over those that were run, and is no UnixBench index: that has twelve tests, of UnixBench's own
//! programs, repeated, the worst third left out.

use std::fmt;

use crate::{
    experiment::{Better, Metric},
    program::unixbench::{BASELINES, Baseline, index::geometric_mean},
    units::{Bytes, KIB},
};

/// A test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    /// Five system calls: `dup`, `close`, `getpid`, `getuid`, `umask`.
    Syscall,
    /// A program replaced by itself.
    Exec,
    /// A child made, ended at once, and waited for.
    Spawn,
    /// 512 bytes written to a pipe and read back by the same process.
    Pipe,
    /// A number sent to another process and back, over two pipes: two switches.
    Context,
    /// A file copied through a buffer.
    FileCopy(Buffer),
}

/// The buffer of a file copy, and with it the size of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Buffer {
    /// 256 bytes, and a file of 500 KiB.
    B256,
    /// 1 KiB, and a file of 2,000 KiB.
    B1024,
    /// 4 KiB, and a file of 8,000 KiB.
    B4096,
}

impl Test {
    /// The metric that its trials lead with: operations a second.
    pub const RATE: &'static str = "ops_per_second";

    /// All of them.
    pub const ALL: [Test; 8] = [
        Test::Syscall,
        Test::Exec,
        Test::Spawn,
        Test::Pipe,
        Test::Context,
        Test::FileCopy(Buffer::B256),
        Test::FileCopy(Buffer::B1024),
        Test::FileCopy(Buffer::B4096),
    ];

    /// Its name in plans and results.
    pub const fn name(self) -> &'static str {
        match self {
            Test::Syscall => "syscall",
            Test::Exec => "exec",
            Test::Spawn => "spawn",
            Test::Pipe => "pipe",
            Test::Context => "context",
            Test::FileCopy(Buffer::B256) => "filecopy-256",
            Test::FileCopy(Buffer::B1024) => "filecopy-1024",
            Test::FileCopy(Buffer::B4096) => "filecopy-4096",
        }
    }

    /// The test of this name.
    pub fn named(name: &str) -> Option<Test> {
        Test::ALL.into_iter().find(|test| test.name() == name)
    }

    /// What one operation is, in the plural.
    pub const fn operation(self) -> &'static str {
        match self {
            Test::Syscall => "rounds of five system calls",
            Test::Exec => "programs replaced by themselves",
            Test::Spawn => "processes made and waited for",
            Test::Pipe => "512 bytes through a pipe",
            Test::Context => "round trips to another process",
            Test::FileCopy(_) => "KiB copied",
        }
    }

    /// The test of UnixBench that it follows, with the rate of the baseline system.
    pub fn baseline(self) -> &'static Baseline {
        let key = match self {
            Test::Syscall => "syscall",
            Test::Exec => "execl",
            Test::Spawn => "spawn",
            Test::Pipe => "pipe",
            Test::Context => "context1",
            Test::FileCopy(Buffer::B256) => "fsbuffer",
            Test::FileCopy(Buffer::B1024) => "fstime",
            Test::FileCopy(Buffer::B4096) => "fsdisk",
        };
        Baseline::named(key).expect("every key is one of the table; a test looks them all up")
    }

    /// Its metrics: the rate, and how many times that of UnixBench's baseline system it is.
    pub fn metrics(self, rate: f64) -> Vec<Metric> {
        let unit = match self {
            Test::FileCopy(_) => "KiB/s",
            Test::Syscall | Test::Exec | Test::Spawn | Test::Pipe | Test::Context => "ops/s",
        };
        let metric = |name: &str, value, unit: &str| Metric {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
            better: Better::Higher,
        };
        vec![metric(Test::RATE, rate, unit), metric("unixbench_ratio", self.baseline().ratio(rate), "×")]
    }
}

impl Buffer {
    /// Its size.
    pub const fn bytes(self) -> Bytes {
        match self {
            Buffer::B256 => Bytes(256),
            Buffer::B1024 => Bytes(KIB),
            Buffer::B4096 => Bytes(4 * KIB),
        }
    }

    /// The size of the file that is copied.
    pub const fn file(self) -> Bytes {
        match self {
            Buffer::B256 => Bytes(500 * KIB),
            Buffer::B1024 => Bytes(2000 * KIB),
            Buffer::B4096 => Bytes(8000 * KIB),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The mean over tests that were run, named as what it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Mean {
    /// Geometric mean of the ratios to UnixBench's baseline system.
    pub ratio: f64,
    /// The tests it is over.
    pub tests: Vec<Test>,
}

impl Mean {
    /// Over rates in operations a second, at least one, all above 0; each test once.
    pub fn of(rates: &[(Test, f64)]) -> Option<Mean> {
        let ratio = geometric_mean(rates.iter().map(|(test, rate)| test.baseline().ratio(*rate)))?;
        Some(Mean { ratio, tests: rates.iter().map(|(test, _)| *test).collect() })
    }
}

impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (run, all) = (self.tests.len(), BASELINES.len());
        write!(
            f,
            "{:.1} times UnixBench's baseline system: geometric mean of {run} of its {all} tests, run by vmtax's own \
             programs; not a UnixBench index",
            self.ratio
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_follows_one_of_unixbench() {
        for (at, test) in Test::ALL.into_iter().enumerate() {
            assert_eq!(Test::named(test.name()), Some(test));
            assert!(Test::ALL[..at].iter().all(|other| other.baseline() != test.baseline()), "{test}");
        }
        let copies = [Buffer::B256, Buffer::B1024, Buffer::B4096].map(|buffer| {
            let name = Test::FileCopy(buffer).baseline().name;
            let said = format!("File Copy {} bufsize {} maxblocks", buffer.bytes().0, buffer.file().0 / KIB);
            (name == said, said)
        });
        assert!(copies.iter().all(|(same, _)| *same), "{copies:?}");
    }

    #[test]
    fn a_rate_is_related_to_the_baseline_system() {
        // The rates published without EPT: 94.7 and 47.4 as indexes, ten times the ratios.
        let metrics = Test::Exec.metrics(407.1);
        assert_eq!((metrics[0].value, format!("{:.2}", metrics[1].value)), (407.1, "9.47".to_owned()));
        let mean = Mean::of(&[(Test::Exec, 407.1), (Test::Syscall, 71_169.6)]).unwrap();
        assert_eq!(
            mean.to_string(),
            "6.7 times UnixBench's baseline system: geometric mean of 2 of its 12 tests, run by vmtax's own programs; \
             not a UnixBench index"
        );
        assert_eq!(Mean::of(&[]), None);
        assert_eq!(Mean::of(&[(Test::Pipe, 0.0)]), None);
    }
}
