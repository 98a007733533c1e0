//! The bench that is this host: a trial of a plan goes to the executor of its kind of work.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use vmtax_core::{
    arena::Layout,
    experiment::Finding,
    plan::{Cell, Job, Plan, Setting, Sweep},
    probe::Probe,
    units::{Bytes, KIB, MIB},
};
use vmtax_machine::{Kvm, clock::Clock};

use super::{
    TrialError, Until, bloat,
    experiment::Bench,
    guest::{self, Guests},
    host::{Ground, HostRig},
    knobs::{Knobs, Obstacle, size_of},
    os, program, reserve, rights, sweep, touch, walk,
};

/// This host.
#[derive(Debug)]
pub struct HostBench<'a> {
    /// Runs probes, and holds what they need of this host; each trial sets its probe, layout and vCPUs.
    pub(super) rig: HostRig<'a>,
    /// What the plan sets on this host, and the right to do so.
    pub(super) knobs: &'a mut Knobs,
    /// What Linux guests boot.
    pub(super) guests: Guests,
    /// Time that earlier sessions of the run took.
    before: Duration,
    /// Time spent on repeating trials.
    pub(super) repeating: Duration,
    /// How long the run may take.
    pub(super) until: Until,
}

impl<'a> HostBench<'a> {
    /// The host, for a run that took `before` in earlier sessions.
    pub fn new(
        stop: &'a AtomicBool,
        knobs: &'a mut Knobs,
        pin: &[usize],
        clock: Clock,
        started: Instant,
        before: Duration,
        until: Until,
    ) -> HostBench<'a> {
        let rig = HostRig {
            probe: Probe::Chase,
            layout: Layout::new(Probe::Chase, Bytes(MIB), Bytes(4 * KIB)).expect("it has 256 nodes"),
            vcpus: 1,
            pin: pin.to_vec(),
            size: None,
            kvm: Kvm::new().ok(),
            stop,
            started,
            clock,
            spare: None,
        };
        HostBench { rig, knobs, guests: Guests::default(), before, repeating: Duration::ZERO, until }
    }

    /// A knob that could not be had; the kernel cuts the raise of a pool short when a signal comes.
    fn unready(&self, Obstacle { reason, remedy }: Obstacle) -> TrialError {
        match self.rig.stop.load(Ordering::Relaxed) {
            true => TrialError::Interrupted,
            false => TrialError::Failed(format!("{reason}; {remedy}")),
        }
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

    fn turn(&mut self, knobs: &Setting) -> Result<(), TrialError> {
        if self.rig.stop.load(Ordering::Relaxed) {
            return Err(TrialError::Interrupted);
        }
        let reload = self.knobs.reload_kvm();
        if reload {
            self.rig.kvm = None;
            self.guests.forget_accel();
        }
        let turned = self.knobs.set(knobs).map_err(|obstacle| self.unready(obstacle));
        if reload {
            self.rig.kvm = Kvm::new().ok();
        }
        turned
    }

    fn witness(&self) -> Result<BTreeMap<String, String>, TrialError> {
        self.knobs.witness().map_err(TrialError::Failed)
    }

    fn lay(&mut self, memory: &Setting, seed: u64) -> Result<Site, TrialError> {
        self.knobs.prepare(memory).map_err(|obstacle| self.unready(obstacle))?;
        self.rig.size = size_of(memory);
        Ok(Site { seed, laid: None })
    }

    fn clear(&mut self, site: Site) {
        if let Some((_, ground)) = site.laid {
            super::Rig::clear(&mut self.rig, ground);
        }
    }

    fn trial(&mut self, site: &mut Site, plan: &Plan, cell: &Cell) -> Result<Finding, TrialError> {
        let seed = super::attempt::seed_of(site.seed, cell);
        if let Some(wanted) = plan.guest(cell).map_err(TrialError::Failed)? {
            return guest::trial(self, plan, cell, &wanted, seed);
        }
        match plan.job(cell).map_err(TrialError::Failed)? {
            Job::Probe(job) => sweep::trial(self, site, job),
            Job::Touch(job) => self.repeated(|bench| touch::attempt(bench, job)),
            Job::Walk(job) => self.repeated(|bench| walk::attempt(bench, job, seed)),
            Job::Reserve(job) => reserve::trial(self, job, seed),
            Job::Rights => rights::trial(self),
            Job::Bloat(job) => bloat::trial(self, job),
            Job::Os(job) => os::trial(self, job),
            Job::Program(job) => program::trial(self, &job),
            Job::Command(job) => program::command(self, &job),
        }
    }

    fn elapsed(&self) -> Duration {
        self.before + super::Rig::elapsed(&self.rig)
    }
}

#[cfg(test)]
mod tests;
