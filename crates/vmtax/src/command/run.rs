//! `vmtax run PLAN`: any experiment. Read the plan, see what this host can do, measure, keep, print.

use std::{
    collections::BTreeMap,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Context;
use vmtax_core::{
    availability::Reserve,
    experiment::{Missing, Record, Trial},
    plan::{Plan, Replication},
    run::Ending,
};
use vmtax_machine::{clock::Clock, facts, knob, lane};
use vmtax_report::{experiment, listing::item};

use self::{hold::Hold, missing::Known, source::Source};
use super::{Late, Refusal, matrix::pools, results_file};
use crate::{
    cli::RunArgs,
    lab::{
        bench::HostBench,
        experiment::{Session, Stand, Watcher},
    },
    output,
    progress::Count,
    signal::Signals,
    store::{Beginning, Claim, Store},
};

mod changes;
mod hold;
mod loan;
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
    check_pin(&args.pin, &plan)?;
    let seed = args.seed.or(plan.seed).map_or_else(super::matrix::drawn_seed, Ok)?;
    if args.dry_run {
        output::print(&dry_run(args, &plan, seed))?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = results_file(&args.results)?;
    pools::settle(&knob::Host::default())?;
    let store = Store::open(&path)?;
    let signals = Signals::catch()?;
    let Some(hold) = held(args, &plan, &signals)? else { return stopped(&signals) };
    // Again after borrowing: pools are part of what the host is.
    let host = facts::host();
    let missing = hold.missing(&host, &plan);
    let hold = hold.unless_idle(&missing, &plan).context("cannot set up the host for the run")?;
    let beginning = Beginning { name: &source.name, text: &source.text, seed, host: &host, missing: &missing };
    let id = store.begin_experiment(&beginning)?;
    let claim = store.claim(&id)?;
    measure(args, &Measured { store: &store, id: &id, claim, clock }, hold, &signals)
}

fn resume(args: &RunArgs, id: &str) -> anyhow::Result<ExitCode> {
    let clock = Clock::default();
    let path = results_file(&args.results)?;
    let store = Store::open(&path)?;
    if !store.has_experiment(id)? && store.load(id).is_ok() {
        let message = format!("run {id} is one of vmtax matrix, and matrix runs are not resumed");
        return Err(Refusal::new(message, "measure it again with vmtax matrix; what it has is kept: vmtax show").into());
    }
    let record = store.load_experiment(id)?;
    let claim = store.claim(id)?;
    pools::settle(&knob::Host::default())?;
    let plan = runnable(record.plan.clone())?;
    check_pin(&args.pin, &plan)?;
    let signals = Signals::catch()?;
    let Some(hold) = held(args, &plan, &signals)? else { return stopped(&signals) };
    still_there(&record, &hold.missing(&facts::host(), &plan))?;
    measure(args, &Measured { store: &store, id, claim, clock }, hold, &signals)
}

/// What a resumed run had been able to measure it must still be able to, or it would end in failures.
fn still_there(record: &Record, missing: &[Missing]) -> Result<(), Refusal> {
    let is_known = |cell: &str| record.missing.iter().any(|known| known.cell == cell);
    let Some(Missing { cell, reason, remedy }) = missing.iter().find(|missing| !is_known(&missing.cell)) else {
        return Ok(());
    };
    let remedy = remedy.replace("vmtax run --reserve", &format!("vmtax run --resume {} --reserve", record.id));
    Err(Refusal::new(format!("run {} could measure {cell} and cannot now: {reason}", record.id), remedy))
}

/// The host as the plan needs it; none when a signal came first.
fn held(args: &RunArgs, plan: &Plan, signals: &Signals) -> anyhow::Result<Option<Hold>> {
    let hold = match Hold::take(knob::Host::default(), plan, reserve(args)) {
        // The kernel cuts a raise of a pool short when a signal comes.
        Err(_) if signals.exit_code().is_some() => return Ok(None),
        hold => hold.context("cannot set up the host for the run")?,
    };
    match signals.exit_code() {
        None => Ok(Some(hold)),
        Some(_) => {
            hold.release()?.say();
            Ok(None)
        }
    }
}

fn reserve(args: &RunArgs) -> Reserve {
    if args.reserve { Reserve::Yes } else { Reserve::No }
}

fn stopped(signals: &Signals) -> anyhow::Result<ExitCode> {
    output::note("Interrupted before anything was measured.");
    Ok(signals.exit_code().map_or(ExitCode::FAILURE, ExitCode::from))
}

fn dry_run(args: &RunArgs, plan: &Plan, seed: u64) -> String {
    let host = knob::Host::default();
    let missing = missing::on(Known { facts: &facts::host(), knobs: &host, shortages: &[], denied: None }, plan);
    let changes = experiment::Changes {
        turned: changes::turned(&host, plan, &missing),
        loans: changes::loans(&host, plan),
        reserve: reserve(args),
    };
    experiment::dry_run(plan, seed, &missing, &changes)
}

/// What this version can run.
fn runnable(plan: Plan) -> Result<Plan, Refusal> {
    match plan.not_yet() {
        None => Ok(plan),
        Some(what) => Err(Refusal::new(what, "plans may run the probes chase, stride, stride-write and random")),
    }
}

/// CPUs to bind to: ours to use, and one for each vCPU of the largest cell.
fn check_pin(pin: &[usize], plan: &Plan) -> Result<(), Refusal> {
    if let Some(cpu) = pin.iter().find(|&&cpu| !lane::may_run_on(cpu)) {
        let message = format!("--pin {cpu}: there is no such CPU, or this process may not use it");
        return Err(Refusal::new(message, "those it may use: grep Cpus_allowed_list /proc/self/status"));
    }
    let vcpus = plan.cells().iter().filter_map(|cell| Some(missing::work(plan, cell).ok()?.demand.vcpus)).max();
    match vcpus {
        Some(vcpus) if !pin.is_empty() && pin.len() < vcpus as usize => Err(Refusal::new(
            format!("--pin names too few CPUs: {} for {vcpus} vCPUs", pin.len()),
            "name one for each vCPU, such as --pin 0,1",
        )),
        Some(_) | None => Ok(()),
    }
}

/// A run that was begun, now or long ago.
struct Measured<'m> {
    store: &'m Store,
    id: &'m str,
    /// Nobody else adds to it meanwhile.
    #[allow(dead_code, reason = "held, not used")]
    claim: Claim,
    clock: Clock,
}

