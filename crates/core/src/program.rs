//! Benchmark programs: how each is run, what it needs, and how its output is read.
//!
//! A new program is one new file and one row of [`PROGRAMS`]. Nothing here starts a process: a [`Script`] says what to
//! run, and [`Program::read`] makes a finding of what came out. What was printed for another purpose, in another
//! version or only in part is an error that shows the line, never a zero.
//!
//! A user's own program is a [`command::Command`]: its metrics are told by the plan, not by a row.

pub mod ab;
pub mod command;
mod error;
pub mod hackbench;
pub mod iperf3;
pub mod kernbench;
pub mod netperf;
mod output;
mod script;
pub mod sockperf;
pub mod stress_ng;
pub mod sysbench;
#[cfg(test)]
mod tests;
mod text;
pub mod unixbench;
mod values;
mod version;

pub use error::{Unfit, Unreadable};
pub use output::{Output, Outputs, Usage};
pub use script::{Huge, Script, Server, Site};
pub use values::Values;
pub use version::{Mixed, same_version, same_version_in};

use crate::{
    experiment::{Better, Finding, Metric},
    plan::Parameter,
};

/// A benchmark program.
#[derive(Debug)]
pub struct Program {
    /// Its name in plans and results.
    pub name: &'static str,
    /// What it measures, in a line.
    pub about: &'static str,
    /// What must be there to run it.
    pub needs: Needs,
    /// Its parameters in plans.
    pub parameters: &'static [Parameter],
    /// What is run, for every [`Program::parameters`] set.
    pub script: fn(&Values, &Site) -> Result<Script, Unfit>,
    /// What the output says.
    pub read: fn(&Values, &Outputs) -> Result<Finding, Unreadable>,
}

/// What a program needs on the machine it runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// The executable.
    pub program: &'static str,
    /// The packages that hold it and what it needs beside, as Debian calls them.
    pub package: &'static str,
    /// The arguments that make it tell its version.
    pub version: &'static [&'static str],
    /// What stands before the version in the answer.
    pub before_version: &'static str,
}

/// Programs are told apart by their name.
impl PartialEq for Program {
    fn eq(&self, other: &Program) -> bool {
        self.name == other.name
    }
}

impl Eq for Program {}

/// Every benchmark program there is.
pub static PROGRAMS: &[&Program] = &[
    &sysbench::cpu::PROGRAM,
    &sysbench::memory::PROGRAM,
    &sysbench::fileio::PROGRAM,
    &sysbench::mutex::PROGRAM,
    &sysbench::threads::PROGRAM,
    &hackbench::PROGRAM,
    &hackbench::perf::PROGRAM,
    &kernbench::PROGRAM,
    &netperf::PROGRAM,
    &iperf3::PROGRAM,
    &sockperf::PROGRAM,
    &ab::PROGRAM,
    &unixbench::PROGRAM,
    &stress_ng::PROGRAM,
];

impl Program {
    /// The program of this name.
    pub fn named(name: &str) -> Option<&'static Program> {
        PROGRAMS.iter().copied().find(|program| program.name == name)
    }

    /// Whether it runs in a source tree, which a plan must name.
    pub fn runs_in_tree(&self) -> bool {
        let site = |tree| Site { directory: "/tmp".to_owned(), host: "127.0.0.1".to_owned(), port: 1, tree };
        let can = |tree| Values::new(self, &[]).and_then(|values| (self.script)(&values, &site(tree))).is_ok();
        !can(None) && can(Some("/tree".to_owned()))
    }
}

impl Needs {
    /// The version in the answer to [`Needs::version`]; none where the answer has another form.
    pub fn read_version(&self, answer: &str) -> Option<String> {
        let (_, rest) = answer.split_once(self.before_version)?;
        let version = rest.split_whitespace().next()?.trim_end_matches([',', ')']);
        version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
    }

    /// The name under which a finding holds the version, such as `sysbench.version`.
    pub fn version_evidence(&self) -> String {
        format!("{}.version", self.program)
    }

    /// What to do where the program is missing.
    pub fn remedy(&self) -> String {
        format!("apt-get install {}", self.package)
    }
}

fn metric(name: &str, value: f64, unit: &str, better: Better) -> Metric {
    Metric { name: name.to_owned(), value, unit: unit.to_owned(), better }
}
