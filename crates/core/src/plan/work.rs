//! The workloads by name: what a plan may run, and which parameters each takes.
//!
//! A new workload is a new row of [`KINDS`].

use crate::factor::{Factor, Grammar, Level};

/// A kind of workload.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name in plans and results.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// What it works on.
    pub ground: Ground,
    /// The parameters that have the name, the levels and the default of a factor.
    pub factors: &'static [&'static str],
    /// The parameters of its own.
    pub own: &'static [Parameter],
}

/// What a workload works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Memory laid on a backing, in a venue.
    Memory,
    /// The host itself: venue, backing and leaf mean nothing to it.
    Host,
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
        ground: Ground::Memory,
        factors: &["size", "stride", "vcpus"],
        own: &[],
    },
    Kind {
        name: "stride",
        about: "reads at a fixed stride",
        ground: Ground::Memory,
        factors: &["size", "stride", "vcpus"],
        own: &[],
    },
    Kind {
        name: "stride-write",
        about: "writes at a fixed stride",
        ground: Ground::Memory,
        factors: &["size", "stride", "vcpus"],
        own: &[],
    },
    Kind {
        name: "random",
        about: "independent loads at pseudo-random lines: throughput",
        ground: Ground::Memory,
        factors: &["size", "stride", "vcpus"],
        own: &[],
    },
    Kind {
        name: "touch",
        about: "the first write to each page of fresh memory",
        ground: Ground::Memory,
        factors: &["size", "vcpus"],
        own: &[Parameter { name: "populate", values: Grammar::Switch, default: "off" }],
    },
    Kind {
        name: "walk",
        about: "fresh memory walked a number of times, the first touch included",
        ground: Ground::Memory,
        factors: &["size", "stride", "order", "passes"],
        own: &[],
    },
    Kind {
        name: "reserve",
        about: "huge pages prepared for a pool, after rounds of stress that fragment memory",
        ground: Ground::Host,
        factors: &[],
        own: &[
            Parameter { name: "page", values: Grammar::Words(&["2m", "1g"]), default: "2m" },
            Parameter { name: "pages", values: Grammar::Count(1, 1 << 32), default: "5000" },
            Parameter { name: "rounds", values: Grammar::Count(0, 10_000), default: "5" },
            Parameter { name: "compact", values: Grammar::Switch, default: "off" },
        ],
    },
];

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
