//! A plan on a bench: blocks of trials in the order of its schedule, from wherever an earlier session stopped.
//!
//! What is kept is skipped in the schedule of the whole run, not taken out of it: a trial's place, and the layout of its
//! memory, are the same whether the run was interrupted before it or not.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use vmtax_core::{
    experiment::{Finding, Outcome, Trial},
    plan::{Cell, Plan, Replication, Setting, schedule},
    run::Ending,
    stats::Estimate,
};

use super::{BLOCKS_BEFORE_PRECISION, TrialError};

/// What trials of a plan are made on.
pub trait Bench {
    /// Memory that the trials of a plot share.
    type Ground;

    /// Sets the knobs of the host that a whole plot names, and puts the others of the plan back to what they were found at.
    fn turn(&mut self, knobs: &Setting) -> Result<(), TrialError>;

    /// What the knobs of the plan read now, by name: evidence. Fails when one does not stand where it was set.
    fn witness(&self) -> Result<BTreeMap<String, String>, TrialError>;

    /// Makes ready what `memory` says; the reason if it cannot be had.
    fn lay(&mut self, memory: &Setting, seed: u64) -> Result<Self::Ground, TrialError>;

    /// Takes it away again, after the last trial on it.
    fn clear(&mut self, ground: Self::Ground);

    /// Makes one trial on it. One whose evidence contradicts its setting fails.
    fn trial(&mut self, ground: &mut Self::Ground, plan: &Plan, cell: &Cell) -> Result<Finding, TrialError>;

    /// Time the run has taken, earlier sessions included.
    fn elapsed(&self) -> Duration;
}

/// What is to be measured.
#[derive(Debug)]
pub struct Session<'p> {
    /// The plan.
    pub plan: &'p Plan,
    /// Orders and layouts follow from it.
    pub seed: u64,
    /// Names of cells that cannot be measured here.
    pub missing: BTreeSet<String>,
    /// Trials of earlier sessions.
    pub kept: Vec<Trial>,
}

/// Where a run stands, told between trials.
#[derive(Debug, Clone)]
pub struct Stand {
    /// The block, from 0.
    pub block: u32,
    /// Trials made, by all sessions.
    pub made: usize,
    /// Trials made by this session.
    pub made_now: usize,
    /// Trials in a block.
    pub of: usize,
    /// Time the run has taken.
    pub elapsed: Duration,
    /// What comes next.
    pub next: String,
}

/// Somebody who watches, between trials: shows progress, keeps results.
pub trait Watcher {
    /// A trial is about to be made.
    fn before(&mut self, stand: &Stand);
    /// A trial was made. An error ends the run.
    fn after(&mut self, trial: &Trial, elapsed: Duration) -> anyhow::Result<()>;
}

/// Runs what is left of a session.
pub fn run<B: Bench>(bench: &mut B, session: Session<'_>, watcher: &mut impl Watcher) -> anyhow::Result<Ending> {
    let cells = session.plan.cells().iter().filter(|cell| !session.missing.contains(&cell.name())).count();
    let done = session.kept.iter().map(|trial| (trial.block, trial.cell.clone())).collect();
    let mut run = Run { bench, session, watcher, cells, done, made_now: 0 };
    for block in 0.. {
        if run.is_done(block) {
            break;
        }
        if run.block(block)? == Ending::Interrupted {
            return Ok(Ending::Interrupted);
        }
    }
    Ok(Ending::Done)
}

struct Run<'r, 'p, B, W> {
    bench: &'r mut B,
    session: Session<'p>,
    watcher: &'r mut W,
    cells: usize,
    done: BTreeSet<(u32, String)>,
    made_now: usize,
}

impl<B: Bench, W: Watcher> Run<'_, '_, B, W> {
    /// Whether to stop before block number `block`. A block that was begun is ended.
    fn is_done(&self, block: u32) -> bool {
        if self.cells == 0 {
            return true;
        }
        match self.session.plan.replication {
            Replication::Blocks(n) => block >= n,
            Replication::Within { blocks, budget } => {
                let is_begun = self.session.kept.iter().any(|trial| trial.block >= block);
                block >= blocks || (block > 0 && !is_begun && self.is_spent(block, budget))
            }
            Replication::Target { half_width, budget } => {
                let is_begun = self.session.kept.iter().any(|trial| trial.block >= block);
                block > 0 && !is_begun && (self.is_spent(block, budget) || self.is_precise(block, half_width))
            }
        }
    }

