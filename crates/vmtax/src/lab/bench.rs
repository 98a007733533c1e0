//! The bench that is this host: a trial of a plan goes to the executor of its kind of work.

use std::{
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use vmtax_core::{
    arena::Layout,
    availability::Reserve,
    experiment::Finding,
    plan::{Cell, Job, Plan, Setting, Sweep},
    probe::Probe,
    units::{Bytes, KIB, MIB},
};
use vmtax_machine::{Kvm, clock::Clock, knob::Lease};

use super::{
    Rig, TrialError, Until, bloat,
    experiment::Bench,
    host::{Ground, HostRig},
    reserve, rights, sweep, touch, walk,
};

/// This host.
#[derive(Debug)]
pub struct HostBench<'a> {
    /// Runs probes, and holds what they need of this host; each trial sets its probe, layout and vCPUs.
    pub(super) rig: HostRig<'a>,
    /// The run's right to turn the knobs of the host, where it has taken that.
    pub lease: Option<Lease>,
    /// Whether trials may borrow pages through it.
    pub borrowing: Reserve,
    /// Time that earlier sessions of the run took.
    before: Duration,
    /// Time spent on repeating trials.
    pub(super) repeating: Duration,
    /// How long the run may take.
    pub(super) until: Until,
}

impl<'a> HostBench<'a> {
    /// The host, for a run that took `before` in earlier sessions.
    pub fn new(stop: &'a AtomicBool, clock: Clock, started: Instant, before: Duration, until: Until) -> HostBench<'a> {
        let rig = HostRig {
            probe: Probe::Chase,
            layout: Layout::new(Probe::Chase, Bytes(MIB), Bytes(4 * KIB)).expect("it has 256 nodes"),
            vcpus: 1,
            pin: Vec::new(),
            kvm: Kvm::new().ok(),
            stop,
            started,
            clock,
            spare: None,
        };
        HostBench { rig, lease: None, borrowing: Reserve::No, before, repeating: Duration::ZERO, until }
    }
}

/// Memory of a plot: laid for the first probe that needs it, and laid out anew on the same frames when one needs another
/// order of accesses. Cells that differ in venue and leaf alone share even that. Work on fresh memory leaves it alone.
#[derive(Debug)]
pub struct Site {
    pub(super) seed: u64,
    pub(super) laid: Option<(Sweep, Ground)>,
}

impl Bench for HostBench<'_> {
    type Ground = Site;

    fn lay(&mut self, _memory: &Setting, seed: u64) -> Result<Site, TrialError> {
        Ok(Site { seed, laid: None })
    }

    fn clear(&mut self, site: Site) {
        if let Some((_, ground)) = site.laid {
            self.rig.clear(ground);
        }
    }

    fn trial(&mut self, site: &mut Site, plan: &Plan, cell: &Cell) -> Result<Finding, TrialError> {
        let seed = super::attempt::seed_of(site.seed, cell);
        match plan.job(cell).map_err(TrialError::Failed)? {
            Job::Probe(job) => sweep::trial(self, site, job),
            Job::Touch(job) => self.repeated(|bench| touch::attempt(bench, job)),
            Job::Walk(job) => self.repeated(|bench| walk::attempt(bench, job, seed)),
            Job::Reserve(job) => reserve::trial(self, job, seed),
            Job::Rights => rights::trial(self),
            Job::Bloat(job) => bloat::trial(self, job),
        }
    }

    fn elapsed(&self) -> Duration {
        self.before + self.rig.elapsed()
    }
}

#[cfg(test)]
mod tests;
