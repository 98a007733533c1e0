//! Jobs that are processes of their own, on this host or in a guest.

use std::{sync::Arc, time::Duration};

use crate::{
    os::Test,
    program::{Program, Script, Site, Unfit, Values, command::Command},
};

/// A test of what an operating system does for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Os {
    /// Which.
    pub test: Test,
    /// How long it runs.
    pub time: Duration,
    /// The CPUs it may run on: with more than one, its processes run side by side.
    pub vcpus: u32,
}

/// A benchmark program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Benchmark {
    /// Which.
    pub program: &'static Program,
    /// Its parameters.
    pub values: Values,
    /// The source tree in which it runs, where one is given.
    pub tree: Option<String>,
}

/// A program of the plan's author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// What is run, and its metrics.
    pub command: Arc<Command>,
    /// How long it may take.
    pub timeout: Duration,
}

/// Seconds taken for programs of which only the machine knows how long they run.
pub(super) const UNKNOWN: f64 = 30.0;

impl Benchmark {
    /// What is run, wherever that is; or why these parameters do not fit one another.
    pub fn script(&self) -> Result<Script, Unfit> {
        let (directory, host) = ("/tmp".to_owned(), "127.0.0.1".to_owned());
        (self.program.script)(&self.values, &Site { directory, host, port: 1, tree: self.tree.clone() })
    }

    /// Whether it runs in a source tree, and was given none.
    pub fn lacks_tree(&self) -> bool {
        self.tree.is_none() && self.program.runs_in_tree()
    }

    pub(super) fn expected_seconds(&self) -> f64 {
        let Ok(script) = self.script() else { return UNKNOWN };
        let runs = if script.reference.is_some() { 2.0 } else { 1.0 };
        script.expected.map_or(UNKNOWN, |time| time.as_secs_f64() * runs)
    }
}
