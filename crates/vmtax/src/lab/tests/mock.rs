//! A made-up machine with a made-up clock: its times, its steal and its failures are what a test says they are.

use std::time::Duration;

use tempfile::TempDir;
use vmtax_core::{
    host::Host,
    probe::Probe,
    request::Request,
    run::{Ending, Run},
    setting::{Backing, Setting},
    trial::{Evidence, Interference, KvmCounts, Measurement, Trial},
    units::{Bytes, GIB, PageSize},
};

use super::super::{Observer, Plan, Progress, Rig, TrialError, Until, run};
use crate::store::Store;

pub const NATIVE: Setting = Setting::native(Backing::Small);
pub const GUEST: Setting = Setting::microvm(PageSize::Small, Backing::Small);
pub const NATIVE_2M: Setting = Setting::native(Backing::Huge2m);
pub const GUEST_ON_2M: Setting = Setting::microvm(PageSize::Small, Backing::Huge2m);

pub const SECOND: Duration = Duration::from_secs(1);

type Answer = Result<Measurement, TrialError>;

/// The machine. A trial takes a second, laying memory nothing.
pub struct Mock<F> {
    now: Duration,
    /// What trial number `nth` (from 0, repeats counted) of a setting gives.
    answer: F,
    /// Backings that cannot be laid.
    pub barren: Vec<Backing>,
    /// Attempts at a trial so far.
    pub attempts: usize,
    /// Memory laid and not yet cleared.
    pub alive: i32,
}

impl<F: FnMut(Setting, usize) -> Answer> Mock<F> {
    pub fn new(answer: F) -> Self {
        Mock { now: Duration::ZERO, answer, barren: Vec::new(), attempts: 0, alive: 0 }
    }
}

impl<F: FnMut(Setting, usize) -> Answer> Rig for Mock<F> {
    type Ground = Backing;

    fn lay(&mut self, backing: Backing, _seed: u64) -> Result<Backing, TrialError> {
        if self.barren.contains(&backing) {
            return Err(TrialError::Failed(format!("no memory for {backing}")));
        }
        self.alive += 1;
        assert_eq!(self.alive, 1, "memory of an earlier plot was not cleared");
        Ok(backing)
    }

    fn clear(&mut self, _ground: Backing) {
        self.alive -= 1;
    }

    fn trial(&mut self, ground: &Backing, setting: Setting) -> Answer {
        assert_eq!(*ground, setting.host);
        self.now += SECOND;
        self.attempts += 1;
        (self.answer)(setting, self.attempts - 1)
    }

    fn touched(&self) -> Bytes {
        Bytes(GIB)
    }

    fn elapsed(&self) -> Duration {
        self.now
    }
}

/// A measurement with the evidence its setting demands, three times as slow in the first pass.
pub fn measured(setting: Setting, ns: f64) -> Measurement {
    let page = setting.host.page();
    let leaves = |size| if page == size { GIB / page.bytes() } else { 0 };
    let counts = KvmCounts {
        pages_4k: leaves(PageSize::Small),
        pages_2m: leaves(PageSize::Large),
        pages_1g: leaves(PageSize::Giant),
        ..KvmCounts::default()
    };
    let (kernel_page_kb, thp_coverage) = match setting.host {
        Backing::Small => (4, 0.0),
        Backing::Thp => (4, 1.0),
        Backing::Huge2m | Backing::Huge1g => (page.bytes() / 1024, 0.0),
    };
    Measurement {
        batches_ns: vec![0.9 * ns, ns, 3.0 * ns],
        first_pass_ns: 3.0 * ns,
        evidence: Evidence { kernel_page_kb, thp_coverage, kvm: setting.guest.map(|_| counts) },
        interference: Interference::default(),
        caveats: Vec::new(),
    }
}

/// The same, with a share of stolen time that is known exactly.
pub fn stolen(setting: Setting, ns: f64, steal: f64) -> Measurement {
    Measurement { interference: Interference { steal, ..Interference::default() }, ..measured(setting, ns) }
}

/// 100 ns natively, 150 ns in a guest: a tax of exactly one half.
pub fn half_again(setting: Setting) -> f64 {
    if setting.guest.is_some() { 150.0 } else { 100.0 }
}

pub fn plan(settings: &[Setting], until: Until) -> Plan {
    Plan { settings: settings.to_vec(), unavailable: Vec::new(), seed: 7, until }
}

/// A results file in a directory of its own.
pub fn store() -> (TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("results.db")).unwrap();
    (directory, store)
}

pub fn request(plan: &Plan) -> Request {
    let unavailable = plan.unavailable.iter().map(|missing| missing.setting);
    Request {
        probe: Probe::Chase,
        size: Bytes(GIB),
        stride: Bytes(4096),
        settings: plan.settings.iter().copied().chain(unavailable).collect(),
        vcpus: 1,
        pin: Vec::new(),
        blocks: plan.until.blocks(),
        budget_seconds: plan.until.budget().map(|budget| budget.as_secs_f64()),
        seed: plan.seed,
        reserve: false,
    }
}

/// The whole way: trials on the machine, kept as they end, and read back.
pub fn kept<R: Rig>(rig: &mut R, plan: &Plan) -> Run {
    let (_directory, store) = store();
    let id = store.begin(&request(plan), &Host::default(), &plan.unavailable).unwrap();
    let ending = run(rig, plan, &mut Keeper { store: &store, id: &id }).unwrap();
    store.end(&id, ending, rig.elapsed().as_secs_f64()).unwrap();
    store.load(&id).unwrap()
}

/// The same without a file, for tests of many runs.
pub fn unkept<R: Rig>(rig: &mut R, plan: &Plan) -> Run {
    let mut trials = Vec::new();
    let ending = run(rig, plan, &mut Memory(&mut trials)).unwrap();
    let (id, started) = (String::new(), String::new());
    let unavailable = plan.unavailable.clone();
    let (request, host) = (request(plan), Host::default());
    Run { id, started, request, host, ending: Some(ending), seconds: None, trials, unavailable }
}

struct Keeper<'s> {
    store: &'s Store,
    id: &'s str,
}

impl Observer for Keeper<'_> {
    fn preparing(&mut self, _backing: Backing) {}

    fn before(&mut self, _progress: &Progress) {}

    fn after(&mut self, trial: &Trial) -> anyhow::Result<()> {
        self.store.keep(self.id, trial)
    }
}

struct Memory<'t>(&'t mut Vec<Trial>);

impl Observer for Memory<'_> {
    fn preparing(&mut self, _backing: Backing) {}

    fn before(&mut self, _progress: &Progress) {}

    fn after(&mut self, trial: &Trial) -> anyhow::Result<()> {
        self.0.push(trial.clone());
        Ok(())
    }
}

/// Whether a run ended as planned; everything it laid is cleared.
pub fn is_done<F>(run: &Run, rig: &Mock<F>) -> bool {
    run.ending == Some(Ending::Done) && rig.alive == 0
}
