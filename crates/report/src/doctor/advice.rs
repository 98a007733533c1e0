//! What a reader must know about this host before believing a figure from it.

use serde::Serialize;
use vmtax_core::host::{Host, Ksm};

/// A finding, and what could be done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// What was found, and what it does to a measurement.
    pub finding: String,
    /// A command or a change; none where the fact is to be lived with.
    pub remedy: Option<String>,
}

/// Share of stolen CPU time that deserves a word: the same 2 % that make a trial be repeated.
const MUCH_STEAL: f64 = 0.02;

/// All that applies to this host, what spoils most first.
pub fn advice(host: &Host) -> Vec<Advice> {
    [emulated, nested, steal, governor, splits, ksm, balancing, nodes].iter().filter_map(|find| find(host)).collect()
}

fn found(finding: impl Into<String>, remedy: &str) -> Option<Advice> {
    Some(Advice { finding: finding.into(), remedy: Some(remedy.to_owned()) })
}

fn emulated(host: &Host) -> Option<Advice> {
    let finding =
        "The processor is emulated by QEMU (TCG): mechanisms can be tried here, times mean nothing.".to_owned();
    host.emulated.then_some(Advice { finding, remedy: None })
}

fn nested(host: &Host) -> Option<Advice> {
    let below = host.below.as_ref().filter(|_| !host.emulated)?;
    let finding = format!(
        "This host is itself a guest, of {below}: the figures hold for this guest, not for the bare metal below, \
         and `native` already pays for one virtualization."
    );
    Some(Advice { finding, remedy: None })
}

fn steal(host: &Host) -> Option<Advice> {
    let share = host.noise.steal.filter(|share| *share > MUCH_STEAL)?;
    let finding = format!("The hypervisor below took {:.1} % of the CPU time since boot.", share * 100.0);
    found(finding, "measure when the neighbours are quiet, or allow a longer --budget")
}

fn governor(host: &Host) -> Option<Advice> {
    let governor = host.frequency.governor.as_deref().filter(|name| *name != "performance")?;
    let finding = format!("Governor `{governor}` changes the clock with the load, and ns per access with it.");
    found(finding, "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
}

fn splits(host: &Host) -> Option<Advice> {
    let finding = "KVM splits huge pages that a guest runs code from (nx_huge_pages, iTLB multihit): real guests get \
                   fewer of them than our probe, whose code stands apart from its data.";
    host.kvm.splits_huge_pages().then(|| Advice { finding: finding.to_owned(), remedy: None })
}

fn ksm(host: &Host) -> Option<Advice> {
    let running = host.noise.ksm == Some(Ksm::Running);
    let finding = "KSM is merging pages: it takes CPU time, and splits huge pages that programs offer to it.";
    running.then(|| found(finding, "echo 0 | sudo tee /sys/kernel/mm/ksm/run")).flatten()
}

fn balancing(host: &Host) -> Option<Advice> {
    let several = host.numa.len() > 1 && host.noise.numa_balancing == Some(true);
    let finding = "NUMA balancing unmaps pages to see who uses them, also in the middle of a trial.";
    several.then(|| found(finding, "echo 0 | sudo tee /proc/sys/kernel/numa_balancing")).flatten()
}

fn nodes(host: &Host) -> Option<Advice> {
    let several = host.numa.len() > 1;
    let finding =
        format!("Memory stands on {} NUMA nodes: a trial that crosses them measures distance.", host.numa.len());
    several.then(|| found(finding, "pin the run to one node: numactl --cpunodebind=0 --membind=0 vmtax …")).flatten()
}
