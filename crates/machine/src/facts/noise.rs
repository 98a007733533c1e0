//! Frequency, neighbours and daemons.

use vmtax_core::host::{Frequency, Ksm, Noise};

use super::tree::Tree;

const CPU: &str = "sys/devices/system/cpu";

/// Governor and driver of the first CPU, and whether its clock may rise above the nominal.
pub(super) fn frequency(tree: &Tree) -> Frequency {
    let boost = tree.switch(&format!("{CPU}/cpufreq/boost"));
    let no_turbo = || tree.switch(&format!("{CPU}/intel_pstate/no_turbo"));
    Frequency {
        driver: tree.text(&format!("{CPU}/cpu0/cpufreq/scaling_driver")),
        governor: tree.text(&format!("{CPU}/cpu0/cpufreq/scaling_governor")),
        boost: boost.or_else(|| no_turbo().map(|off| !off)),
    }
}

/// Everything else that disturbs.
pub(super) fn read(tree: &Tree) -> Noise {
    Noise {
        steal: tree.text("proc/stat").as_deref().and_then(steal),
        ksm: tree.number("sys/kernel/mm/ksm/run").and_then(|run: u32| match run {
            0 => Some(Ksm::Stopped),
            1 => Some(Ksm::Running),
            2 => Some(Ksm::Unmerged),
            _ => None,
        }),
        numa_balancing: tree.switch("proc/sys/kernel/numa_balancing"),
    }
}

/// `cpu user nice system idle iowait irq softirq steal guest guest_nice`: guest time is in user time already (proc_stat(5)).
fn steal(stat: &str) -> Option<f64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    let total: u64 = ticks.iter().sum();
    (total > 0).then_some(*ticks.get(7)? as f64 / total as f64)
}
