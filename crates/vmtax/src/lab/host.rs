//! The rig that is this host: real memory, real threads, real virtual machines.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use vmtax_core::{
    arena::Layout,
    probe::Probe,
    setting::{Backing, Setting},
    trial::{Caveat, Evidence, Interference, KvmCounts, Measurement},
    units::{Bytes, PageSize},
};
use vmtax_machine::{
    Kvm,
    arena::{Arena, Cursor},
    backing::{Foundation, Memory, Standing},
    clock::Clock,
    interference::{Seen, Watch},
    lane::{Lane, LaneError, Native, Phase, run_phase},
    microvm::{Microvm, MicrovmError},
    mthp::Mthp,
};

use super::{
    Rig, TrialError,
    mthp::{Expected, Proof},
};

/// Batches in one pass over the arena: enough that one interruption does not move their median.
const BATCHES: usize = 4;
/// Passes in the steady state.
const STEADY_PASSES: usize = 2;
/// Least share of an arena in transparent huge pages that goes without saying.
pub(super) const FULL_COVERAGE: f64 = 0.99;
/// Disagreement of clocks, and change of frequency, that go without saying.
pub(super) const CLOCK_LIMIT: f64 = 0.02;

/// What a trial runs, and on what.
#[derive(Debug)]
pub struct HostRig<'a> {
    /// The probe.
    pub probe: Probe,
    /// Where its accesses go.
    pub layout: Layout,
    /// Threads or vCPUs side by side.
    pub vcpus: usize,
    /// CPUs to bind them to; empty for none.
    pub pin: Vec<usize>,
    /// The one size of transparent page that memory on `thp` is to stand on, where that is not 2 MiB.
    pub size: Option<Mthp>,
    /// KVM, if it can be used.
    pub kvm: Option<Kvm>,
    /// Ends the run early when true.
    pub stop: &'a AtomicBool,
    /// When the command began.
    pub started: Instant,
    /// Ticks to nanoseconds.
    pub clock: Clock,
    /// Anonymous memory of an earlier plot, freed just before the next is taken. Where this host is itself a guest, memory
    /// that stays free for seconds is given back to the hypervisor below, and taking it again costs seconds a GiB.
    pub spare: Option<Memory>,
}

/// Memory laid out, with what it stands on.
#[derive(Debug)]
pub struct Ground {
    arena: Arena,
    standing: Standing,
    /// How much of it stands on the size of transparent page that was asked for, where one was.
    on_size: Option<Proof>,
}

impl Ground {
    /// What proves the one size of transparent page that was asked for, where one was.
    pub fn on_size(&self) -> Option<&Proof> {
        self.on_size.as_ref()
    }
}

/// Both phases of a trial, and KVM's counters after each.
struct Course {
    first: Phase,
    filled: Option<KvmCounts>,
    steady: Phase,
    end: Option<KvmCounts>,
}