    /// Whether another block, of the length of those before, would end after the budget.
    fn is_spent(&self, blocks: u32, budget: Duration) -> bool {
        let elapsed = self.bench.elapsed();
        elapsed + elapsed / blocks > budget
    }

    /// Whether the leading metric of every cell is known so well. Where nothing at all succeeds there is no precision to
    /// wait for.
    fn is_precise(&self, blocks: u32, half_width: f64) -> bool {
        let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for trial in &self.session.kept {
            if let Outcome::Ok(finding) = &trial.outcome {
                values.entry(&trial.cell).or_default().extend(finding.metrics.first().map(|metric| metric.value));
            }
        }
        // Facts are as precise as they will be.
        values.retain(|_, values| !values.is_empty());
        let is_narrow = |values: &Vec<f64>| {
            let interval = Estimate::of_median(values).and_then(|e| Some((e.value, e.interval?)));
            interval.is_some_and(|(value, interval)| (interval.hi - interval.lo) / 2.0 <= half_width * value)
        };
        values.is_empty() || (blocks >= BLOCKS_BEFORE_PRECISION && values.values().all(is_narrow))
    }

    fn block(&mut self, block: u32) -> anyhow::Result<Ending> {
        let (mut place, mut nth) = (0, 0);
        for whole in schedule::block(self.session.plan, self.session.seed, block) {
            // Turned when the first trial needs it: a whole plot that an earlier session made is not set up again.
            let mut turned = None;
            for plot in &whole.plots {
                let seed = self.session.seed ^ (u64::from(block) << 32 | nth);
                let mut ready = |bench: &mut B| turned.get_or_insert_with(|| bench.turn(&whole.knobs)).clone();
                let ending = self.plot(plot, &mut ready, block, place, seed)?;
                if ending == Ending::Interrupted {
                    return Ok(ending);
                }
                place += plot.cells.len() as u32;
                nth += 1;
            }
        }
        Ok(Ending::Done)
    }

    fn plot(
        &mut self,
        plot: &schedule::Plot,
        ready: &mut impl FnMut(&mut B) -> Result<(), TrialError>,
        block: u32,
        first: u32,
        seed: u64,
    ) -> anyhow::Result<Ending> {
        let mut ground = None;
        for (place, cell) in (first..).zip(&plot.cells) {
            let name = cell.name();
            if self.session.missing.contains(&name) || self.done.contains(&(block, name.clone())) {
                continue;
            }
            self.watcher.before(&self.stand(block, &name));
            let lay = || ready(self.bench).and_then(|()| self.bench.lay(&plot.memory, seed));
            let found = match ground.get_or_insert_with(lay) {
                Ok(ground) => witnessed(self.bench, ground, self.session.plan, cell),
                Err(error) => Err(error.clone()),
            };
            let outcome = match found {
                Ok(finding) => Outcome::Ok(finding),
                Err(TrialError::Failed(reason)) => Outcome::Failed { reason },
                Err(TrialError::Interrupted) => return Ok(Ending::Interrupted),
            };
            let trial = Trial { block, place, cell: name.clone(), outcome };
            self.watcher.after(&trial, self.bench.elapsed())?;
            self.done.insert((block, name));
            self.session.kept.push(trial);
            self.made_now += 1;
        }
        if let Some(Ok(ground)) = ground {
            self.bench.clear(ground);
        }
        Ok(Ending::Done)
    }

    fn stand(&self, block: u32, next: &str) -> Stand {
        Stand {
            block,
            made: self.session.kept.len(),
            made_now: self.made_now,
            of: self.cells,
            elapsed: self.bench.elapsed(),
            next: next.to_owned(),
        }
    }
}

/// A trial with what the knobs read around it. One of them that somebody else has turned meanwhile fails it; what did change,
/// such as a count of shared pages, is told as it was before, too.
fn witnessed<B: Bench>(bench: &mut B, ground: &mut B::Ground, plan: &Plan, cell: &Cell) -> Result<Finding, TrialError> {
    let before = bench.witness()?;
    let mut finding = bench.trial(ground, plan, cell)?;
    let after = bench.witness()?;
    let changed = before.into_iter().filter(|(name, value)| after.get(name) != Some(value));
    finding.evidence.extend(changed.map(|(name, value)| (format!("{name}.before"), value)));
    finding.evidence.extend(after);
    Ok(finding)
}

#[cfg(test)]
mod tests;
