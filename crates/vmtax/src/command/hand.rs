//! An experiment by hand: a plan made from arguments, measured and kept as `vmtax run` does.
//!
//! The plan is written as its author would have: what is kept shows exactly what was asked, and `show`, `compare`, `export`
//! and `run --resume` need not know where it came from.

use std::{process::ExitCode, time::Duration};

use anyhow::Context;
use vmtax_core::{
    availability::{Demand, Reserve},
    experiment::Record,
    host::Host,
    plan::Plan,
    setting::{Backing, Setting},
    units::{Bytes, MIB, PageSize},
};
use vmtax_machine::{
    clock::Clock,
    facts,
    knob::{self, Contention, Lease},
    microvm,
};

use super::{
    Refusal,
    matrix::{
        self,
        pools::{self, Pools},
    },
    results_file,
    run::{self, Means, Telling, missing},
};
use crate::{
    cli::{Blocks, HostLevel, Results},
    output,
    signal::Signals,
    store::{Beginning, Store},
};

/// Blocks where nobody says how many: the fewest whose interval covers what it says whatever the noise, and one to spare.
const BLOCKS: u32 = 7;
const BUDGET: Duration = Duration::from_secs(60);

/// What is asked for.
pub struct Asked<'a> {
    /// The command: what the run is called.
    pub name: &'static str,
    /// Everything of the plan but `[replication]`.
    pub plan: String,
    /// The lines of `[replication]`, without the seed.
    pub replication: String,
    /// Orders and layouts follow from it; drawn where it is none.
    pub seed: Option<u64>,
    /// What it takes of the host.
    pub lend: Lend<'a>,
    /// Where it is kept.
    pub results: &'a Results,
}

/// What an experiment takes of the host for its time.
pub enum Lend<'a> {
    /// Nothing.
    Nothing,
    /// The right to raise pools, which its trials do themselves.
    Lease,
    /// Pages for the backings of its cells; those named must be had in full.
    Pages(&'a [HostLevel]),
}