impl Rig for HostRig<'_> {
    type Ground = Ground;

    fn lay(&mut self, backing: Backing, seed: u64) -> Result<Ground, TrialError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(TrialError::Interrupted);
        }
        if backing.pool().is_none() {
            self.spare = None;
        }
        let expected = self.size.map(Expected::of);
        let memory = Memory::allocate(self.foundation(backing), Bytes(self.layout.bytes()));
        let memory = memory.map_err(|e| TrialError::Failed(chain(&e)))?;
        let on_size = expected.map(|expected| expected.proved(&memory)).transpose()?;
        self.laid(memory, on_size, seed)
    }

    fn clear(&mut self, ground: Ground) {
        let memory = ground.arena.into_memory();
        if memory.backing().pool().is_none() {
            self.spare = Some(memory);
        }
    }

    fn trial(&mut self, ground: &Ground, setting: Setting) -> Result<Measurement, TrialError> {
        let (course, seen) = match setting.guest {
            None => self.native(ground)?,
            Some(leaf) => self.guest(ground, leaf)?,
        };
        let evidence = Evidence {
            kernel_page_kb: ground.standing.kernel_page_kb,
            thp_coverage: ground.standing.thp_coverage,
            kvm: course.end.map(|end| KvmCounts {
                steady_faults: end.faults - course.filled.map_or(0, |filled| filled.faults),
                ..end
            }),
        };
        Ok(self.measurement(setting, course, evidence, seen))
    }

    /// How much of the arena the first pass has certainly touched, a page at least for every access.
    fn touched(&self) -> Bytes {
        let page = PageSize::Small.bytes();
        match self.probe {
            Probe::Chase | Probe::Stride | Probe::StrideWrite | Probe::Walk => {
                Bytes((self.layout.bytes() / self.layout.stride().max(page)) * page)
            }
            Probe::Touch => Bytes(self.layout.bytes()),
            Probe::Random | Probe::WalkRandom => Bytes(0),
        }
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

impl HostRig<'_> {
    /// What memory on a backing is laid on: transparent pages may have one size.
    pub(super) fn foundation(&self, backing: Backing) -> Foundation {
        match (backing, self.size) {
            (Backing::Thp, Some(size)) => size.into(),
            (Backing::Small | Backing::Thp | Backing::Huge2m | Backing::Huge1g, _) => backing.into(),
        }
    }

    /// Lays the memory of `ground` out anew, for the probe and layout that the rig has now: the same frames, other contents.
    pub fn relay(&self, ground: Ground, seed: u64) -> Result<Ground, TrialError> {
        self.laid(ground.arena.into_memory(), ground.on_size, seed)
    }

    /// One course of `batches` batches over an arena, from its start, natively or in a fresh VM; with KVM's counters at its end.
    pub(super) fn course(
        &self,
        arena: &Arena,
        guest: Option<PageSize>,
        batches: usize,
    ) -> Result<(Phase, Option<KvmCounts>), TrialError> {
        let mut cursors = self.cursors(arena);
        match guest {
            None => {
                let mut lanes: Vec<_> = (0..self.vcpus).map(|_| Native::new(arena, self.stop)).collect();
                Ok((self.phase(&mut lanes, &mut cursors, arena, batches)?, None))
            }
            Some(leaf) => {
                let mut vm = self.machine(arena, leaf)?;
                let phase = self.phase(vm.vcpus(), &mut cursors, arena, batches)?;
                Ok((phase, vm.counts()))
            }
        }
    }

    fn machine<'m>(&'m self, arena: &'m Arena, leaf: PageSize) -> Result<Microvm<'m>, TrialError> {
        let kvm = self.kvm.as_ref().ok_or_else(|| TrialError::Failed("/dev/kvm is not open".to_owned()))?;
        Microvm::new(kvm, arena.memory(), leaf, self.vcpus, arena.code(), self.stop).map_err(|e| outcome(e.into()))
    }

    fn laid(&self, memory: Memory, on_size: Option<Proof>, seed: u64) -> Result<Ground, TrialError> {
        let failed = |error: &dyn std::error::Error| TrialError::Failed(chain(error));
        let standing = memory.standing().map_err(|e| TrialError::Failed(format!("reading /proc/self/smaps: {e}")))?;
        if let Some(reason) = unmarked(memory.backing(), &standing) {
            return Err(TrialError::Failed(reason));
        }
        let shares = (self.vcpus * BATCHES) as u64;
        let arena = Arena::new(memory, self.layout, self.probe, seed, shares).map_err(|e| failed(&e))?;
        Ok(Ground { arena, standing, on_size })
    }

    fn native(&self, ground: &Ground) -> Result<(Course, Seen), TrialError> {
        let mut lanes: Vec<_> = (0..self.vcpus).map(|_| Native::new(&ground.arena, self.stop)).collect();
        let mut cursors = self.cursors(&ground.arena);
        let watch = Watch::start();
        let first = self.phase(&mut lanes, &mut cursors, &ground.arena, BATCHES)?;
        let steady = self.phase(&mut lanes, &mut cursors, &ground.arena, BATCHES * STEADY_PASSES)?;
        Ok((Course { first, filled: None, steady, end: None }, watch.end(self.vcpus)))
    }

    fn guest(&self, ground: &Ground, leaf: PageSize) -> Result<(Course, Seen), TrialError> {
        let arena = &ground.arena;
        let mut vm = self.machine(arena, leaf)?;
        let mut cursors = self.cursors(arena);
        let watch = Watch::start();
        let first = self.phase(vm.vcpus(), &mut cursors, arena, BATCHES)?;
        let filled = vm.counts();
        let steady = self.phase(vm.vcpus(), &mut cursors, arena, BATCHES * STEADY_PASSES)?;
        let end = vm.counts();
        Ok((Course { first, filled, steady, end }, watch.end(self.vcpus)))
    }

    fn cursors(&self, arena: &Arena) -> Vec<Cursor> {
        (0..self.vcpus as u64).map(|lane| arena.cursor(lane, self.vcpus as u64)).collect()
    }

    fn phase<L: Lane>(
        &self,
        lanes: &mut [L],
        cursors: &mut [Cursor],
        arena: &Arena,
        batches: usize,
    ) -> Result<Phase, TrialError> {
        run_phase(lanes, cursors, arena, batches, &self.pin).map_err(outcome)
    }

    fn measurement(&self, setting: Setting, course: Course, evidence: Evidence, seen: Seen) -> Measurement {
        let ns_per_tick = self.clock.ns_per_tick();
        let accesses: Vec<f64> = course.steady.batches.iter().map(|b| b.ticks_per_access * ns_per_tick).collect();
        let first: f64 = course.first.batches.iter().map(|b| b.ticks_per_access * ns_per_tick).sum();
        let all = || course.first.batches.iter().chain(&course.steady.batches);
        let wall: Duration = all().map(|batch| batch.wall).sum();
        let ticks: u64 = all().map(|batch| batch.ticks).sum();
        let interference = Interference {
            steal: seen.steal,
            steal_resolution: seen.steal_resolution,
            involuntary_switches: course.first.usage.involuntary_switches + course.steady.usage.involuntary_switches,
            frequency_change: Some(seen.frequency_change),
            clock_disagreement: wall.as_nanos() as f64 / (ticks as f64 * ns_per_tick) - 1.0,
            repeats: 0,
        };
        Measurement {
            batches_ns: accesses,
            first_pass_ns: first / course.first.batches.len() as f64,
            caveats: caveats(setting, self.size, &evidence, &interference),
            evidence,
            interference,
        }
    }
}

