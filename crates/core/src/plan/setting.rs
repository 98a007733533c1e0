//! Settings of a plan: one level for each factor that applies.

use std::{fmt, iter};

use serde::{Serialize, Serializer};

use crate::{
    factor::{FACTORS, Factor, Hardness, Level, Scope},
    setting::Replica,
};

/// One level for each of some factors, in the order of [`FACTORS`].
///
/// Written `host=2m guest=4k`. A factor that is missing does not apply, or is not varied: [`Setting::level`] then gives
/// its default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Setting {
    levels: Vec<(&'static Factor, Level)>,
}

impl Setting {
    /// The setting with these levels; the last one counts where a factor is given twice.
    pub fn new(levels: impl IntoIterator<Item = (&'static Factor, Level)>) -> Setting {
        let given: Vec<_> = levels.into_iter().collect();
        let of = |factor: &Factor| given.iter().rev().find(|(f, _)| f.name == factor.name).map(|(_, level)| *level);
        Setting { levels: FACTORS.iter().filter_map(|factor| Some((factor, of(factor)?))).collect() }
    }

    /// Its factors with their levels.
    pub fn levels(&self) -> impl Iterator<Item = (&'static Factor, Level)> + '_ {
        self.levels.iter().copied()
    }

    /// The level it names for a factor.
    pub fn named(&self, factor: &str) -> Option<Level> {
        self.levels().find(|(f, _)| f.name == factor).map(|(_, level)| level)
    }

    /// The level in force for a factor: the one it names, or the factor's default; none for knobs it does not name.
    pub fn level(&self, factor: &str) -> Option<Level> {
        self.named(factor).or_else(|| Factor::named(factor)?.default_level())
    }

    /// The part of it that is this hard to change.
    pub fn stratum(&self, hardness: Hardness) -> Setting {
        Setting { levels: self.levels().filter(|(factor, _)| factor.hardness == hardness).collect() }
    }

    /// Whether every level it names is named alike by `other`.
    pub fn agrees_with(&self, other: &Setting) -> bool {
        self.levels().all(|(factor, level)| other.named(factor.name) == Some(level))
    }

    /// Whether memory is reached through a virtual machine.
    pub(super) fn is_virtual(&self) -> bool {
        self.level("venue") != Some(Level::Word("native"))
    }

    /// Whether the workload runs in a Linux guest.
    pub fn is_linux_guest(&self) -> bool {
        self.level("venue") == Some(Level::Word("guest"))
    }

    /// Whether the factor means anything here, apart from parameters, which are the workload's to tell.
    pub(super) fn has_room_for(&self, factor: &Factor) -> bool {
        match factor.scope {
            Scope::Virtual => self.is_virtual(),
            Scope::Guest => self.is_linux_guest(),
            Scope::Host | Scope::Memory | Scope::Parameter => true,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.levels().map(|(factor, level)| format!("{}={level}", factor.name)).collect();
        f.pad(&words.join(" "))
    }
}

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.levels().map(|(factor, level)| (factor.name, level)))
    }
}

/// A setting and a workload, told apart from its twin: what a trial is a trial of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The name of the workload.
    pub workload: String,
    /// The factors that apply to it.
    pub setting: Setting,
    /// Which of the two, where there are two.
    pub replica: Replica,
}

impl Cell {
    /// Its name: `walk host=2m stride=64`, and for the baseline's twin with `A'` behind it. Unique in a plan, and the
    /// same wherever the plan is read: results are kept under it.
    pub fn name(&self) -> String {
        let twin = match self.replica {
            Replica::A => None,
            Replica::APrime => Some(Replica::APrime.name().to_owned()),
        };
        let setting = Some(self.setting.to_string()).filter(|text| !text.is_empty());
        iter::once(self.workload.clone()).chain(setting).chain(twin).collect::<Vec<_>>().join(" ")
    }
}
