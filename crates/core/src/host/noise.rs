//! What disturbs a measurement on this host, and what could observe it.

use serde::{Deserialize, Serialize};

/// Clock frequency and who governs it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frequency {
    /// `scaling_driver` of the first CPU; none where the host cannot set its frequency, as in most guests.
    pub driver: Option<String>,
    /// `scaling_governor` of the first CPU.
    pub governor: Option<String>,
    /// Whether the clock may rise above its nominal frequency.
    pub boost: Option<bool>,
}

/// Neighbours and daemons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Share of CPU time since boot that the hypervisor below gave to others, 0 to 1 (`/proc/stat`).
    pub steal: Option<f64>,
    /// Kernel same-page merging.
    pub ksm: Option<Ksm>,
    /// Whether the kernel unmaps pages to learn who uses them (`/proc/sys/kernel/numa_balancing`).
    pub numa_balancing: Option<bool>,
}

/// `/sys/kernel/mm/ksm/run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ksm {
    /// 0: not merging; what was merged stays so.
    Stopped,
    /// 1: merging, which splits huge pages and write-protects what it merges.
    Running,
    /// 2: stopped, and everything taken apart again.
    Unmerged,
}

/// Hardware performance counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "pmu", rename_all = "snake_case")]
pub enum Pmu {
    /// A counter of cycles opened.
    Ok,
    /// The kernel has no such counter: no PMU, or none passed to this guest.
    Absent {
        /// What `perf_event_open` returned.
        errno: i32,
    },
    /// There may be one, but not for us (`kernel.perf_event_paranoid`).
    NoPermission {
        /// What `perf_event_open` returned.
        errno: i32,
    },
    /// Nobody tried.
    #[default]
    Untried,
}

impl Pmu {
    /// From the error number of `perf_event_open`, 0 for success.
    pub const fn from_errno(errno: i32) -> Pmu {
        match errno {
            0 => Pmu::Ok,
            1 | 13 => Pmu::NoPermission { errno },
            _ => Pmu::Absent { errno },
        }
    }
}
