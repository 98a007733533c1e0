//! The probes by name: what each one does to memory. Their machine code is in `vmtax_machine::probe`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, LINE, PageSize};

/// A small memory benchmark in machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// Dependent loads along one random cycle: the latency of an access, translation included.
    Chase,
    /// Reads at a fixed stride.
    Stride,
    /// Writes at a fixed stride.
    StrideWrite,
    /// Independent loads at pseudo-random lines: throughput, several walks at a time.
    Random,
    /// One write in each page.
    Touch,
    /// Four bytes written at a fixed stride, in order.
    Walk,
    /// As many, at random slots of the stride.
    WalkRandom,
}

impl Probe {
    /// All of them.
    pub const ALL: [Probe; 7] =
        [Probe::Chase, Probe::Stride, Probe::StrideWrite, Probe::Random, Probe::Touch, Probe::Walk, Probe::WalkRandom];

    /// `chase`, `stride`, `stride-write`, `random`, `touch`, `walk` or `walk-random`.
    pub const fn name(self) -> &'static str {
        match self {
            Probe::Chase => "chase",
            Probe::Stride => "stride",
            Probe::StrideWrite => "stride-write",
            Probe::Random => "random",
            Probe::Touch => "touch",
            Probe::Walk => "walk",
            Probe::WalkRandom => "walk-random",
        }
    }

    /// What it does, in a line.
    pub const fn about(self) -> &'static str {
        match self {
            Probe::Chase => "dependent loads along one random cycle: latency",
            Probe::Stride => "reads at a fixed stride",
            Probe::StrideWrite => "writes at a fixed stride",
            Probe::Random => "independent loads at pseudo-random lines: throughput",
            Probe::Touch => "one write in each 4 KiB page",
            Probe::Walk => "four bytes written at a fixed stride, in order",
            Probe::WalkRandom => "four bytes written at random slots of a stride",
        }
    }
}

impl Probe {
    /// Strides are multiples of this: a line for a node of a chase, a word for the others.
    pub const fn grain(self) -> Bytes {
        match self {
            Probe::Chase | Probe::Random => Bytes(LINE),
            Probe::Stride | Probe::StrideWrite => Bytes(8),
            Probe::Touch => Bytes(PageSize::Small.bytes()),
            Probe::Walk | Probe::WalkRandom => Bytes(4),
        }
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
