//! `vmtax matrix`: the main job. Reserve, measure, give back, print.

use std::{process::ExitCode, time::Instant};

use vmtax_core::{
    arena::Layout,
    availability::{self, Demand, Reserve, pool_need},
    request::Request,
    run::Ending,
    setting::Backing,
    trial::{Trial, Unavailable},
    units::{Bytes, PageSize},
};
use vmtax_machine::{
    Kvm,
    clock::Clock,
    facts,
    knob::{self, Contention, Lease, Want},
    microvm,
};

use super::show;
use crate::{
    cli::MatrixArgs,
    lab::{self, Observer, Plan, Progress, Until, host::HostRig},
    output,
    progress::{self, Bar},
    signal::Signals,
    store::Store,
};

pub mod request;

/// Measures, and prints what was measured, also when it was interrupted.
pub fn run(args: &MatrixArgs) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let clock = Clock::default();
    let host = facts::host();
    let request = request::request(args, &host, drawn_seed()?)?;
    let path = args.results.db.clone().map_or_else(Store::default_path, Ok)?;
    let store = Store::open(&path)?;
    let signals = Signals::catch()?;
    let (lease, shortages) = if args.reserve { reserve(args, &request)? } else { (None, Vec::new()) };
    // Again: pools are part of what the host is.
    let host = if lease.is_some() { facts::host() } else { host };
    let availability = availability::availability(&host, &request.settings, demand(&request));
    let unavailable: Vec<_> = availability.unavailable().map(|why| with_shortage(why, &shortages)).collect();
    let id = store.begin(&request, &host, &unavailable)?;
    let plan =
        Plan { settings: availability.available().collect(), unavailable, seed: request.seed, until: until(&request) };
    let mut rig = HostRig {
        probe: request.probe,
        layout: Layout::new(request.probe, request.size, request.stride)?,
        vcpus: request.vcpus as usize,
        pin: request.pin.clone(),
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
    give_back(lease)?;
    store.end(&id, *outcome.as_ref().unwrap_or(&Ending::Failed), started.elapsed().as_secs_f64())?;
    if let Err(error) = outcome {
        output::note(format!("What was measured before the error is kept: vmtax show {id}"));
        return Err(error);
    }
    let run = store.load(&id)?;
    show::print(&run, &args.form)?;
    output::note(format!("Kept as run {id} in {}; `vmtax show` prints it again.", path.display()));
    Ok(match signals.exit_code() {
        Some(code) => ExitCode::from(code),
        None if keeper.failed > 0 => ExitCode::FAILURE,
        None => ExitCode::SUCCESS,
    })
}

/// A seed nobody chose. 32 bits, to be typed again.
fn drawn_seed() -> anyhow::Result<u64> {
    let mut bytes = [0; 4];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u32::from_ne_bytes(bytes).into())
}

fn until(request: &Request) -> Until {
    let budget = request.budget_seconds.map(std::time::Duration::from_secs_f64);
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

/// Borrows the pages that the backings asked for need. A backing that was named must be had in full; one that is there by
/// default is listed as unavailable if it cannot.
fn reserve(args: &MatrixArgs, request: &Request) -> anyhow::Result<(Option<Lease>, Vec<Shortage>)> {
    let Demand { arena, tables, .. } = demand(request);
    let wants: Vec<(Backing, Want)> = Backing::ALL
        .into_iter()
        .filter(|backing| request.settings.iter().any(|setting| setting.host == *backing))
        .filter(|backing| arena.0.is_multiple_of(backing.page().bytes()))
        .filter_map(|backing| {
            pool_need(backing, arena.0, tables.0).map(|(page, pages)| (backing, Want { page, pages }))
        })
        .collect();
    let host = knob::Host::default();
    let mut lease = Lease::acquire(host.clone(), Contention::Refuse)?;
    for outcome in lease.recovered() {
        output::note(format!("left by an earlier run: {outcome}"));
    }
    knob::check_memory(&host, &wants.iter().map(|(_, want)| *want).collect::<Vec<_>>())?;
    let mut shortages = Vec::new();
    for (backing, want) in wants {
        match lease.borrow_pool(want) {
            Ok(_) => {}
            Err(error @ (knob::Error::Partial { .. } | knob::Error::NoPool { .. }))
                if !request::is_named(args, backing) =>
            {
                shortages.push(Shortage { backing, error });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok((Some(lease), shortages))
}

/// A pool that could not be borrowed, for a backing nobody named.
#[derive(Debug)]
struct Shortage {
    backing: Backing,
    error: knob::Error,
}

/// Why a setting is unavailable, in the words of the attempt where one was made.
fn with_shortage(why: &Unavailable, shortages: &[Shortage]) -> Unavailable {
    match shortages.iter().find(|shortage| shortage.backing == why.setting.host) {
        Some(Shortage { error, .. }) => {
            Unavailable { reason: error.to_string(), remedy: error.remedy().unwrap_or_default(), ..why.clone() }
        }
        None => why.clone(),
    }
}

fn give_back(lease: Option<Lease>) -> anyhow::Result<()> {
    let Some(lease) = lease else { return Ok(()) };
    for outcome in lease.release()? {
        output::note(outcome);
    }
    Ok(())
}

/// Keeps every trial, and shows where the run stands.
struct Keeper<'s> {
    store: &'s Store,
    id: &'s str,
    bar: Bar,
    failed: usize,
}

impl Observer for Keeper<'_> {
    fn before(&mut self, progress: &Progress) {
        self.bar.draw(progress, self.failed);
    }

    fn after(&mut self, trial: &Trial) -> anyhow::Result<()> {
        self.failed += usize::from(progress::is_failed(&trial.outcome));
        self.store.keep(self.id, trial)
    }
}