impl<'a> Lend<'a> {
    /// Pages for `--reserve`, with the backings that were named.
    pub fn pages(is_asked: bool, named: Option<&'a Vec<HostLevel>>) -> Lend<'a> {
        if is_asked { Lend::Pages(named.map_or(&[], Vec::as_slice)) } else { Lend::Nothing }
    }
}

/// Measures what was asked, keeps it, and prints it as `text` has it.
pub fn run(asked: Asked<'_>, text: &dyn Fn(&Record) -> anyhow::Result<String>) -> anyhow::Result<ExitCode> {
    let clock = Clock::default();
    let seed = asked.seed.map_or_else(matrix::drawn_seed, Ok)?;
    let written = format!("{}\n[replication]\n{}seed = {seed}\n", asked.plan, asked.replication);
    let plan = Plan::parse(asked.name, &written)?;
    let path = results_file(asked.results)?;
    pools::settle(&knob::Host::default())?;
    let store = Store::open(&path)?;
    let signals = Signals::catch()?;
    let lent = match lend(&plan, &asked.lend) {
        // The kernel cuts a raise of a pool short when a signal comes.
        Err(_) if signals.exit_code().is_some() => Lent::Nothing,
        outcome => outcome.context("cannot borrow huge pages for the run")?,
    };
    let host = facts::host();
    let mut missing = missing::on(&host, &plan);
    if let Lent::Pages(pools) = &lent {
        for cell in &mut missing {
            let job = plan.cell(&cell.cell).and_then(|cell| plan.job(&cell).ok());
            let Some(setting) = job.and_then(|job| job.setting()) else { continue };
            let known =
                vmtax_core::trial::Unavailable { setting, reason: cell.reason.clone(), remedy: cell.remedy.clone() };
            let why = pools.reason(&known);
            (cell.reason, cell.remedy) = (why.reason, why.remedy);
        }
    }
    let beginning = Beginning { name: asked.name, text: &written, seed, host: &host, missing: &missing };
    let id = store.begin_experiment(&beginning)?;
    let lease = match lent {
        Lent::Nothing => None,
        Lent::Lease(lease) => Some(*lease),
        Lent::Pages(pools) => pools.into_lease(),
    };
    run::measure(Telling::Whole(text), &store, &id, clock, Means { signals, lease })
}

enum Lent {
    Nothing,
    Lease(Box<Lease>),
    Pages(Box<Pools>),
}

fn lend(plan: &Plan, lend: &Lend<'_>) -> Result<Lent, knob::Error> {
    let host = knob::Host::default();
    Ok(match lend {
        Lend::Nothing => Lent::Nothing,
        Lend::Lease => {
            let lease = Lease::acquire(host, Contention::Refuse)?;
            lease.recovered().iter().for_each(|outcome| output::note(format!("left by an earlier run: {outcome}")));
            Lent::Lease(Box::new(lease))
        }
        Lend::Pages(named) => {
            let is_named = |backing: Backing| named.iter().any(|level| level.backing() == backing);
            let (settings, demand) = demand(plan);
            Lent::Pages(Box::new(Pools::borrow(host, &settings, demand, is_named)?))
        }
    })
}

/// The settings of a plan, and what the largest of its jobs takes.
fn demand(plan: &Plan) -> (Vec<Setting>, Demand) {
    let jobs: Vec<_> = plan.cells().iter().filter_map(|cell| plan.job(cell).ok()).collect();
    let mut settings: Vec<Setting> = jobs.iter().filter_map(|job| job.setting()).collect();
    settings.dedup();
    let size = jobs.iter().map(|job| job.memory()).max().unwrap_or(Bytes(0));
    let has_guest = settings.iter().any(|setting| setting.guest.is_some());
    let tables = if has_guest { microvm::low_bytes(size, PageSize::Small) } else { Bytes(0) };
    (settings, Demand { arena: size, tables, vcpus: 1, reserve: Reserve::No })
}

/// `blocks` and `budget` as a plan has them.
pub fn replication(blocks: &Blocks) -> String {
    match (blocks.blocks, blocks.budget) {
        (Some(n), None) => format!("blocks = {n}\n"),
        (n, budget) => {
            let budget = humantime::format_duration(budget.unwrap_or(BUDGET));
            format!("blocks = {}\nbudget = \"{budget}\"\n", n.unwrap_or(BLOCKS))
        }
    }
}

/// Levels as a plan lists them: `["4k", "2m"]`.
pub fn list<L: std::fmt::Display>(levels: impl IntoIterator<Item = L>) -> String {
    let quoted: Vec<String> = levels.into_iter().map(|level| format!("\"{level}\"")).collect();
    format!("[{}]", quoted.join(", "))
}

/// A size as a plan writes it: `128M`.
pub fn size(bytes: Bytes) -> String {
    vmtax_core::factor::Level::Size(bytes).to_string()
}

/// The backings named, or all, in the order in which tables have them.
pub fn hosts(named: Option<&Vec<HostLevel>>) -> Vec<Backing> {
    let is_meant = |backing: &Backing| named.is_none_or(|levels| levels.iter().any(|l| l.backing() == *backing));
    Backing::ALL.into_iter().filter(is_meant).collect()
}

/// Whole small pages, at least one of the large, and no more than three quarters of what is available.
pub fn fits(size: Bytes, host: &Host) -> Result<(), Refusal> {
    if size.0 == 0 || !size.0.is_multiple_of(PageSize::Large.bytes()) {
        return Err(Refusal::new(format!("--size {} is no multiple of 2 MiB", size), "--size 128M, for instance"));
    }
    match host.memory.available {
        Some(available) if size.0 > available.0 / 4 * 3 => Err(Refusal::new(
            format!("--size {size} does not fit: {} MiB of memory are available", available.0 / MIB),
            format!("--size {}M, or free some memory", (available.0 / 2 / MIB).max(2) & !1),
        )),
        Some(_) | None => Ok(()),
    }
}
