//! What a plan would change on this host: for `--dry-run`, and for nobody else.

use std::collections::BTreeSet;

use vmtax_core::{
    availability::Reserve,
    experiment::Missing,
    factor::Level,
    plan::{Cell, Plan, Varied},
    units::PageSize,
};
use vmtax_machine::{
    knob::{Host, Knob, Pool, Position, Switch},
    mthp::Mthp,
};
use vmtax_report::experiment::{Loan, Turned};

use super::loan;
use crate::lab::knobs;

/// Every setting that the cells of the plan vary, with what it is now.
pub fn turned(host: &Host, plan: &Plan, missing: &[Missing]) -> Vec<Turned> {
    let is_there = |cell: &Cell| missing.iter().all(|missing| missing.cell != cell.name());
    let cells: Vec<Cell> = plan.cells().into_iter().filter(is_there).collect();
    let now = |name| match knobs::knob(name).map(|knob| Position::now(host, knob)) {
        Some(Ok(position)) => position.value.to_string(),
        Some(Err(_)) | None => "not here".to_owned(),
    };
    let factor = |varied: &Varied| {
        let file = varied.factor.changes?;
        let name = varied.factor.name;
        let is_set = |level: &&Level| cells.iter().any(|cell| cell.setting.named(name) == Some(**level));
        let levels: Vec<String> = varied.levels.iter().filter(is_set).map(ToString::to_string).collect();
        (!levels.is_empty()).then(|| Turned { factor: name.to_owned(), file: file.to_owned(), now: now(name), levels })
    };
    let factors = plan.factors.iter().filter_map(factor);
    let mut sizes: Vec<_> = cells.iter().filter_map(|cell| knobs::size_of(&plan.memory(cell))).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let size = |size: Mthp| Turned {
        factor: format!("host={size}"),
        file: "/sys/kernel/mm/transparent_hugepage/hugepages-*kB/enabled".to_owned(),
        now: words(host),
        levels: vec![format!("madvise for {}, never for the others", size.bytes())],
    };
    let raised = knobs::pools_raised(plan, Reserve::No).into_iter().map(|page| Turned {
        factor: format!("pool of {} pages", page.prose()),
        file: Knob::Pool(page).path(host).display().to_string(),
        now: Position::now(host, Knob::Pool(page)).map_or("not here".to_owned(), |now| now.value.to_string()),
        levels: vec!["raised and put back within each trial of `reserve`".to_owned()],
    });
    factors.chain(sizes.into_iter().map(size)).chain(raised).collect()
}

/// What `--reserve` would borrow.
pub fn loans(host: &Host, plan: &Plan) -> Vec<Loan> {
    let lacking = |(page, amounts): (PageSize, BTreeSet<u64>)| {
        let pages = amounts.last().copied().unwrap_or(0);
        let free = Pool::read(host, page).map_or(0, Pool::available);
        (free < pages).then_some(Loan { page, pages, free })
    };
    loan::needs(plan).into_iter().filter_map(lacking).collect()
}

/// What the switches of all sizes say now: `never, inherit for 2 MiB`.
fn words(host: &Host) -> String {
    let read = |size: Mthp| Some((size, Switch::Mthp(size).read(host).ok()?));
    let on: Vec<String> = Mthp::all()
        .filter_map(read)
        .filter(|(_, word)| word != "never")
        .map(|(size, word)| format!("{word} for {}", size.bytes()))
        .collect();
    if on.is_empty() { "never".to_owned() } else { format!("{}, else never", on.join(", ")) }
}
