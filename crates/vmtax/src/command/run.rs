//! `vmtax run PLAN`: any experiment. Read the plan, see what this host can do, measure, keep, print.

use std::process::ExitCode;

use anyhow::Context;
use vmtax_core::{
    availability::Reserve,
    experiment::{Missing, Record},
    plan::Plan,
};
use vmtax_machine::{clock::Clock, facts, knob, lane};
use vmtax_report::experiment;

pub use self::{
    hold::Hold,
    measure::{Begun, Telling, measure},
};
use self::{missing::Known, source::Source};
use super::{Refusal, matrix::pools, results_file, studies};
use crate::{
    cli::RunArgs,
    guest::{self, GuestError},
    output,
    signal::Signals,
    store::{Beginning, Store},
};

mod changes;
mod domain;
mod hold;
mod loan;
mod measure;
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
    let (source, plan) = like_domain(args, source)?;
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
    let Some(hold) = held(&plan, reserve(args), &signals)? else { return stopped(&signals) };
    // Again after borrowing: pools are part of what the host is.
    let host = facts::host();
    let missing = hold.missing(&host, &plan);
    let hold = hold.unless_idle(&missing, &plan).context("cannot set up the host for the run")?;
    note_missing(&missing);
    let beginning = Beginning { name: &source.name, text: &source.text, seed, host: &host, missing: &missing };
    let id = store.begin_experiment(&beginning)?;
    let claim = store.claim(&id)?;
    let begun = Begun { store: &store, id: &id, claim, clock, pin: &args.pin };
    measure(&telling(args), begun, hold, &signals)
}

/// The plan, with what a domain of libvirt's says of its guests.
fn like_domain(args: &RunArgs, source: &Source) -> anyhow::Result<(Source, Plan)> {
    let plan = Plan::parse(&source.name, &source.text)?;
    let Some(name) = &args.domain else {
        return Ok((Source { name: source.name.clone(), text: source.text.clone() }, plan));
    };
    let like = guest::domain::find(name).map_err(GuestError::from)?;
    for note in domain::notes(&like) {
        output::note(format!("domain {}: {note}", like.name));
    }
    let text = domain::joined(&source.text, &plan, &like)?;
    let plan = Plan::parse(&source.name, &text)?;
    Ok((Source { name: source.name.clone(), text }, plan))
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
    let plan = record.plan.clone();
    check_pin(&args.pin, &plan)?;
    let signals = Signals::catch()?;
    let Some(hold) = held(&plan, reserve(args), &signals)? else { return stopped(&signals) };
    still_there(&record, &hold.missing(&facts::host(), &plan))?;
    note_missing(&record.missing);
    let begun = Begun { store: &store, id, claim, clock, pin: &args.pin };
    measure(&telling(args), begun, hold, &signals)
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
pub fn held(plan: &Plan, reserve: Reserve, signals: &Signals) -> anyhow::Result<Option<Hold>> {
    let hold = match Hold::take(knob::Host::default(), plan, reserve) {
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

fn telling(args: &RunArgs) -> Telling<'static> {
    match args.json {
        true => Telling::Lines,
        false => Telling::Whole(&|record| Ok(experiment::text(record, &studies::judged(record)))),
    }
}

fn reserve(args: &RunArgs) -> Reserve {
    if args.reserve { Reserve::Yes } else { Reserve::No }
}

/// The end of a run that a signal stopped before its first trial.
pub fn stopped(signals: &Signals) -> anyhow::Result<ExitCode> {
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

/// CPUs to bind to: ours to use, and one for each vCPU of the largest cell.
fn check_pin(pin: &[usize], plan: &Plan) -> Result<(), Refusal> {
    if let Some(cpu) = pin.iter().find(|&&cpu| !lane::may_run_on(cpu)) {
        let message = format!("--pin {cpu}: there is no such CPU, or this process may not use it");
        return Err(Refusal::new(message, "those it may use: grep Cpus_allowed_list /proc/self/status"));
    }
    let vcpus = plan.cells().iter().filter_map(|cell| Some(missing::work(plan, cell)?.demand.vcpus)).max();
    match vcpus {
        Some(vcpus) if !pin.is_empty() && pin.len() < vcpus as usize => Err(Refusal::new(
            format!("--pin names too few CPUs: {} for {vcpus} vCPUs", pin.len()),
            "name one for each vCPU, such as --pin 0,1",
        )),
        Some(_) | None => Ok(()),
    }
}

/// Says what the run leaves out, and why.
pub fn note_missing(missing: &[Missing]) {
    let lines = experiment::missing(missing);
    if !lines.is_empty() {
        output::note(lines.trim_end());
    }
}
