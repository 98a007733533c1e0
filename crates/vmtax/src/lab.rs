//! The lab: blocks of trials in random order, until the intervals are narrow enough or the time is spent.
//!
//! In a block each backing is laid once, and native and guest leaves run on that same physical memory, so that a ratio
//! within a block holds nothing but the translation. What a trial needs of the machine is behind [`Rig`], so that the
//! whole pipeline runs on a made-up machine with exact numbers.

use std::time::Duration;

use vmtax_core::{
    analysis::Summary,
    evidence,
    run::Ending,
    schedule::{self, Plot},
    setting::{Backing, Cell, Setting},
    trial::{Caveat, Measurement, Outcome, Trial, Unavailable},
    units::Bytes,
};

mod attempt;
pub mod bench;
mod bloat;
pub mod experiment;
pub mod guest;
pub mod host;
pub mod knobs;
mod mthp;
mod os;
pub mod program;
mod reserve;
mod rights;
mod sweep;
#[cfg(test)]
mod tests;
mod touch;
mod walk;

/// A share of stolen time above which a trial is repeated.
const STEAL_LIMIT: f64 = 0.02;
/// How often at most.
const REPEATS: u32 = 2;
/// The half width of every interval, relative to its value, at which a run is precise enough.
const PRECISION: f64 = 0.02;
/// Intervals of fewer blocks are too uncertain themselves to stop by (see `vmtax_core::stats`).
const BLOCKS_BEFORE_PRECISION: u32 = 5;

/// What trials are made on.
pub trait Rig {
    /// Memory laid out on a backing.
    type Ground;

    /// Lays fresh memory on `backing`; the reason if it cannot be had.
    fn lay(&mut self, backing: Backing, seed: u64) -> Result<Self::Ground, TrialError>;

    /// Takes it away again, after the last trial on it.
    fn clear(&mut self, ground: Self::Ground);

    /// Makes one trial on it, in a fresh VM if the setting has a guest. Whether its evidence agrees with the setting is judged
    /// by the lab.
    fn trial(&mut self, ground: &Self::Ground, setting: Setting) -> Result<Measurement, TrialError>;

    /// How much memory a trial has certainly touched: KVM must have mapped at least that.
    fn touched(&self) -> Bytes;

    /// Time since the command began.
    fn elapsed(&self) -> Duration;
}

/// Why a trial has no measurement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    /// It failed, or its evidence contradicts its setting.
    #[error("{0}")]
    Failed(String),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// When a run is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// After so many blocks.
    Blocks(u32),
    /// When every interval is within ±2 %, or another block would not end within this time.
    PreciseOr(Duration),
    /// After so many blocks, or when another would not end within this time.
    BlocksOr(u32, Duration),
}

impl Until {
    pub(crate) fn blocks(self) -> Option<u32> {
        match self {
            Until::Blocks(n) | Until::BlocksOr(n, _) => Some(n),
            Until::PreciseOr(_) => None,
        }
    }

    pub(crate) fn budget(self) -> Option<Duration> {
        match self {
            Until::Blocks(_) => None,
            Until::PreciseOr(budget) | Until::BlocksOr(_, budget) => Some(budget),
        }
    }

    /// Time that may go into repeating trials: repeats must not cost the blocks that make an interval.
    fn for_repeats(self) -> Duration {
        self.budget().map_or(Duration::MAX, |budget| budget / 10)
    }
}

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Settings that can be measured here.
    pub settings: Vec<Setting>,
    /// Settings that were asked for and cannot.
    pub unavailable: Vec<Unavailable>,
    /// Orders, layouts and cycles follow from it.
    pub seed: u64,
    /// When it is done.
    pub until: Until,
}

/// Where a run stands, told between trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The block, from 0.
    pub block: u32,
    /// Trials made in it.
    pub made: usize,
    /// Trials in a block.
    pub of: usize,
    /// Time since the command began.
    pub elapsed: Duration,
    /// What comes next.
    pub next: Cell,
}

/// Somebody who watches a run, between trials: shows progress, keeps results.
pub trait Observer {
    /// The pages of a pool are about to be taken into use for the first time.
    fn preparing(&mut self, backing: Backing);
    /// A trial is about to be made.
    fn before(&mut self, progress: &Progress);
    /// A trial was made. An error ends the run.
    fn after(&mut self, trial: &Trial) -> anyhow::Result<()>;
}

/// Runs `plan` on `rig`.
pub fn run<R: Rig>(rig: &mut R, plan: &Plan, observer: &mut impl Observer) -> anyhow::Result<Ending> {
    let mut run = Run { rig, plan, observer, trials: Vec::new(), repeating: Duration::ZERO };
    if run.prepare() == Ending::Interrupted {
        return Ok(Ending::Interrupted);
    }
    let mut latest = Duration::ZERO;
    for block in 0.. {
        if run.is_done(block, latest)? {
            break;
        }
        let begun = run.rig.elapsed();
        if run.block(block)? == Ending::Interrupted {
            return Ok(Ending::Interrupted);
        }
        latest = run.rig.elapsed() - begun;
    }
    Ok(Ending::Done)
}

struct Run<'r, R, O> {
    rig: &'r mut R,
    plan: &'r Plan,
    observer: &'r mut O,
    trials: Vec<Trial>,
    repeating: Duration,
}

