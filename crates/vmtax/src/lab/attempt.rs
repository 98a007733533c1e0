//! What the executors of work on fresh memory share: memory nobody has touched, and attempts that are repeated when time
//! was stolen from them.

use std::time::Duration;

use vmtax_core::{
    experiment::{Better, Finding, Metric},
    plan::Cell,
    prose::change,
    setting::Backing,
    touch::Populated,
    trial::Evidence,
    units::Bytes,
};
use vmtax_machine::{
    backing::{Memory, Standing},
    interference::Seen,
};

use super::{REPEATS, STEAL_LIMIT, TrialError, bench::HostBench, host};

/// One attempt at a trial.
#[derive(Debug)]
pub struct Attempt {
    /// What it found.
    pub finding: Finding,
    /// What else happened on the machine meanwhile.
    pub seen: Seen,
}

impl HostBench<'_> {
    /// Makes a trial, again if time was certainly stolen from it; of several the one with the least is kept.
    pub(super) fn repeated(
        &mut self,
        mut attempt: impl FnMut(&mut Self) -> Result<Attempt, TrialError>,
    ) -> Result<Finding, TrialError> {
        let mut best = attempt(self)?;
        let mut repeats = 0;
        while repeats < REPEATS && is_disturbed(&best.seen) && self.repeating < self.until.for_repeats() {
            let begun = self.rig.started.elapsed();
            let again = attempt(self)?;
            self.repeating += self.rig.started.elapsed() - begun;
            repeats += 1;
            if again.seen.steal < best.seen.steal {
                best = again;
            }
        }
        let Attempt { mut finding, seen } = best;
        finding.caveats.extend(disturbances(&seen));
        finding.evidence.insert("interference.steal".to_owned(), format!("{:.4}", seen.steal));
        finding.evidence.insert("interference.repeats".to_owned(), repeats.to_string());
        Ok(finding)
    }

    /// Memory that nothing has touched yet, or that was populated.
    ///
    /// Its pages were in use until now, as far as that can be had: where this host is itself a guest, memory that stays free
    /// for seconds is given back to the hypervisor below, and a trial would measure how that finds it again.
    pub(super) fn fresh(&mut self, host: Backing, size: Bytes, populated: Populated) -> Result<Memory, TrialError> {
        let foundation = self.rig.foundation(host);
        if host.pool().is_none() {
            match self.rig.spare.take() {
                Some(spare) if spare.bytes() >= size.0 => drop(spare),
                other => {
                    drop(other);
                    drop(Memory::allocate(foundation, size).map_err(|e| failed(&e))?);
                }
            }
        }
        let memory = match populated {
            Populated::No => Memory::map(foundation, size),
            Populated::Before => Memory::allocate(foundation, size),
        };
        memory.map_err(|e| failed(&e))
    }

    /// Keeps the memory of a trial, all of it in use, until the next needs such pages.
    pub(super) fn spare(&mut self, memory: Memory) {
        if memory.backing().pool().is_none() && memory.populate().is_ok() {
            self.rig.spare = Some(memory);
        }
    }
}

fn certain_steal(seen: &Seen) -> f64 {
    // Steal is known to within a tick of the kernel's account: it counts when it is certain.
    seen.steal - seen.steal_resolution
}

fn is_disturbed(seen: &Seen) -> bool {
    certain_steal(seen) > STEAL_LIMIT
}

pub(super) fn disturbances(seen: &Seen) -> Vec<String> {
    let stolen =
        is_disturbed(seen).then(|| format!("{:.1} % of CPU time stolen by the hypervisor below", seen.steal * 100.0));
    let clock = (seen.frequency_change.abs() > host::CLOCK_LIMIT)
        .then(|| format!("clock frequency changed by {}", change(seen.frequency_change)));
    stolen.into_iter().chain(clock).collect()
}

/// What smaps said of the memory, which a reader must know.
pub(super) fn coverage(backing: Backing, standing: &Standing) -> Vec<String> {
    let is_partial = backing == Backing::Thp && standing.thp_coverage < host::FULL_COVERAGE;
    let caveat = format!("only {:.1} % of the memory is in transparent huge pages", standing.thp_coverage * 100.0);
    is_partial.then_some(caveat).into_iter().collect()
}

/// What smaps and KVM showed, by name.
pub(super) fn proof(observed: &Evidence, minor_faults: u64) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("host.minor_faults", minor_faults.to_string()),
        ("smaps.kernel_page_kb", observed.kernel_page_kb.to_string()),
        ("smaps.thp_coverage", format!("{:.4}", observed.thp_coverage)),
    ];
    if let Some(kvm) = observed.kvm {
        facts.extend([
            ("kvm.pf_taken", kvm.faults.to_string()),
            ("kvm.exits", kvm.exits.to_string()),
            ("kvm.pages_4k", kvm.pages_4k.to_string()),
            ("kvm.pages_2m", kvm.pages_2m.to_string()),
            ("kvm.pages_1g", kvm.pages_1g.to_string()),
        ]);
    }
    facts
}

/// Facts as evidence.
pub(super) fn told<const N: usize>(
    facts: Vec<(&'static str, String)>,
    more: [(&'static str, String); N],
) -> std::collections::BTreeMap<String, String> {
    facts.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A metric of which less is better; none where it was nothing, as metrics are positive.
pub(super) fn cost(name: impl Into<String>, value: f64, unit: &str) -> Option<Metric> {
    (value > 0.0).then(|| Metric { name: name.into(), value, unit: unit.to_owned(), better: Better::Lower })
}

/// What is left to chance in a trial follows from this: from its plot's seed, which is of its block, and from its cell, so
/// that a cell and its twin differ. FNV-1a, over the name under which results are kept.
pub(super) fn seed_of(plot: u64, cell: &Cell) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    cell.name().bytes().fold(plot ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// A failure in the words of its causes.
pub(super) fn failed(error: &dyn std::error::Error) -> TrialError {
    TrialError::Failed(host::chain(error))
}

/// Seconds of a duration.
pub(super) fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use vmtax_core::{plan::Plan, setting::Replica};

    use super::*;

    #[test]
    fn a_trial_has_its_seed_from_block_and_cell_and_its_twin_another() {
        let plan = Plan::parse("plan.toml", "[[workload]]\nprobe = \"walk\"\n").unwrap();
        let cells = plan.cells();
        assert_eq!(cells[1].replica, Replica::APrime);
        assert_eq!(seed_of(7, &cells[0]), seed_of(7, &cells[0]));
        assert_ne!(seed_of(7, &cells[0]), seed_of(7, &cells[1]));
        assert_ne!(seed_of(7, &cells[0]), seed_of(8, &cells[0]));
    }
}
