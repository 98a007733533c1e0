//! `vmtax run PLAN`: any experiment. Read the plan, see what this host can do, measure, keep, print.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use vmtax_core::{
    experiment::{Missing, Trial},
    plan::{Plan, Replication},
    run::Ending,
};
use vmtax_machine::{clock::Clock, facts, knob};
use vmtax_report::experiment;

use self::source::Source;
use super::{Late, Refusal, matrix::pools, results_file, studies};
use crate::{
    cli::RunArgs,
    lab::{
        bench::HostBench,
        experiment::{Session, Stand, Watcher},
    },
    output,
    progress::Count,
    signal::Signals,
    store::{Beginning, Store},
};

mod missing;
mod source;

/// Measures what a plan says, or what is left of it.
pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    match (&args.resume, &args.plan) {
        (Some(id), _) => resume(args, id),
        (None, Some(plan)) => begin(args, &Source::of(plan)?),
        (None, None) => unreachable!("clap demands a plan or a run"),
    }
}

fn begin(args: &RunArgs, source: &Source) -> anyhow::Result<ExitCode> {
    let clock = Clock::default();
    let plan = runnable(Plan::parse(&source.name, &source.text)?)?;
    let seed = args.seed.or(plan.seed).map_or_else(super::matrix::drawn_seed, Ok)?;
    if args.dry_run {
        let missing = missing::on(&facts::host(), &plan);
        output::print(&experiment::dry_run(&plan, seed, &missing))?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = results_file(&args.results)?;
    pools::settle(&knob::Host::default())?;
    let store = Store::open(&path)?;
    let host = facts::host();
    let missing = missing::on(&host, &plan);
    let beginning = Beginning { name: &source.name, text: &source.text, seed, host: &host, missing: &missing };
    let id = store.begin_experiment(&beginning)?;
    measure(args, &store, &id, clock)
}

fn resume(args: &RunArgs, id: &str) -> anyhow::Result<ExitCode> {
    let clock = Clock::default();
    let path = results_file(&args.results)?;
    pools::settle(&knob::Host::default())?;
    let store = Store::open(&path)?;
    let record = store.load_experiment(id)?;
    runnable(record.plan)?;
    measure(args, &store, id, clock)
}

/// What this version can run.
fn runnable(plan: Plan) -> Result<Plan, Refusal> {
    match plan.not_yet() {
        None => Ok(plan),
        Some(what) => {
            Err(Refusal::new(what, "plans may vary venue, host, guest, size, stride and vcpus of the probes"))
        }
    }
}

/// Measures what is left of a run that was begun, now or long ago.
fn measure(args: &RunArgs, store: &Store, id: &str, clock: Clock) -> anyhow::Result<ExitCode> {
    let record = store.load_experiment(id)?;
    let before = Duration::from_secs_f64(record.seconds.unwrap_or(0.0));
    let signals = Signals::catch()?;
    note_missing(&record.missing);
    output::note(experiment::announcement(&record));
    store.end_experiment(id, None, before.as_secs_f64())?;
    let until = match record.plan.replication {
        Replication::Blocks(n) => crate::lab::Until::Blocks(n),
        Replication::Target { budget, .. } => crate::lab::Until::PreciseOr(budget),
    };
    let started = Instant::now();
    let mut bench = HostBench::new(signals.stop(), clock, started, before, until);
    let missing = record.missing.iter().map(|missing| missing.cell.clone()).collect();
    let session = Session { plan: &record.plan, seed: record.seed, missing, kept: record.trials.clone() };
    let count = Count::new(record.plan.replication);
    let mut keeper = Keeper { store, id, count, json: args.json, failed: 0 };
    let outcome = crate::lab::experiment::run(&mut bench, session, &mut keeper);
    keeper.count.clear();
    let elapsed = before + started.elapsed();
    drop(bench);
    let ended = store.end_experiment(id, Some(*outcome.as_ref().unwrap_or(&Ending::Failed)), elapsed.as_secs_f64());
    if let Err(error) = outcome {
        output::note(format!("What was measured before the error is kept: vmtax show {id}"));
        return if output::is_closed_pipe(&error) { Err(error) } else { Err(error.context(Late("the run broke off"))) };
    }
    ended.map_err(|error| anyhow::Error::from(error).context(Late("after the run")))?;
    let record = store.load_experiment(id)?;
    let printed = if args.json { Ok(()) } else { output::print(&experiment::text(&record, &studies::judged(&record))) };
    if let Some(code) = signals.exit_code() {
        output::note(format!("Kept as run {id}; go on with: vmtax run --resume {id}"));
        return Ok(ExitCode::from(code));
    }
    output::note(format!("Kept as run {id}; `vmtax show {id}` prints it again. No host setting was changed."));
    printed?;
    Ok(if keeper.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn note_missing(missing: &[Missing]) {
    experiment::missing(missing).iter().for_each(output::note);
}

/// Keeps every trial, prints it where that was asked for, and shows where the run stands.
struct Keeper<'s> {
    store: &'s Store,
    id: &'s str,
    count: Count,
    json: bool,
    failed: usize,
}

impl Watcher for Keeper<'_> {
    fn before(&mut self, stand: &Stand) {
        self.count.draw(stand, self.failed);
    }

    fn after(&mut self, trial: &Trial, elapsed: Duration) -> anyhow::Result<()> {
        self.failed += usize::from(trial.outcome.is_failed());
        self.store.keep_experiment(self.id, trial, elapsed.as_secs_f64())?;
        if self.json {
            output::print(&experiment::line(self.id, trial))?;
        }
        Ok(())
    }
}
