//! `vmtax matrix`: the main job. Reserve, measure, give back, print.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Context;
use vmtax_core::{
    arena::Layout,
    availability::{self, Demand, Reserve},
    request::Request,
    run::Ending,
    setting::Backing,
    trial::Trial,
    units::{Bytes, GIB, PageSize},
};
use vmtax_machine::{Kvm, clock::Clock, facts, knob, microvm};

use self::pools::Pools;
use super::{Late, results_file, show};
use crate::{
    cli::MatrixArgs,
    lab::{self, Observer, Plan, Progress, Until, host::HostRig},
    output,
    progress::{self, Bar},
    signal::Signals,
    store::Store,
};

pub mod pools;
pub mod request;

/// Measures, and prints what was measured, also when it was interrupted.
pub fn run(args: &MatrixArgs) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let clock = Clock::default();
    let request = request::request(args, &facts::host(), drawn_seed()?)?;
    let path = results_file(&args.results)?;
    pools::settle(&knob::Host::default())?;
    let store = Store::open(&path)?;
    let signals = Signals::catch()?;
    let pools = match reserve(args, &request) {
        // The kernel cuts a raise of a pool short when a signal comes.
        Err(_) if signals.exit_code().is_some() => Pools::default(),
        outcome => outcome?,
    };
    if let Some(code) = signals.exit_code() {
        pools.give_back()?;
        output::note("Interrupted before anything was measured.");
        return Ok(ExitCode::from(code));
    }
    // Again: pools are part of what the host is, and may have been put back or borrowed from since.
    let host = facts::host();
    let availability = availability::availability(&host, &request.settings, demand(&request));
    let unavailable: Vec<_> = availability.unavailable().map(|why| pools.reason(why)).collect();
    let id = store.begin(&request, &host, &unavailable)?;
    let plan =
        Plan { settings: availability.available().collect(), unavailable, seed: request.seed, until: until(&request) };
    output::note(announcement(args, &request, &plan));
    let mut rig = HostRig {
        probe: request.probe,
        layout: Layout::new(request.probe, request.size, request.stride)?,
        vcpus: request.vcpus as usize,
        pin: request.pin.clone(),
        size: None,
        kvm: Kvm::new().ok(),
        stop: signals.stop(),
        started,
        clock,
        spare: None,
    };
    let mut keeper = Keeper { store: &store, id: &id, bar: Bar::new(plan.until), failed: 0 };
    let outcome = lab::run(&mut rig, &plan, &mut keeper);
    keeper.bar.clear();
    drop(rig);
    let given_back = pools.give_back();
    let ended = store.end(&id, *outcome.as_ref().unwrap_or(&Ending::Failed), started.elapsed().as_secs_f64());
    if let Err(error) = outcome {
        output::note(format!("What was measured before the error is kept: vmtax show {id}"));
        return Err(error.context(Late("the run broke off")));
    }
    let run = store.load(&id)?;
    let printed = show::print(&run, &args.form);
    output::note(format!("Kept as run {id} in {}; `vmtax show` prints it again.", path.display()));
    given_back.context(Late("after the run"))?;
    ended.context(Late("after the run"))?;
    match signals.exit_code() {
        // A terminal that has closed takes no table any more.
        Some(code) => Ok(ExitCode::from(code)),
        None => printed.map(|()| if keeper.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }),
    }
}

/// Pools as the run needs them, where it may change them.
fn reserve(args: &MatrixArgs, request: &Request) -> anyhow::Result<Pools> {
    if !args.reserve {
        return Ok(Pools::default());
    }
    let is_named = |backing| request::is_named(args, backing);
    Pools::borrow(knob::Host::default(), &request.settings, demand(request), is_named)
        .context("cannot borrow huge pages for the run")
}

/// A seed nobody chose. 32 bits, to be typed again.
pub fn drawn_seed() -> anyhow::Result<u64> {
    let mut bytes = [0; 4];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u32::from_ne_bytes(bytes).into())
}

fn until(request: &Request) -> Until {
    let budget = request.budget_seconds.map(Duration::from_secs_f64);
    match (request.blocks, budget) {
        (Some(blocks), None) => Until::Blocks(blocks),
        (Some(blocks), Some(budget)) => Until::BlocksOr(blocks, budget),
        (None, Some(budget)) => Until::PreciseOr(budget),
        (None, None) => unreachable!("a request limits blocks or time"),
    }
}

fn demand(request: &Request) -> Demand {
    let has_guest = request.settings.iter().any(|setting| setting.guest.is_some());
    let tables = if has_guest { microvm::low_bytes(request.size, PageSize::Small) } else { Bytes(0) };
    Demand { arena: request.size, tables, vcpus: request.vcpus, reserve: Reserve::No }
}

/// What will happen, before it does.
fn announcement(args: &MatrixArgs, request: &Request, plan: &Plan) -> String {
    let cells = match plan.settings.len() {
        0 => return "None of the cells asked for can be measured here.".to_owned(),
        1 => "1 cell".to_owned(),
        n => format!("{n} cells"),
    };
    let size = match args.size {
        None if request.size.0 < GIB => format!("{}, a quarter of available memory", request.size),
        None | Some(_) => request.size.to_string(),
    };
    let until = match plan.until {
        Until::Blocks(n) => blocks(n),
        Until::PreciseOr(budget) => format!("up to {}", seconds(budget)),
        Until::BlocksOr(n, budget) => format!("{}, up to {}", blocks(n), seconds(budget)),
    };
    let rest = match plan.unavailable.len() {
        0 => String::new(),
        n => format!(" ({n} cannot be measured here)"),
    };
    format!("Measuring {cells}{rest} on {size}: {until}.")
}

fn blocks(n: u32) -> String {
    if n == 1 { "1 block".to_owned() } else { format!("{n} blocks") }
}

fn seconds(budget: Duration) -> String {
    format!("{:.0} s", budget.as_secs_f64().ceil())
}

/// Keeps every trial, and shows where the run stands.
struct Keeper<'s> {
    store: &'s Store,
    id: &'s str,
    bar: Bar,
    failed: usize,
}

impl Observer for Keeper<'_> {
    fn preparing(&mut self, backing: Backing) {
        self.bar.prepare(backing);
    }

    fn before(&mut self, progress: &Progress) {
        self.bar.draw(progress, self.failed);
    }

    fn after(&mut self, trial: &Trial) -> anyhow::Result<()> {
        self.failed += usize::from(progress::is_failed(&trial.outcome));
        self.store.keep(self.id, trial)
    }
}
