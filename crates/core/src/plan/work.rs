//! The workloads by name: what a plan may run, and which parameters each takes.
//!
//! A new workload is a new row of [`KINDS`], and a [`Task`] with its executor where it is no probe over laid memory.

mod program;

use crate::{
    factor::{Factor, Grammar, Level},
    probe::Probe,
    program::Program,
};

/// A kind of workload.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name in plans and results.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// What carries it out.
    pub task: Task,
    /// What it works on.
    pub ground: Ground,
    /// The parameters that have the name, the levels and the default of a factor.
    pub factors: &'static [&'static str],
    /// The parameters of its own.
    pub own: &'static [Parameter],
}

/// What carries a workload out: a [`Job`](super::Job) has its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// A probe over memory that is laid once for a plot.
    Probe(Probe),
    /// The first write to each page of fresh memory.
    Touch,
    /// Fresh memory, walked.
    Walk,
    /// Pages for a pool.
    Reserve,
    /// Ways to huge pages.
    Rights,
    /// What a few bytes take.
    Bloat,
    /// A test of the operating system, of our own.
    Os,
    /// A benchmark program.
    Program(&'static Program),
    /// A program of the plan's author.
    Command,
}

/// What a workload works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Memory laid on a backing, in a venue.
    Memory,
    /// The host itself: venue, backing and leaf mean nothing to it.
    Host,
    /// An operating system, this host's or a guest's: natively backing means nothing to it, in a guest it is that of the
    /// guest's memory.
    System,
}

/// A parameter of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in plans.
    pub name: &'static str,
    /// The values it may have.
    pub values: Grammar,
    /// Its value where a plan does not say one.
    pub default: &'static str,
}

/// Every kind of workload there is.
pub static KINDS: &[Kind] = &[
    Kind {
        name: "chase",
        about: "dependent loads along one random cycle: latency",
        task: Task::Probe(Probe::Chase),
        ground: Ground::Memory,
        factors: &["size", "stride", "vcpus"],
        own: &[],
    },
    Kind {
        name: "stride",
        about: "reads at a fixed stride",
        task: Task::Probe(Probe::Stride),
        ground: Ground::Memory,
        factors: &["size", "stride", "vcpus"],
        own: &[],
    },
    Kind {
        name: "stride-write",
        about: "writes at a fixed stride",
        task: Task::Probe(Probe::StrideWrite),
        ground: Ground::Memory,
        factors: &["size", "stride", "vcpus"],
        own: &[],
    },
    Kind {
        name: "random",
        about: "independent loads at pseudo-random lines: throughput",
        task: Task::Probe(Probe::Random),
        ground: Ground::Memory,
        factors: &["size", "stride", "vcpus"],
        own: &[],
    },
    Kind {
        name: "touch",
        about: "the first write to each page of fresh memory",
        task: Task::Touch,
        ground: Ground::Memory,
        factors: &["size", "vcpus"],
        own: &[Parameter { name: "populate", values: Grammar::Switch, default: "off" }],
    },
    Kind {
        name: "walk",
        about: "fresh memory walked a number of times, the first touch included",
        task: Task::Walk,
        ground: Ground::Memory,
        factors: &["size", "stride", "order", "passes"],
        // References of a trial at most; 0 is as many as its passes have.
        own: &[Parameter { name: "references", values: Grammar::Count(0, 1 << 48), default: "0" }],
    },
    Kind {
        name: "reserve",
        about: "huge pages prepared for a pool, after rounds of stress that fragment memory",
        task: Task::Reserve,
        ground: Ground::Host,
        factors: &[],
        own: &[
            Parameter { name: "page", values: Grammar::Words(&["2m", "1g"]), default: "2m" },
            Parameter { name: "pages", values: Grammar::Count(1, 1 << 32), default: "5000" },
            Parameter { name: "rounds", values: Grammar::Count(1, 10_000), default: "5" },
            Parameter { name: "compact", values: Grammar::Switch, default: "off" },
            // Of available memory, for the stress; and of the stress, what stays while the pages are prepared. A tenth of
            // the memory is left alone.
            Parameter { name: "stress", values: Grammar::Share(90), default: "50%" },
            Parameter { name: "kept", values: Grammar::Share(90), default: "6.25%" },
        ],
    },
    Kind {
        name: "rights",
        about: "ways to huge pages, each tried for real by the present and by an ordinary user: facts, no figures",
        task: Task::Rights,
        ground: Ground::Host,
        factors: &[],
        own: &[],
    },
    Kind {
        name: "bloat",
        about: "memory in use after one byte was touched every stride of a fresh mapping",
        task: Task::Bloat,
        ground: Ground::Memory,
        factors: &["size", "stride"],
        own: &[],
    },
    os("syscall", "five system calls", &[SECONDS]),
    os("exec", "a program replaced by itself", &[SECONDS]),
    os("spawn", "a process made, ended and waited for", &[SECONDS]),
    os("pipe", "512 bytes written to a pipe and read back", &[SECONDS]),
    os("context", "a number sent to another process and back: two switches", &[SECONDS]),
    os("filecopy", "a file copied through a buffer", &[SECONDS, BUFFER]),
];

const SECONDS: Parameter = Parameter { name: "seconds", values: Grammar::Count(1, 3600), default: "10" };
/// Bytes; the file is 2,000 times as large.
const BUFFER: Parameter =
    Parameter { name: "buffer", values: Grammar::Words(&["256", "1024", "4096"]), default: "1024" };

/// A test of what an operating system does for programs, as UnixBench defines it: on as many CPUs as `vcpus` says.
const fn os(name: &'static str, about: &'static str, own: &'static [Parameter]) -> Kind {
    Kind { name, about, task: Task::Os, ground: Ground::System, factors: &["vcpus"], own }
}

impl Kind {
    /// The kind of this name.
    pub fn named(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Its parameters, those that stand for factors first.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> {
        self.factors.iter().map(|name| Parameter::of_factor(name)).chain(self.own.iter().copied())
    }
}

impl Parameter {
    /// Its value where a plan does not say one.
    pub fn default_value(&self) -> Level {
        self.values.parse(self.default).expect("a test parses the default of every parameter")
    }

    fn of_factor(name: &str) -> Parameter {
        let factor = Factor::named(name).expect("a test looks up the factors of every kind");
        let default = factor.default.expect("a test finds a default in the factors of every kind");
        Parameter { name: factor.name, values: factor.levels, default }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{factor::Scope, probe::Probe};

    #[test]
    fn every_kind_has_parameters_with_defaults_and_every_probe_is_a_kind() {
        for kind in KINDS {
            for parameter in kind.parameters() {
                assert_eq!(
                    parameter.default_value().to_string(),
                    parameter.default,
                    "{} {}",
                    kind.name,
                    parameter.name
                );
            }
            for name in kind.factors {
                assert_eq!(Factor::named(name).map(|f| f.scope), Some(Scope::Parameter), "{} {name}", kind.name);
            }
        }
        for probe in Probe::ALL {
            // The order of a walk is a parameter in a plan.
            let name = if probe == Probe::WalkRandom { Probe::Walk.name() } else { probe.name() };
            assert!(Kind::named(name).is_some(), "{probe}");
        }
    }
}
