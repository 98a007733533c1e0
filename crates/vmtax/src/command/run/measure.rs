//! Measuring what is left of a run: until its plan is done, a signal comes or something breaks; then the host is put back,
//! and everything is told.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Context;
use vmtax_core::{
    experiment::{Record, Trial},
    plan::Replication,
    run::Ending,
};
use vmtax_machine::clock::Clock;
use vmtax_report::experiment;

use super::{super::Late, hold::Hold};
use crate::{
    lab::{
        Until,
        bench::HostBench,
        experiment::{Session, Stand, Watcher, run},
    },
    output,
    progress::Count,
    signal::Signals,
    store::{Claim, Store},
};

/// What is said of a run on standard output.
pub enum Telling<'t> {
    /// Each trial as it ends, as a line of JSON.
    Lines,
    /// All of it at the end, in these words.
    Whole(&'t dyn Fn(&Record) -> anyhow::Result<String>),
}

/// A run that was begun, now or long ago.
pub struct Begun<'m> {
    /// Where it is kept.
    pub store: &'m Store,
    /// Its name.
    pub id: &'m str,
    /// That nobody else adds to it meanwhile.
    pub claim: Claim,
    /// Ticks to nanoseconds.
    pub clock: Clock,
    /// CPUs to bind threads and vCPUs to; empty for none.
    pub pin: &'m [usize],
}

/// Measures what is left of a run.
pub fn measure(telling: &Telling<'_>, run: Begun<'_>, hold: Hold, signals: &Signals) -> anyhow::Result<ExitCode> {
    let Begun { store, id, claim, .. } = run;
    let mut hold = hold;
    let record = store.load_experiment(id)?;
    let before = Duration::from_secs_f64(record.seconds.unwrap_or(0.0));
    output::note(experiment::announcement(&record));
    store.end_experiment(id, None, before.as_secs_f64())?;
    let started = Instant::now();
    let until = until(record.plan.replication);
    let mut bench = HostBench::new(signals.stop(), hold.knobs(), run.pin, run.clock, started, before, until);
    let mut keeper = Keeper::new(store, id, record.plan.replication, telling);
    let outcome = self::run(&mut bench, session(&record), &mut keeper);
    keeper.count.clear();
    let elapsed = before + started.elapsed();
    drop(bench);
    // First of all: whatever else goes wrong now, the host is back.
    let released = hold.release();
    let ended = store.end_experiment(id, Some(*outcome.as_ref().unwrap_or(&Ending::Failed)), elapsed.as_secs_f64());
    drop(claim);
    if let Err(error) = outcome {
        output::note(format!("What was measured before the error is kept: vmtax show {id}"));
        released.context(Late("after the run"))?.say();
        return if output::is_closed_pipe(&error) { Err(error) } else { Err(error.context(Late("the run broke off"))) };
    }
    ended.map_err(|error| anyhow::Error::from(error).context(Late("after the run")))?;
    let printed = match telling {
        Telling::Lines => Ok(()),
        Telling::Whole(text) => text(&store.load_experiment(id)?).and_then(|text| Ok(output::print(&text)?)),
    };
    match signals.exit_code() {
        Some(_) => output::note(format!("Kept as run {id}; go on with: vmtax run --resume {id}")),
        None => output::note(format!("Kept as run {id}; `vmtax show {id}` prints it again.")),
    }
    released.context(Late("after the run"))?.say();
    if let Some(code) = signals.exit_code() {
        return Ok(ExitCode::from(code));
    }
    printed?;
    Ok(if keeper.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn until(replication: Replication) -> Until {
    match replication {
        Replication::Blocks(n) => Until::Blocks(n),
        Replication::Within { blocks, budget } => Until::BlocksOr(blocks, budget),
        Replication::Target { budget, .. } => Until::PreciseOr(budget),
    }
}

fn session(record: &Record) -> Session<'_> {
    let missing = record.missing.iter().map(|missing| missing.cell.clone()).collect();
    Session { plan: &record.plan, seed: record.seed, missing, kept: record.trials.clone() }
}

/// Keeps every trial, prints it where that was asked for, and shows where the run stands.
struct Keeper<'s> {
    store: &'s Store,
    id: &'s str,
    count: Count,
    prints: bool,
    failed: usize,
}

impl<'s> Keeper<'s> {
    fn new(store: &'s Store, id: &'s str, replication: Replication, telling: &Telling<'_>) -> Keeper<'s> {
        let prints = matches!(telling, Telling::Lines);
        Keeper { store, id, count: Count::new(replication), prints, failed: 0 }
    }
}

impl Watcher for Keeper<'_> {
    fn before(&mut self, stand: &Stand) {
        self.count.draw(stand, self.failed);
    }

    fn after(&mut self, trial: &Trial, elapsed: Duration) -> anyhow::Result<()> {
        self.failed += usize::from(trial.outcome.is_failed());
        self.store.keep_experiment(self.id, trial, elapsed.as_secs_f64())?;
        if self.prints {
            output::print(&experiment::line(self.id, trial))?;
        }
        Ok(())
    }
}
