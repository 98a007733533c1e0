//! What the lab makes of a cell: one struct for each kind of work, with its parameters as values.
//!
//! An executor matches the [`Job`] of its kind. Who wants to know only what a job takes of the host asks the methods.

mod program;
mod reading;

pub use program::{Benchmark, Os, Own};
pub(super) use reading::named;

use crate::{
    arena::{Layout, LayoutError},
    probe::Probe,
    setting::{Backing, Setting},
    touch::Populated,
    units::{Bytes, GIB, PageSize},
    walk::{self, Order},
};

/// What a trial of a cell is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Job {
    /// A probe over laid memory.
    Probe(Sweep),
    /// The first write to each page.
    Touch(Touch),
    /// A walk from the first touch on.
    Walk(Walk),
    /// Pages prepared for a pool.
    Reserve(Reserve),
    /// Ways to huge pages.
    Rights,
    /// Memory that a few bytes take.
    Bloat(Bloat),
    /// A test of the operating system.
    Os(Os),
    /// A benchmark program.
    Program(Benchmark),
    /// A program of the plan's author.
    Command(Own),
}

/// A probe over memory that was laid before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    /// What is run.
    pub probe: Probe,
    /// Where, and on what.
    pub setting: Setting,
    /// The memory that is walked.
    pub size: Bytes,
    /// The distance between accesses.
    pub stride: Bytes,
    /// Threads or vCPUs side by side.
    pub vcpus: u32,
}

/// One byte written in each 4 KiB page of fresh memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// Where, and on what.
    pub setting: Setting,
    /// The memory.
    pub size: Bytes,
    /// Threads or vCPUs side by side, each on its share.
    pub vcpus: u32,
    /// Whether the host had taken it into use before.
    pub populated: Populated,
}

/// Fresh memory, four bytes written at every stride, pass after pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walk {
    /// Where, and on what.
    pub setting: Setting,
    /// The region.
    pub size: Bytes,
    /// The distance of references; in random order it says only how many there are.
    pub stride: Bytes,
    /// Their order.
    pub order: Order,
    /// Passes asked for.
    pub passes: u32,
    /// References of a trial at most, of whole passes, one at least; none for no limit.
    pub references: Option<u64>,
}

/// Huge pages prepared for a pool, round after round of stress.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reserve {
    /// Their size.
    pub page: PageSize,
    /// How many.
    pub pages: u64,
    /// How often.
    pub rounds: u32,
    /// Whether memory is compacted before.
    pub compact: Compact,
    /// Share of available memory for the stress, 0 to 0.9.
    pub stress: f64,
    /// Share of the stress that stays meanwhile.
    pub kept: f64,
}

/// What is done between the stress and the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compact {
    /// Nothing.
    Off,
    /// All memory is compacted.
    Before,
}

/// A fresh mapping of which one byte every stride is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bloat {
    /// What it stands on.
    pub host: Backing,
    /// The mapping.
    pub size: Bytes,
    /// The gap from one byte to the next.
    pub stride: Bytes,
}

/// Passes over laid memory in a trial: the first, and those of the steady state.
const PASSES: f64 = 3.0;
/// Seconds to make and lay a byte: 0.4 s a GiB, as on machines seen so far.
const LAYING: f64 = 0.4 / GIB as f64;
/// Seconds to take a page of a pool into it, and to stress as much memory: 5,000 of 2 MiB a second or two.
const PREPARING: f64 = 0.4e-3;

impl Job {
    /// Venue, leaf and backing of its memory; none for work on the host itself.
    pub fn setting(&self) -> Option<Setting> {
        match self {
            Job::Probe(Sweep { setting, .. }) | Job::Touch(Touch { setting, .. }) | Job::Walk(Walk { setting, .. }) => {
                Some(*setting)
            }
            Job::Bloat(Bloat { host, .. }) => Some(Setting::native(*host)),
            Job::Reserve(_) | Job::Rights | Job::Os(_) | Job::Program(_) | Job::Command(_) => None,
        }
    }

