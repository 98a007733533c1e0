//! What is run for one trial of a program, and what it needs of the machine around it.

use std::time::Duration;

use crate::units::{Bytes, PageSize};

/// Where a program runs and whom it talks to: known when it is run, not when the plan is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The private directory it runs in, absolute.
    pub directory: String,
    /// The address of the machine under test, as a client sees it.
    pub host: String,
    /// The port of its server.
    pub port: u16,
    /// A source tree, for what runs in one.
    pub tree: Option<String>,
}

/// What is run for one trial. Every command is a list of words: the first is the program, no shell is involved.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Script {
    /// Runs on the machine under test as long as the others do.
    pub server: Option<Server>,
    /// Run before, in this order; their output is not read.
    pub prepare: Vec<Vec<String>>,
    /// Run and subtracted.
    pub reference: Option<Vec<String>>,
    /// What is measured.
    pub run: Vec<String>,
    /// Run after, also where the measurement failed.
    pub cleanup: Vec<Vec<String>>,
    /// How long the measured run should take by its own parameters; none where only the machine knows.
    pub expected: Option<Duration>,
    /// Files it opens at once, at most; 0 where that is few.
    pub open_files: u64,
    /// What it writes into its directory.
    pub disk: Bytes,
    /// Huge pages it takes from the pool of the default size.
    pub huge: Option<Huge>,
}

/// The other end of a network benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its command; stays in the foreground until it is killed.
    pub command: Vec<String>,
    /// It is ready when it listens on this TCP port.
    pub port: u16,
}

/// Shared memory in huge pages: by `shmget`, so from the pool of the default size, and only for root, holders of
/// CAP_IPC_LOCK and members of the group in `vm.hugetlb_shm_group`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Huge {
    /// Segments.
    pub buffers: u64,
    /// What each asks for.
    pub bytes: Bytes,
}

impl Huge {
    /// The pages that must be free: each segment takes whole ones.
    pub fn pages(&self, default: PageSize) -> u64 {
        self.buffers * self.bytes.0.div_ceil(default.bytes())
    }
}

/// A command of words that need no quotes.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