impl<R: Rig, O: Observer> Run<'_, R, O> {
    /// Lays every pool's backing once, where time is limited: pages new to a pool may have to come from a hypervisor below, at
    /// seconds a GiB, and a first block that held that time would be no measure for the next. A backing that cannot be had
    /// fails in its block.
    fn prepare(&mut self) -> Ending {
        let has_budget = self.plan.until.budget().is_some();
        let is_used = |backing: &Backing| self.plan.settings.iter().any(|setting| setting.host == *backing);
        for backing in Backing::ALL.into_iter().filter(|b| has_budget && b.pool().is_some() && is_used(b)) {
            self.observer.preparing(backing);
            match self.rig.lay(backing, self.plan.seed) {
                Ok(ground) => self.rig.clear(ground),
                Err(TrialError::Failed(_)) => {}
                Err(TrialError::Interrupted) => return Ending::Interrupted,
            }
        }
        Ending::Done
    }

    /// Whether to stop before block number `block`. The first is always made; the next is expected to take as long as the
    /// latest. Where nothing at all can be measured there is no precision to wait for: trials that fail at once would fill the results file.
    fn is_done(&self, block: u32, latest: Duration) -> anyhow::Result<bool> {
        if self.plan.settings.is_empty() {
            return Ok(true);
        }
        if block == 0 {
            return Ok(false);
        }
        let until = self.plan.until;
        if until.blocks().is_some_and(|n| block >= n)
            || until.budget().is_some_and(|budget| self.rig.elapsed() + latest > budget)
        {
            return Ok(true);
        }
        if until.blocks().is_some() {
            return Ok(false);
        }
        if self.trials.iter().all(|trial| matches!(trial.outcome, Outcome::Failed { .. })) {
            return Ok(true);
        }
        if block < BLOCKS_BEFORE_PRECISION {
            return Ok(false);
        }
        let summary = Summary::of(&self.plan.settings, &self.plan.unavailable, &self.trials)?;
        Ok(summary.worst_relative_half_width().is_some_and(|width| width <= PRECISION))
    }

    fn block(&mut self, block: u32) -> anyhow::Result<Ending> {
        let cells = schedule::cells(&self.plan.settings);
        let mut place = 0;
        for (nth, plot) in schedule::block(self.plan.seed, block, &cells).iter().enumerate() {
            let layout_seed = self.plan.seed ^ (u64::from(block) << 32 | nth as u64);
            if self.plot(plot, block, &mut place, cells.len(), layout_seed)? == Ending::Interrupted {
                return Ok(Ending::Interrupted);
            }
        }
        Ok(Ending::Done)
    }

    fn plot(&mut self, plot: &Plot, block: u32, place: &mut u32, of: usize, seed: u64) -> anyhow::Result<Ending> {
        let mut ground = None;
        for &cell in &plot.cells {
            let elapsed = self.rig.elapsed();
            self.observer.before(&Progress { block, made: *place as usize, of, elapsed, next: cell });
            let ground = ground.get_or_insert_with(|| self.rig.lay(plot.host, seed));
            let measured = match ground {
                Ok(ground) => measure(self.rig, ground, cell.setting, &mut self.repeating, self.plan.until),
                Err(error) => Err(error.clone()),
            };
            let outcome = match measured {
                Ok(measurement) => Outcome::Ok(measurement),
                Err(TrialError::Failed(reason)) => Outcome::Failed { reason },
                Err(TrialError::Interrupted) => return Ok(Ending::Interrupted),
            };
            let trial = Trial { block, place: *place, cell, outcome };
            self.observer.after(&trial)?;
            self.trials.push(trial);
            *place += 1;
        }
        if let Some(Ok(ground)) = ground {
            self.rig.clear(ground);
        }
        Ok(Ending::Done)
    }
}

/// Makes a trial, again if time was stolen from it; of several the one with the least is kept.
fn measure<R: Rig>(
    rig: &mut R,
    ground: &R::Ground,
    setting: Setting,
    repeating: &mut Duration,
    until: Until,
) -> Result<Measurement, TrialError> {
    let mut best = proved(rig, ground, setting)?;
    for repeat in 1..=REPEATS {
        if best.interference.certain_steal() <= STEAL_LIMIT || *repeating >= until.for_repeats() {
            break;
        }
        let begun = rig.elapsed();
        let again = proved(rig, ground, setting)?;
        *repeating += rig.elapsed() - begun;
        if again.interference.steal < best.interference.steal {
            best = again;
        }
        best.interference.repeats = repeat;
    }
    if best.interference.certain_steal() > STEAL_LIMIT {
        best.caveats.push(Caveat::Steal { share: best.interference.steal });
    }
    Ok(best)
}

/// Makes a trial; one whose evidence contradicts its setting has failed, on whatever rig.
fn proved<R: Rig>(rig: &mut R, ground: &R::Ground, setting: Setting) -> Result<Measurement, TrialError> {
    let measurement = rig.trial(ground, setting)?;
    match evidence::contradiction(setting, &measurement.evidence, rig.touched()) {
        Some(reason) => Err(TrialError::Failed(reason)),
        None => Ok(measurement),
    }
}