    /// The memory it has to itself.
    pub fn memory(&self) -> Bytes {
        match self {
            Job::Probe(Sweep { size, .. }) | Job::Touch(Touch { size, .. }) | Job::Bloat(Bloat { size, .. }) => *size,
            Job::Walk(walk) => walk.memory(),
            Job::Reserve(_) | Job::Rights | Job::Os(_) | Job::Program(_) | Job::Command(_) => Bytes(0),
        }
    }

    /// Threads or vCPUs side by side.
    pub fn vcpus(&self) -> u32 {
        match self {
            Job::Probe(Sweep { vcpus, .. }) | Job::Touch(Touch { vcpus, .. }) => *vcpus,
            Job::Os(Os { vcpus, .. }) => *vcpus,
            Job::Walk(_) | Job::Reserve(_) | Job::Rights | Job::Bloat(_) | Job::Program(_) | Job::Command(_) => 1,
        }
    }

    /// Where its accesses go; none where no probe makes them.
    pub fn layout(&self) -> Result<Option<Layout>, LayoutError> {
        let layout = match self {
            Job::Probe(Sweep { probe, size, stride, .. }) => Layout::new(*probe, *size, *stride),
            Job::Touch(Touch { size, .. }) => Layout::new(Probe::Touch, *size, Bytes(PageSize::Small.bytes())),
            Job::Walk(Walk { order, size, stride, .. }) => Layout::new(order.probe(), *size, *stride),
            Job::Reserve(_) | Job::Rights | Job::Bloat(_) | Job::Os(_) | Job::Program(_) | Job::Command(_) => {
                return Ok(None);
            }
        };
        layout.map(Some)
    }

    /// How long a trial may take, to within a factor of three or so: before the first, nothing better is known.
    pub fn expected_seconds(&self) -> f64 {
        let of = |size: Bytes, stride: Bytes| size.0 as f64 / stride.0.max(1) as f64;
        match self {
            Job::Probe(Sweep { probe, size, stride, .. }) => {
                let ns = match probe {
                    Probe::Chase => 150.0,
                    Probe::Stride | Probe::StrideWrite | Probe::Random => 30.0,
                    Probe::Touch | Probe::Walk | Probe::WalkRandom => 30.0,
                };
                PASSES * of(*size, *stride) * ns * 1e-9 + size.0 as f64 * LAYING
            }
            Job::Touch(Touch { size, .. }) => 2.0 * size.0 as f64 * LAYING,
            Job::Walk(walk) => {
                let ns = match walk.order {
                    Order::Sequential => 3.0,
                    Order::Random => 20.0,
                };
                f64::from(walk.passes_made()) * of(walk.size, walk.stride) * ns * 1e-9 + walk.size.0 as f64 * LAYING
            }
            Job::Reserve(Reserve { page, pages, rounds, .. }) => {
                f64::from(*rounds) * *pages as f64 * of(Bytes(page.bytes()), Bytes(PageSize::Large.bytes())) * PREPARING
            }
            Job::Rights => 0.2,
            Job::Bloat(Bloat { size, .. }) => size.0 as f64 * LAYING,
            Job::Os(Os { time, .. }) => time.as_secs_f64(),
            Job::Program(benchmark) => benchmark.expected_seconds(),
            Job::Command(_) => program::UNKNOWN,
        }
    }
}

impl Walk {
    /// The memory it has to itself: the region that is walked, in whole pages of its backing. A region of 128 MiB on 1 GiB
    /// pages is a part of one.
    pub fn memory(&self) -> Bytes {
        Bytes(self.size.0.next_multiple_of(self.setting.host.page().bytes()))
    }

    /// The passes that a trial makes: those asked for, or as many whole ones as its limit of references allows.
    pub fn passes_made(&self) -> u32 {
        let each = (self.size.0 / self.stride.0.max(1)).max(1);
        let within = self.references.map_or(u64::MAX, |most| (most / each).max(1));
        u64::from(self.passes).min(within) as u32
    }

    /// The numbers of passes after which a trial tells its average: 1, 2, 4 … up to those it makes.
    pub fn pass_counts(&self) -> Vec<u32> {
        walk::pass_counts(self.passes_made())
    }
}

#[cfg(test)]
mod tests;