/// Measures what is left of a run.
fn measure(args: &RunArgs, run: &Measured<'_>, mut hold: Hold, signals: &Signals) -> anyhow::Result<ExitCode> {
    let Measured { store, id, clock, .. } = *run;
    let record = store.load_experiment(id)?;
    let before = Duration::from_secs_f64(record.seconds.unwrap_or(0.0));
    note_missing(&record.missing);
    output::note(experiment::announcement(&record));
    store.end_experiment(id, None, before.as_secs_f64())?;
    let until = match record.plan.replication {
        Replication::Blocks(n) => crate::lab::Until::Blocks(n),
        Replication::Target { budget, .. } => crate::lab::Until::PreciseOr(budget),
    };
    let started = Instant::now();
    let mut bench = HostBench::new(signals.stop(), hold.knobs(), &args.pin, clock, started, before, until);
    let missing = record.missing.iter().map(|missing| missing.cell.clone()).collect();
    let session = Session { plan: &record.plan, seed: record.seed, missing, kept: record.trials.clone() };
    let count = Count::new(record.plan.replication);
    let mut keeper = Keeper { store, id, count, json: args.json, failed: 0 };
    let outcome = crate::lab::experiment::run(&mut bench, session, &mut keeper);
    keeper.count.clear();
    let elapsed = before + started.elapsed();
    drop(bench);
    // First of all: whatever else goes wrong now, the host is back.
    let released = hold.release();
    let ended = store.end_experiment(id, Some(*outcome.as_ref().unwrap_or(&Ending::Failed)), elapsed.as_secs_f64());
    if let Err(error) = outcome {
        output::note(format!("What was measured before the error is kept: vmtax show {id}"));
        released.context(Late("after the run"))?.say();
        return if output::is_closed_pipe(&error) { Err(error) } else { Err(error.context(Late("the run broke off"))) };
    }
    ended.map_err(|error| anyhow::Error::from(error).context(Late("after the run")))?;
    let record = store.load_experiment(id)?;
    let printed = if args.json { Ok(()) } else { output::print(&experiment::text(&record)) };
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

/// A paragraph for each reason; the table names every cell.
fn note_missing(missing: &[Missing]) {
    let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for Missing { cell, reason, remedy } in missing {
        reasons.entry((reason, remedy)).or_default().push(cell);
    }
    for ((reason, remedy), cells) in reasons {
        let which = match cells[..] {
            [cell] => cell.to_owned(),
            _ => format!("{} cells such as {}", cells.len(), cells[0]),
        };
        output::note(item("not here: ", &format!("{which}: {reason}; {remedy}")).trim_end());
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
