//! An experiment by hand: a plan made from arguments, measured and kept as `vmtax run` does.
//!
//! The plan is written as its author would have: what is kept shows exactly what was asked, and `show`, `compare`, `export`
//! and `run --resume` need not know where it came from.

use std::{process::ExitCode, time::Duration};

use anyhow::Context;
use vmtax_core::{
    availability::Reserve,
    experiment::Record,
    host::Host,
    plan::Plan,
    setting::Backing,
    units::{Bytes, MIB, PageSize},
};
use vmtax_machine::{clock::Clock, facts, knob};

use super::{
    Refusal,
    matrix::{self, pools},
    results_file,
    run::{self, Begun, Telling},
};
use crate::{
    cli::{Blocks, HostLevel, Results},
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
    /// Whether pages are borrowed for it.
    pub reserve: Reserve,
    /// Backings whose pages must be had then.
    pub named: Vec<Backing>,
    /// Where it is kept.
    pub results: &'a Results,
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
    let Some(hold) = run::held(&plan, asked.reserve, &signals)? else { return run::stopped(&signals) };
    hold.insist(&asked.named).context("cannot borrow huge pages for the run")?;
    let host = facts::host();
    let missing = hold.missing(&host, &plan);
    let hold = hold.unless_idle(&missing, &plan).context("cannot set up the host for the run")?;
    let beginning = Beginning { name: asked.name, text: &written, seed, host: &host, missing: &missing };
    let id = store.begin_experiment(&beginning)?;
    let claim = store.claim(&id)?;
    let begun = Begun { store: &store, id: &id, claim, clock, pin: &[] };
    run::measure(&Telling::Whole(text), begun, hold, &signals)
}

/// `--reserve`.
pub fn reserve(is_asked: bool) -> Reserve {
    if is_asked { Reserve::Yes } else { Reserve::No }
}

/// Backings that were asked for by name: their pages must be had.
pub fn named(levels: Option<&Vec<HostLevel>>) -> Vec<Backing> {
    levels.into_iter().flatten().map(|level| level.backing()).collect()
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