/// Why memory may stand on other pages than small ones, unseen. Sizes below 2 MiB do not show in AnonHugePages; only the
/// mapping's own mark rules them out.
pub(super) fn unmarked(backing: Backing, standing: &Standing) -> Option<String> {
    let has_thp = Path::new("/sys/kernel/mm/transparent_hugepage").exists();
    let is_open = backing == Backing::Small && has_thp && !standing.thp_ruled_out;
    is_open.then(|| "the kernel does not rule out transparent huge pages in 4k memory".to_owned())
}

/// What a reader must know; stolen time is judged by the lab, which may repeat the trial.
fn caveats(setting: Setting, size: Option<Mthp>, evidence: &Evidence, interference: &Interference) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    // Coverage by another size is told by `Proof::caveat`.
    if setting.host == Backing::Thp && size.is_none() && evidence.thp_coverage < FULL_COVERAGE {
        caveats.push(Caveat::ThpCoverage { share: evidence.thp_coverage });
    }
    if interference.clock_disagreement.abs() > CLOCK_LIMIT {
        caveats.push(Caveat::ClockDisagrees { by: interference.clock_disagreement });
    }
    if let Some(by) = interference.frequency_change.filter(|by| by.abs() > CLOCK_LIMIT) {
        caveats.push(Caveat::Frequency { by });
    }
    if let Some(faults) = evidence.kvm.map(|kvm| kvm.steady_faults).filter(|faults| *faults > 0) {
        caveats.push(Caveat::SteadyFaults { faults });
    }
    caveats
}

pub(super) fn outcome(error: LaneError) -> TrialError {
    match error {
        LaneError::Run(MicrovmError::Interrupted) => TrialError::Interrupted,
        other => TrialError::Failed(chain(&other)),
    }
}

/// An error with its causes, each fact once.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |e| e.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
