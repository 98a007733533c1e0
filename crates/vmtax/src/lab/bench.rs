//! The bench that is this host: jobs of a plan on the rig that also measures matrices.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use vmtax_core::{
    arena::Layout,
    experiment::{Better, Finding, Metric},
    plan::{Cell, Job, Plan, Setting},
    probe::Probe,
    trial::Measurement,
    units::{Bytes, KIB, MIB},
};
use vmtax_machine::{Kvm, clock::Clock};

use super::{
    Rig, TrialError, Until,
    experiment::Bench,
    host::{Ground, HostRig},
    knobs::{Knobs, Obstacle, size_of},
    measure,
};

/// This host.
#[derive(Debug)]
pub struct HostBench<'a> {
    /// Lays memory and runs probes; each trial sets its probe, layout and vCPUs.
    rig: HostRig<'a>,
    /// What the plan sets on this host.
    knobs: &'a mut Knobs,
    /// Time that earlier sessions of the run took.
    before: Duration,
    /// Time spent on repeating trials.
    repeating: Duration,
    /// How long the run may take.
    until: Until,
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
        HostBench { rig, knobs, before, repeating: Duration::ZERO, until }
    }

    /// A knob that could not be had; the kernel cuts the raise of a pool short when a signal comes.
    fn unready(&self, Obstacle { reason, remedy }: Obstacle) -> TrialError {
        match self.rig.stop.load(Ordering::Relaxed) {
            true => TrialError::Interrupted,
            false => TrialError::Failed(format!("{reason}; {remedy}")),
        }
    }
}

/// Memory of a plot: laid for the first job that needs it, and laid out anew on the same frames when a job needs
/// another order of accesses. Cells that differ in venue and leaf alone share even that.
#[derive(Debug)]
pub struct Site {
    seed: u64,
    laid: Option<(Job, Ground)>,
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
            self.rig.clear(ground);
        }
    }

    fn trial(&mut self, site: &mut Site, plan: &Plan, cell: &Cell) -> Result<Finding, TrialError> {
        let job = plan.job(cell).map_err(TrialError::Failed)?;
        self.rig.probe = job.probe;
        self.rig.vcpus = job.vcpus as usize;
        self.rig.layout =
            Layout::new(job.probe, job.size, job.stride).map_err(|e| TrialError::Failed(e.to_string()))?;
        let ground = match site.laid.take() {
            None => self.rig.lay(job.setting.host, site.seed)?,
            Some((last, ground)) if is_laid_alike(&last, &job) => ground,
            Some((_, ground)) => self.rig.relay(ground, site.seed)?,
        };
        let (_, ground) = site.laid.insert((job, ground));
        let measurement = measure(&mut self.rig, ground, job.setting, &mut self.repeating, self.until)?;
        let larger = measurement.evidence.kvm.map_or(0, |kvm| kvm.pages_2m);
        let mut finding = finding(measurement);
        if let Some(size) = self.rig.size {
            if larger > 0 {
                let reason =
                    format!("asked for {size}, but KVM maps {larger} pages of 2 MiB, larger than any of the host's");
                return Err(TrialError::Failed(reason));
            }
            finding.evidence.extend(ground.size_evidence(size));
            finding.caveats = ground.size_caveat(size).into_iter().chain(finding.caveats).collect();
        }
        Ok(finding)
    }

    fn elapsed(&self) -> Duration {
        self.before + self.rig.elapsed()
    }
}

fn is_laid_alike(one: &Job, other: &Job) -> bool {
    Job { setting: other.setting, ..*one } == *other
}

/// A measurement as named numbers and facts.
fn finding(measurement: Measurement) -> Finding {
    let ns = |name: &str, value| Metric { name: name.to_owned(), value, unit: "ns".to_owned(), better: Better::Lower };
    let metrics = vec![ns("ns_per_access", measurement.value_ns()), ns("first_pass_ns", measurement.first_pass_ns)];
    let Measurement { evidence, interference, caveats, .. } = measurement;
    let mut facts = vec![
        ("smaps.kernel_page_kb", evidence.kernel_page_kb.to_string()),
        ("smaps.thp_coverage", evidence.thp_coverage.to_string()),
        ("interference.steal", interference.steal.to_string()),
        ("interference.involuntary_switches", interference.involuntary_switches.to_string()),
        ("interference.repeats", interference.repeats.to_string()),
    ];
    if let Some(kvm) = evidence.kvm {
        facts.extend([
            ("kvm.pages_4k", kvm.pages_4k.to_string()),
            ("kvm.pages_2m", kvm.pages_2m.to_string()),
            ("kvm.pages_1g", kvm.pages_1g.to_string()),
            ("kvm.faults", kvm.faults.to_string()),
            ("kvm.exits", kvm.exits.to_string()),
            ("kvm.steady_faults", kvm.steady_faults.to_string()),
        ]);
        facts.extend(kvm.nx_lpage_splits.map(|n| ("kvm.nx_lpage_splits", n.to_string())));
    }
    let evidence = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Finding { metrics, evidence, caveats: caveats.iter().map(ToString::to_string).collect() }
}
