//! Lanes: what a probe runs on, a thread of this process or a vCPU, one beside another.
//!
//! Nothing but the probe runs between its two time stamps. The wall clock around it is a cross-check: it holds the entry
//! and exit of the VM too, microseconds in a batch of milliseconds.

use std::{
    io,
    ops::Add,
    sync::{Barrier, atomic::AtomicBool, mpsc},
    thread,
    time::{Duration, Instant},
};

use crate::{
    arena::{Arena, Cursor, WrongAnswer},
    kick,
    microvm::{MicrovmError, Vcpu},
    probe::{self, Call, Code, Reply},
    usage::Usage,
};

/// Something a probe can be run on.
pub trait Lane: Send {
    /// Runs the probe once.
    fn run(&mut self, call: &Call) -> Result<Reply, MicrovmError>;
}

/// A thread of this process.
#[derive(Debug)]
pub struct Native<'a> {
    code: &'a Code,
    stop: &'a AtomicBool,
}

impl<'a> Native<'a> {
    /// A lane for the probe that `arena` was laid out for; the borrow keeps the arena alive.
    pub fn new(arena: &'a Arena, stop: &'a AtomicBool) -> Self {
        Native { code: arena.code(), stop }
    }
}

impl Lane for Native<'_> {
    fn run(&mut self, call: &Call) -> Result<Reply, MicrovmError> {
        if self.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(MicrovmError::Interrupted);
        }
        // SAFETY: the call comes from the arena this lane borrows, laid out for this code.
        Ok(unsafe { probe::run(self.code, call) })
    }
}

impl Lane for Vcpu<'_> {
    fn run(&mut self, call: &Call) -> Result<Reply, MicrovmError> {
        Vcpu::run(self, call)
    }
}

/// One batch, all lanes together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Batch {
    /// TSC ticks an access, the mean of the lanes.
    pub ticks_per_access: f64,
    /// TSC ticks between the probes' time stamps, all lanes added up.
    pub ticks: u64,
    /// Wall clock of the callers, all lanes added up.
    pub wall: Duration,
}

/// Batches, and what happened to the threads meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// In order of time.
    pub batches: Vec<Batch>,
    /// What the measuring threads used while they ran the probe.
    pub usage: Usage,
}

