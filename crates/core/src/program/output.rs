//! What a program left behind: its output, and what it took of the machine.

use std::time::Duration;

/// What one process, with all the children it waited for, took: as `wait4` reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// From its start to its end.
    pub elapsed: Duration,
    /// In user mode.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
    /// Times it waited for something: what kernbench calls sleeps.
    pub voluntary_switches: u64,
    /// Times the kernel took the CPU away: what kernbench calls context switches.
    pub involuntary_switches: u64,
}

/// What one run printed and took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Output<'a> {
    /// Standard output; bytes that are no UTF-8 replaced.
    pub stdout: &'a str,
    /// Standard error, likewise.
    pub stderr: &'a str,
    /// What it took.
    pub usage: Usage,
}

/// What the runs of a [`Script`](super::Script) gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outputs<'a> {
    /// The measured run.
    pub run: Output<'a>,
    /// The run that is subtracted, where the script has one.
    pub reference: Option<Output<'a>>,
}

impl<'a> Outputs<'a> {
    /// A run that printed this, and nothing else is known about.
    pub fn printed(stdout: &'a str) -> Outputs<'a> {
        Outputs { run: Output { stdout, ..Output::default() }, reference: None }
    }
}
