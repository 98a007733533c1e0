//! What `vmtax touch` and `vmtax walk` share: borrow pools, measure in blocks, give back.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Context;
use vmtax_core::{
    availability::{self, Demand, Reserve},
    experiment::Finding,
    host::Host,
    series::{Absent, Series},
    setting::Setting,
    units::{Bytes, MIB, PageSize},
};
use vmtax_machine::{Kvm, clock::Clock, facts, knob, microvm};

use super::{
    Late, Refusal,
    matrix::{
        self,
        pools::{self, Pools},
    },
};
use crate::{
    cli::Blocks,
    lab::{
        TrialError, Until,
        series::{self, Bench},
    },
    output,
    progress::Pace,
    signal::Signals,
};

/// Blocks where nobody says how many: the fewest whose interval covers what it says whatever the noise, and one to spare.
const BLOCKS: u32 = 7;
const BUDGET: Duration = Duration::from_secs(60);

/// What is to be measured, on how much memory.
pub struct Work<'w, C> {
    /// Every cell, in the order of the table.
    pub cells: Vec<C>,
    /// What the host must be able to do for one.
    pub setting: fn(C) -> Setting,
    /// A cell in words, for the progress bar.
    pub name: fn(C) -> String,
    /// Memory a trial takes.
    pub size: Bytes,
    /// How often, on what.
    pub blocks: &'w Blocks,
}

/// What was measured, also when it was interrupted, and the exit code that says so.
pub struct Measured<C> {
    pub series: Series<C>,
    pub code: ExitCode,
}

/// Measures all cells that this host can give.
pub fn measure<C: Copy + PartialEq>(
    work: Work<'_, C>,
    trial: impl Fn(&Bench, C) -> Result<Finding, TrialError>,
) -> anyhow::Result<Measured<C>> {
    let (started, clock) = (Instant::now(), Clock::default());
    fits(work.size, &facts::host())?;
    let seed = work.blocks.seed.map_or_else(matrix::drawn_seed, Ok)?;
    pools::settle(&knob::Host::default())?;
    let signals = Signals::catch()?;
    let mut settings: Vec<Setting> = work.cells.iter().map(|&cell| (work.setting)(cell)).collect();
    settings.dedup();
    let borrowed = match borrow(&work, &settings) {
        // The kernel cuts a raise of a pool short when a signal comes.
        Err(_) if signals.exit_code().is_some() => Pools::default(),
        outcome => outcome?,
    };
    let host = facts::host();
    let available = availability::availability(&host, &settings, demand(&settings, work.size));
    let absent = |&cell: &C| {
        let why = borrowed.reason(available.of((work.setting)(cell))?.err()?);
        Some(Absent { cell, reason: why.reason, remedy: why.remedy })
    };
    let absent: Vec<Absent<C>> = work.cells.iter().filter_map(absent).collect();
    let cells: Vec<C> = work.cells.iter().copied().filter(|cell| absent.iter().all(|a| a.cell != *cell)).collect();
    let kvm = Kvm::new().ok();
    let bench = Bench { kvm: kvm.as_ref(), clock, stop: signals.stop() };
    let until = until(work.blocks);
    output::note(format!("Measuring {} of {} cells, seed {seed}.", cells.len(), work.cells.len()));
    let pace = Pace::new(until);
    let (records, ending) = series::run(
        (seed, until),
        &cells,
        started,
        signals.stop(),
        |step| pace.draw(&step, &(work.name)(step.next)),
        |cell| trial(&bench, cell),
    );
    pace.clear();
    let seconds = started.elapsed().as_secs_f64();
    let series = Series { host, seed, cells: work.cells, absent, records, ending, seconds };
    borrowed.give_back().context(Late("after the run"))?;
    let failed = series.cells.iter().any(|&cell| series.failures(cell).next().is_some());
    let code = match signals.exit_code() {
        Some(code) => ExitCode::from(code),
        None if failed => ExitCode::FAILURE,
        None => ExitCode::SUCCESS,
    };
    Ok(Measured { series, code })
}

fn borrow<C>(work: &Work<'_, C>, settings: &[Setting]) -> anyhow::Result<Pools> {
    if !work.blocks.reserve {
        return Ok(Pools::default());
    }
    let is_named = |backing| work.blocks.host.iter().flatten().any(|level| level.backing() == backing);
    Pools::borrow(knob::Host::default(), settings, demand(settings, work.size), is_named)
        .context("cannot borrow huge pages for the run")
}

fn demand(settings: &[Setting], size: Bytes) -> Demand {
    let has_guest = settings.iter().any(|setting| setting.guest.is_some());
    let tables = if has_guest { microvm::low_bytes(size, PageSize::Small) } else { Bytes(0) };
    Demand { arena: size, tables, vcpus: 1, reserve: Reserve::No }
}

fn until(blocks: &Blocks) -> Until {
    match (blocks.blocks, blocks.budget) {
        (Some(n), None) => Until::Blocks(n),
        (n, budget) => Until::BlocksOr(n.unwrap_or(BLOCKS), budget.unwrap_or(BUDGET)),
    }
}

/// Whole small pages, at least one of the large, and no more than half of what is available beside us.
fn fits(size: Bytes, host: &Host) -> Result<(), Refusal> {
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
