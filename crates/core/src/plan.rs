//! An experiment, as its author writes it: factors with levels, workloads, exclusions, a baseline, replication.
//!
//! [`Plan::parse`] reads it from TOML and answers a wrong one with [`Diagnostics`]: what it returns can be run as it
//! stands. Which settings follow from it is in [`expand`](Plan::cells), when each is measured in [`schedule`].
//!
//! ```toml
//! title = "Walking small and huge pages"
//!
//! [factors]
//! host = ["4k", "2m"]
//! stride = [64, "4K", "2M"]
//!
//! [[workload]]
//! probe = "walk"          # name = "walk" unless another is given
//! size = "128M"           # a literal; "$size" would be the factor's level
//!                         # `stride` follows the factor of its name, as "$stride" would
//! [[workload]]
//! program = "sysbench-cpu" # one of [`PROGRAMS`](crate::program::PROGRAMS), with parameters of its own
//! seconds = 5
//!                         # `tree = "/path"` for those that run in a source tree: kernbench, unixbench
//!
//! [[workload]]
//! command = ["redis-benchmark", "-q", "-t", "get"]   # no shell; killed after `timeout = 3600` seconds
//! metric = [{ name = "gets", unit = "ops/s", better = "higher", regex = 'GET: ([0-9.]+)' }]
//!                         # or `json = "/path"`: where the number stands in the one document that is printed
//!
//! [[exclude]]             # any of the levels listed; `workload = "walk"` confines it to one
//! host = "2m"
//! stride = 64
//!
//! [baseline]              # one setting of each workload; without it, the first that is not excluded
//! host = "4k"
//! stride = 64
//!
//! [replication]
//! blocks = 7              # or: target = "2%", budget = "10m"; or: blocks = 7, budget = "10m", whichever ends first
//! seed = 42               # drawn by the runner where it is missing
//! retries = 1             # boots of a guest for a trial after one that hung or died; 1 unless another is given
//! ```
//!
//! # Where a factor does not apply
//! A setting in which a factor means nothing is without it ([`Scope`](crate::factor::Scope)): native settings have no
//! `guest`, and are measured once for all its levels; a workload has the levels of `stride` only if one of its
//! parameters follows them.

mod check;
pub(crate) mod diagnostic;
mod expand;
mod guest;
mod job;
pub(crate) mod read;
pub mod schedule;
mod setting;
#[cfg(test)]
mod tests;
mod work;

use std::{sync::Arc, time::Duration};

pub use diagnostic::{Diagnostic, Diagnostics};
pub use guest::{Accel, Guest, Vhost};
pub use job::{Benchmark, Bloat, Compact, Job, Os, Own, Reserve, Sweep, Touch, Walk};
pub use setting::{Cell, Setting};
pub use work::{Ground, KINDS, Kind, Parameter, Task};

use crate::{
    factor::{Factor, Level},
    program::command::Command,
};

/// An experiment that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What it is about; empty where the author left it out.
    pub title: String,
    /// What is varied, in the order of [`FACTORS`](crate::factor::FACTORS).
    pub factors: Vec<Varied>,
    /// What is run, at least one, in the author's order; names differ.
    pub workloads: Vec<Workload>,
    /// What is left out.
    pub exclusions: Vec<Exclusion>,
    /// The levels that tell the baseline, where the author named them.
    pub baseline: Option<Setting>,
    /// How often everything is measured.
    pub replication: Replication,
    /// How often a guest that hangs or dies is booted again for the same trial.
    pub retries: u32,
    /// What orders and layouts follow from; the runner draws one, and keeps it, where the author gave none.
    pub seed: Option<u64>,
}

/// A factor with the levels it takes in a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Varied {
    /// The factor.
    pub factor: &'static Factor,
    /// Its levels, at least one, each once, in the author's order.
    pub levels: Vec<Level>,
}

/// Something to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// Its name in results.
    pub name: String,
    /// What it is.
    pub kind: &'static Kind,
    /// Every parameter of its kind, in the order of [`Kind::parameters`].
    pub parameters: Vec<(&'static str, Value)>,
    /// What is run where the plan's author says so, with its metrics.
    pub command: Option<Arc<Command>>,
    /// The absolute path of the source tree in which its program runs, where one is given.
    pub tree: Option<String>,
}

/// What a parameter is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// The same everywhere.
    Literal(Level),
    /// The level of a factor of the plan, all of whose levels the parameter accepts.
    Factor(&'static Factor),
}

/// Settings that are left out: those that have one of the levels listed for each factor listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exclusion {
    /// Of this workload only.
    pub workload: Option<String>,
    /// Factors with one level or more; empty leaves out a whole workload.
    pub levels: Vec<(&'static Factor, Vec<Level>)>,
}

/// How often everything is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Replication {
    /// So many blocks, at least 1.
    Blocks(u32),
    /// So many blocks, or as many of them as the time allows.
    Within {
        /// At most; at least 1.
        blocks: u32,
        /// The time to be spent; the first block is made whatever it takes.
        budget: Duration,
    },
    /// Until every interval is this narrow, or the time is spent.
    Target {
        /// Half the width of an interval over its value, in (0, 1].
        half_width: f64,
        /// The time to be spent at most; positive.
        budget: Duration,
    },
}

/// The number of blocks where a plan says nothing: the fewest whose intervals lie well within the data.
pub const DEFAULT_BLOCKS: u32 = 7;

impl Plan {
    /// Reads a plan. `file` is its name, for the diagnostics alone.
    pub fn parse(file: &str, text: &str) -> Result<Plan, Diagnostics> {
        read::plan(text).map_err(|list| Diagnostics::new(file, text, list))
    }

    /// The workload of this name.
    pub fn workload(&self, name: &str) -> Option<&Workload> {
        self.workloads.iter().find(|workload| workload.name == name)
    }
}
