//! `vmtax run PLAN`: any experiment. Read the plan, see what this host can do, measure, keep, print.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Context;
use vmtax_core::{
    availability::Reserve,
    experiment::{Missing, Record, Trial},
    plan::{Plan, Replication, Task},
    run::Ending,
};
use vmtax_machine::{
    clock::Clock,
    facts,
    knob::{self, Lease},
};
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

pub(super) mod missing;
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
    note_missing(&missing);
    measure(Telling::of(args), &store, &id, clock, Means::none()?)
}

fn resume(args: &RunArgs, id: &str) -> anyhow::Result<ExitCode> {
    let clock = Clock::default();
    let path = results_file(&args.results)?;
    pools::settle(&knob::Host::default())?;
    let store = Store::open(&path)?;
    let record = store.load_experiment(id)?;
    note_missing(&record.missing);
    runnable(record.plan)?;
    measure(Telling::of(args), &store, id, clock, Means::none()?)
}

/// What is said of a run on standard output.
pub enum Telling<'t> {
    /// Each trial as it ends, as a line of JSON.
    Lines,
    /// All of it at the end, in these words.
    Whole(&'t dyn Fn(&Record) -> anyhow::Result<String>),
}

impl Telling<'static> {
    fn of(args: &RunArgs) -> Telling<'static> {
        if args.json {
            Telling::Lines
        } else {
            Telling::Whole(&|record| Ok(experiment::text(record, &studies::judged(record))))
        }
    }
}

/// What a run may use of the host beside its CPUs and memory.
#[derive(Debug)]
pub struct Means {
    /// Ends it.
    pub signals: Signals,
    /// The right to borrow pages, with what was borrowed already; given back at the end.
    pub lease: Option<Lease>,
}

impl Means {
    fn none() -> anyhow::Result<Means> {
        Ok(Means { signals: Signals::catch()?, lease: None })
    }
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
pub fn measure(telling: Telling<'_>, store: &Store, id: &str, clock: Clock, means: Means) -> anyhow::Result<ExitCode> {
    let Means { signals, lease } = means;
    let record = store.load_experiment(id)?;
    let before = Duration::from_secs_f64(record.seconds.unwrap_or(0.0));
    output::note(experiment::announcement(&record));
    store.end_experiment(id, None, before.as_secs_f64())?;
    let until = match record.plan.replication {
        Replication::Blocks(n) => crate::lab::Until::Blocks(n),
        Replication::Within { blocks, budget } => crate::lab::Until::BlocksOr(blocks, budget),
        Replication::Target { budget, .. } => crate::lab::Until::PreciseOr(budget),
    };
    let started = Instant::now();
    let mut bench = HostBench::new(signals.stop(), clock, started, before, until);
    if lease.is_some() {
        (bench.lease, bench.borrowing) = (lease, Reserve::Yes);
    }
    let missing = record.missing.iter().map(|missing| missing.cell.clone()).collect();
    let session = Session { plan: &record.plan, seed: record.seed, missing, kept: record.trials.clone() };
    let count = Count::new(record.plan.replication);
    let mut keeper = Keeper { store, id, count, json: matches!(telling, Telling::Lines), failed: 0 };
    let outcome = crate::lab::experiment::run(&mut bench, session, &mut keeper);
    keeper.count.clear();
    let elapsed = before + started.elapsed();
    let lease = bench.lease.take();
    let has_lease = lease.is_some();
    drop(bench);
    let given_back = lease.map_or(Ok(Vec::new()), Lease::release);
    let ended = store.end_experiment(id, Some(*outcome.as_ref().unwrap_or(&Ending::Failed)), elapsed.as_secs_f64());
    if let Err(error) = outcome {
        output::note(format!("What was measured before the error is kept: vmtax show {id}"));
        return if output::is_closed_pipe(&error) { Err(error) } else { Err(error.context(Late("the run broke off"))) };
    }
    ended.map_err(|error| anyhow::Error::from(error).context(Late("after the run")))?;
    let record = store.load_experiment(id)?;
    let printed = match telling {
        Telling::Lines => Ok(()),
        Telling::Whole(text) => text(&record).and_then(|text| Ok(output::print(&text)?)),
    };
    let given_back = given_back.context(Late("after the run"))?;
    given_back.iter().for_each(output::note);
    if let Some(code) = signals.exit_code() {
        output::note(format!("Kept as run {id}; go on with: vmtax run --resume {id}"));
        return Ok(ExitCode::from(code));
    }
    let raises = has_lease || record.plan.workloads.iter().any(|workload| workload.kind.task == Task::Reserve);
    let changed = match (given_back.is_empty(), raises) {
        (false, _) => "",
        (true, true) => " Pools that trials raised are as they were.",
        (true, false) => " No host setting was changed.",
    };
    output::note(format!("Kept as run {id}; `vmtax show {id}` prints it again.{changed}"));
    printed?;
    Ok(if keeper.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn note_missing(missing: &[Missing]) {
    let lines = experiment::missing(missing);
    if !lines.is_empty() {
        output::note(lines.trim_end());
    }
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