/// Why a phase came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// The lane could not run.
    #[error(transparent)]
    Run(#[from] MicrovmError),
    /// It ran, and gave a wrong answer.
    #[error(transparent)]
    Wrong(#[from] WrongAnswer),
    /// A thread could not be bound to its CPU.
    #[error("cannot pin a thread to CPU {cpu}: {source}")]
    Pin {
        /// The CPU asked for.
        cpu: usize,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Runs `batches` batches on every lane, side by side; lane `i` on CPU `pin[i % pin.len()]` if any are given.
pub fn run_phase<L: Lane>(
    lanes: &mut [L],
    cursors: &mut [Cursor],
    arena: &Arena,
    batches: usize,
    pin: &[usize],
) -> Result<Phase, LaneError> {
    assert_eq!(lanes.len(), cursors.len(), "one cursor a lane");
    let start = Barrier::new(lanes.len());
    let patience =
        kick::patience(cursors.iter().map(|cursor| arena.call(cursor).accesses).sum::<u64>() * batches as u64);
    let (ended, ends) = mpsc::channel();
    let outcomes: Vec<Result<Track, LaneError>> = thread::scope(|scope| {
        let threads: Vec<_> = lanes
            .iter_mut()
            .zip(cursors.iter_mut())
            .enumerate()
            .map(|(i, (lane, cursor))| {
                let (start, ended) = (&start, ended.clone());
                let cpu = pin.get(i % pin.len().max(1)).copied();
                scope.spawn(move || {
                    let _registration = kick::register();
                    let outcome = run_lane(lane, cursor, arena, batches, start, cpu);
                    let _ = ended.send(());
                    outcome
                })
            })
            .collect();
        call_back_after(patience, threads.len(), &ends);
        threads.into_iter().map(|t| t.join().expect("a lane does not panic")).collect()
    });
    let tracks = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Phase {
        batches: (0..batches).map(|b| Batch::over(tracks.iter().map(|track| &track.batches[b]))).collect(),
        usage: tracks.iter().map(|track| track.usage).fold(Usage::default(), Add::add),
    })
}

/// Waits for all lanes to end. Those that have not when the time is over are kicked out of their guests until they do.
fn call_back_after(patience: Duration, lanes: usize, ends: &mpsc::Receiver<()>) {
    const AGAIN: Duration = Duration::from_millis(50);
    let deadline = Instant::now() + patience;
    let mut running = lanes;
    while running > 0 {
        let wait = deadline.saturating_duration_since(Instant::now()).max(AGAIN);
        match ends.recv_timeout(wait) {
            Ok(()) => running -= 1,
            Err(_) => kick::all(),
        }
    }
}

/// What one lane has to tell.
struct Track {
    batches: Vec<Batch>,
    usage: Usage,
}

impl Batch {
    fn over<'b>(lanes: impl Iterator<Item = &'b Batch> + Clone) -> Batch {
        let n = lanes.clone().count() as f64;
        Batch {
            ticks_per_access: lanes.clone().map(|b| b.ticks_per_access).sum::<f64>() / n,
            ticks: lanes.clone().map(|b| b.ticks).sum(),
            wall: lanes.map(|b| b.wall).sum(),
        }
    }
}

fn run_lane(
    lane: &mut impl Lane,
    cursor: &mut Cursor,
    arena: &Arena,
    batches: usize,
    start: &Barrier,
    cpu: Option<usize>,
) -> Result<Track, LaneError> {
    let pinned = cpu.map_or(Ok(()), pin_to);
    let mut track = Track { batches: Vec::with_capacity(batches), usage: Usage::default() };
    // Every lane comes here, also one that failed: the others wait for it.
    start.wait();
    pinned?;
    for _ in 0..batches {
        let call = arena.call(cursor);
        let (used, before) = (Usage::of_thread(), Instant::now());
        let reply = lane.run(&call)?;
        let wall = before.elapsed();
        track.usage = track.usage + (Usage::of_thread() - used);
        arena.advance(cursor, call, &reply)?;
        let ticks_per_access = reply.ticks as f64 / call.accesses as f64;
        track.batches.push(Batch { ticks_per_access, ticks: reply.ticks, wall });
    }
    Ok(track)
}

/// Whether this process may run on a CPU.
pub fn may_run_on(cpu: usize) -> bool {
    let most = rustix::thread::CpuSet::MAX_CPU;
    cpu < most && rustix::thread::sched_getaffinity(None).is_ok_and(|set| set.is_set(cpu))
}

/// Some of the CPUs that this process may use, the last ones: the first have most interrupts. None where there are fewer.
pub fn last_cpus(n: usize) -> Option<Vec<usize>> {
    let mine: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| may_run_on(cpu)).collect();
    mine.len().checked_sub(n).map(|first| mine[first..].to_vec())
}

/// Does `work` on these CPUs; processes that it starts stay there. On any CPU where none is given.
pub fn on_cpus<T>(cpus: &[usize], work: impl FnOnce() -> T) -> Result<T, LaneError> {
    let Some(&cpu) = cpus.first() else { return Ok(work()) };
    let pin = |e: rustix::io::Errno| LaneError::Pin { cpu, source: e.into() };
    let before = rustix::thread::sched_getaffinity(None).map_err(pin)?;
    let mut set = rustix::thread::CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    rustix::thread::sched_setaffinity(None, &set).map_err(pin)?;
    let done = work();
    rustix::thread::sched_setaffinity(None, &before).map_err(pin)?;
    Ok(done)
}

fn pin_to(cpu: usize) -> Result<(), LaneError> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).map_err(|e| LaneError::Pin { cpu, source: e.into() })
}
