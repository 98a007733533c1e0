//! What an experiment may vary: one row a factor, with its levels, its price and its proof.
//!
//! A new factor is a new row of [`FACTORS`]. The plan reader, the diagnostics, the schedule, `--dry-run` and the
//! effects take all they know about a factor from its row. What is left to do elsewhere is to set it, in the one
//! place that sets things like it.
//!
//! Order of rows is order of display; a schedule does not depend on it, so that a row may be added anywhere.

mod level;
mod table;

use serde::{Deserialize, Serialize};

pub use level::{Grammar, Level, LevelError};
pub use table::FACTORS;

/// Something that a plan can set to one of several levels.
#[derive(Debug)]
pub struct Factor {
    /// Its name in plans and results: never changed.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The levels it may have.
    pub levels: Grammar,
    /// Its level where a plan does not name it, as a plan would write it; none for host settings, which are then left
    /// as they are found, and for parts of a guest's machine that vmtax then chooses.
    pub default: Option<&'static str>,
    /// How hard it is to change.
    pub hardness: Hardness,
    /// Where it means anything.
    pub scope: Scope,
    /// The host setting it changes, as a path with `<kvm>` for the module of the processor's vendor; none for what
    /// concerns vmtax's own memory and machines.
    pub changes: Option<&'static str>,
    /// What proves that a level was in force, in words for `--dry-run`.
    pub evidence: &'static str,
}

/// How hard a factor is to change, hardest first: the stratum of the split-plot design in which it is randomized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hardness {
    /// A knob of the host: changed once for all that shares its levels in a block.
    WholePlot,
    /// Memory must be laid anew: done once for all that shares its levels within a whole plot.
    Plot,
    /// Cheap: anew in every trial.
    Subplot,
}

/// Where a factor means anything. A setting in which it does not is without it, and is measured once, not once for
/// each of its levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Everywhere.
    Host,
    /// Where a workload works on memory of its own.
    Memory,
    /// Where memory is reached through a virtual machine.
    Virtual,
    /// Where that machine is a Linux guest's.
    Guest,
    /// Where a workload has a parameter that stands for it.
    Parameter,
}

/// Factors are told apart by their name.
impl PartialEq for Factor {
    fn eq(&self, other: &Factor) -> bool {
        self.name == other.name
    }
}

impl Eq for Factor {}

impl Factor {
    /// The factor of this name.
    pub fn named(name: &str) -> Option<&'static Factor> {
        FACTORS.iter().find(|factor| factor.name == name)
    }

    /// Its level where a plan does not name it.
    pub fn default_level(&self) -> Option<Level> {
        self.default.map(|text| self.levels.parse(text).expect("a test parses the default of every row"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_is_complete_and_named_once() {
        let names: BTreeSet<&str> = FACTORS.iter().map(|factor| factor.name).collect();
        assert_eq!(names.len(), FACTORS.len());
        for factor in FACTORS {
            assert!(!factor.about.is_empty() && !factor.evidence.is_empty(), "{}", factor.name);
            assert_eq!(factor.default_level().map(|l| l.to_string()), factor.default.map(str::to_owned));
        }
    }

    #[test]
    fn whole_plots_are_the_knobs_of_the_host() {
        for factor in FACTORS {
            let is_knob = factor.hardness == Hardness::WholePlot;
            assert_eq!(factor.changes.is_some(), is_knob, "{}", factor.name);
            assert!(!is_knob || factor.default.is_none(), "{}: a knob is left as it is found", factor.name);
        }
    }

    #[test]
    fn levels_are_read_in_every_spelling_and_written_in_one() {
        let check = |factor: &str, text: &str, expected: Result<&str, &str>| {
            let got = Factor::named(factor).unwrap().levels.parse(text).map(|l| l.to_string());
            assert_eq!(
                got.as_deref().map_err(ToString::to_string),
                expected.map_err(str::to_owned),
                "{factor} = {text}"
            );
        };
        check("host", "thp-64k", Ok("thp-64k"));
        check(
            "host",
            "2M",
            Err("levels are: 4k, thp, 2m, 1g, thp-8k, thp-16k, thp-32k, \
                 thp-64k, thp-128k, thp-256k, thp-512k, thp-1024k"),
        );
        check("size", "128 MiB", Ok("128M"));
        check("size", "1536M", Ok("1536M"));
        check("stride", "4", Ok("4"));
        check("stride", "0", Err("a size of at least 4 B, such as 64 or 4K"));
        check("size", "1.5G", Err("a size of at least 4 KiB, such as 64 or 4K"));
        check("passes", "64", Ok("64"));
        check("passes", "0", Err("a whole number from 1 to 1000000"));
        check("pool_2m", "0", Ok("0"));
        check("nested_paging", "on", Ok("on"));
        check("qemu", "/opt/qemu", Ok("/opt/qemu"));
        check("vhost", "on", Ok("on"));
        check("qemu", "", Err("a text of 1 to 200 characters"));
        check("nx_huge_pages", "maybe", Err("levels are: off, force, auto, never"));
    }
}
