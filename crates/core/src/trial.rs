//! One execution of a cell: what was measured, what proves the setting, what disturbed it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    prose::change,
    setting::{Cell, Setting},
};

/// One execution of a cell in a fresh VM. The unit of replication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The block it belongs to, from 0.
    pub block: u32,
    /// Its place in the block's random order, from 0.
    pub place: u32,
    /// What it is a trial of.
    pub cell: Cell,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Outcome {
    /// Measured, with evidence that agrees with the setting.
    Ok(Measurement),
    /// Measured or not, it cannot be used: shown, and never averaged in.
    Failed {
        /// What went wrong, or which evidence contradicts the setting.
        reason: String,
    },
}

/// A setting that cannot be measured here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// The setting.
    pub setting: Setting,
    /// Why not.
    pub reason: String,
    /// What would enable it: a command, or a fact about hardware it would take.
    pub remedy: String,
}

/// The figures of one trial, with what proves and what disturbs them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Nanoseconds an access, one value a batch, after the first pass; in order of time.
    pub batches_ns: Vec<f64>,
    /// Nanoseconds an access over the first pass: in a fresh VM it fills the second stage of translation.
    pub first_pass_ns: f64,
    /// What proves that the setting was in force.
    pub evidence: Evidence,
    /// What else happened on the machine meanwhile.
    pub interference: Interference,
    /// What a reader must know before using the figures.
    pub caveats: Vec<Caveat>,
}

impl Measurement {
    /// The trial's value: the median of its batches, in nanoseconds an access.
    pub fn value_ns(&self) -> f64 {
        crate::stats::median(&self.batches_ns)
    }
}

/// Observed facts about the memory and the virtual machine; never what was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// `KernelPageSize` of the arena in `/proc/self/smaps`, in KiB.
    pub kernel_page_kb: u64,
    /// Share of the arena mapped by transparent 2 MiB pages (`AnonHugePages`), 0 to 1.
    pub thp_coverage: f64,
    /// What KVM counted; none in the native venue, or where KVM has no statistics.
    pub kvm: Option<KvmCounts>,
}

/// KVM's binary statistics of one VM at the end of its trial (`Documentation/virt/kvm/api.rst`, 4.133).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvmCounts {
    /// 4 KiB leaves in the second-stage or shadow page table now.
    pub pages_4k: u64,
    /// 2 MiB leaves.
    pub pages_2m: u64,
    /// 1 GiB leaves.
    pub pages_1g: u64,
    /// Faults KVM took to fill them, all vCPUs together.
    pub faults: u64,
    /// Exits to KVM, all vCPUs together.
    pub exits: u64,
    /// Faults during the steady state: not zero means the second stage was still changing.
    pub steady_faults: u64,
    /// Large pages split because of iTLB multihit (`nx_huge_pages`); none where KVM does not count them.
    pub nx_lpage_splits: Option<u64>,
}

/// What else happened on the machine during the steady state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Interference {
    /// Share of the CPUs' time that the hypervisor below gave to others, 0 to 1 (`steal` in `/proc/stat`).
    pub steal: f64,
    /// What one tick of the kernel's account (10 ms) is as such a share: steal is known to within it.
    pub steal_resolution: f64,
    /// Times the kernel took the CPU away from the measuring threads.
    pub involuntary_switches: u64,
    /// Change of clock frequency from before to after, as a fraction; none where cpufreq shows none.
    pub frequency_change: Option<f64>,
    /// Wall clock of the caller divided by the time stamps of the payload, minus one.
    pub clock_disagreement: f64,
    /// How often the trial was repeated because too much time was stolen; this is the attempt with the least.
    #[serde(default)]
    pub repeats: u32,
}

/// Something odd that a reader must know, with its figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "caveat", rename_all = "snake_case")]
pub enum Caveat {
    /// The hypervisor below took more than 2 % of the CPU time, also when repeated.
    Steal {
        /// Share of CPU time, 0 to 1.
        share: f64,
    },
    /// The caller's wall clock and the payload's time stamps differ by more than 2 %.
    ClockDisagrees {
        /// Wall clock over time stamps, minus one.
        by: f64,
    },
    /// Less than 99 % of the arena was mapped by transparent huge pages.
    ThpCoverage {
        /// Share of the arena, 0 to 1.
        share: f64,
    },
    /// The clock frequency changed by more than 2 % during the trial.
    Frequency {
        /// After over before, minus one.
        by: f64,
    },
    /// The second stage was still being filled in the steady state.
    SteadyFaults {
        /// Faults taken by KVM.
        faults: u64,
    },
}

impl Caveat {
    /// The order of the variants: equal for caveats of one kind.
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Caveat::Steal { .. } => 0,
            Caveat::ClockDisagrees { .. } => 1,
            Caveat::ThpCoverage { .. } => 2,
            Caveat::Frequency { .. } => 3,
            Caveat::SteadyFaults { .. } => 4,
        }
    }

    /// Larger is worse; to be compared within a kind.
    pub(crate) fn severity(&self) -> f64 {
        match *self {
            Caveat::Steal { share } => share,
            Caveat::ClockDisagrees { by } | Caveat::Frequency { by } => by.abs(),
            Caveat::ThpCoverage { share } => 1.0 - share,
            Caveat::SteadyFaults { faults } => faults as f64,
        }
    }
}

impl Interference {
    /// The least share that was certainly stolen: a single tick may be the end of one that began before the trial.
    pub fn certain_steal(&self) -> f64 {
        (self.steal - self.steal_resolution).max(0.0)
    }
}

impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Caveat::Steal { share } => write!(f, "{:.1} % of CPU time stolen by the hypervisor below", share * 100.0),
            Caveat::ClockDisagrees { by } => {
                write!(f, "wall clock and time stamps differ by {}", change(*by))
            }
            Caveat::ThpCoverage { share } => {
                write!(f, "only {:.1} % of the memory is in transparent huge pages", share * 100.0)
            }
            Caveat::Frequency { by } => write!(f, "clock frequency changed by {}", change(*by)),
            Caveat::SteadyFaults { faults } => write!(f, "{faults} second-stage faults in the steady state"),
        }
    }
}
