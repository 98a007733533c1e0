//! What the user asked of `vmtax matrix`: kept with the run, so that it can be made again.

use serde::{Deserialize, Serialize};

use crate::{probe::Probe, setting::Setting, units::Bytes};

/// A matrix to be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What is run.
    pub probe: Probe,
    /// The arena.
    pub size: Bytes,
    /// Distance of the accesses, or of the nodes of a chase.
    pub stride: Bytes,
    /// Every setting asked for, available or not.
    pub settings: Vec<Setting>,
    /// Threads or vCPUs side by side.
    pub vcpus: u32,
    /// CPUs they are bound to; empty for none.
    pub pin: Vec<usize>,
    /// The number of blocks, if it was fixed.
    pub blocks: Option<u32>,
    /// The time to be spent, in seconds, if it was limited.
    pub budget_seconds: Option<f64>,
    /// Orders, layouts and cycles follow from it.
    pub seed: u64,
    /// Hugetlb pages were borrowed for the run.
    pub reserve: bool,
}
