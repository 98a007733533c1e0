//! A trial of a walk: fresh, unpopulated memory walked at one stride, pass after pass.

use std::{collections::BTreeMap, slice};

use vmtax_core::{
    arena::Layout,
    evidence,
    experiment::Finding,
    setting::Setting,
    trial::Evidence,
    units::Bytes,
    walk::{Cell, Request, metric},
};
use vmtax_machine::{
    arena::Arena,
    backing::Memory,
    interference::Watch,
    lane::{Native, run_phase},
};

use super::{
    TrialError,
    series::{Bench, caveats, cost, ended, failed},
};

/// Walks a region of its own, and gives the average time per reference of all passes so far after 1, 2, 4 … passes.
pub fn trial(bench: &Bench, cell: Cell, request: &Request) -> Result<Finding, TrialError> {
    let memory = Memory::map(cell.host, request.size).map_err(|e| failed(&e))?;
    let layout = Layout::new(cell.order.probe(), request.size, cell.stride).map_err(|e| failed(&e))?;
    let arena = Arena::new(memory, layout, cell.order.probe(), 0, 1).map_err(|e| failed(&e))?;
    let counts = request.passes_at(cell.stride);
    let passes = counts.last().copied().expect("one pass is always made") as usize;
    let watch = Watch::start();
    let (mut lane, mut cursors) = (Native::new(&arena, bench.stop), [arena.cursor(0, 1)]);
    let phase = run_phase(slice::from_mut(&mut lane), &mut cursors, &arena, passes, &[]).map_err(ended)?;
    let seen = watch.end(1);
    let standing = arena.memory().standing().map_err(|e| TrialError::Failed(format!("reading smaps: {e}")))?;
    let observed = Evidence { kernel_page_kb: standing.kernel_page_kb, thp_coverage: standing.thp_coverage, kvm: None };
    if let Some(reason) = evidence::contradiction(Setting::native(cell.host), &observed, Bytes(0)) {
        return Err(TrialError::Failed(reason));
    }
    let ns_per_tick = bench.clock.ns_per_tick();
    let average = |n: &u32| {
        let ticks: f64 = phase.batches[..*n as usize].iter().map(|batch| batch.ticks_per_access).sum();
        cost(metric(*n), ticks * ns_per_tick / f64::from(*n), "ns")
    };
    let facts = [
        ("host.minor_faults", phase.usage.minor_faults.to_string()),
        ("smaps.kernel_page_kb", standing.kernel_page_kb.to_string()),
        ("smaps.thp_coverage", format!("{:.4}", standing.thp_coverage)),
    ];
    Ok(Finding {
        metrics: counts.iter().filter_map(average).collect(),
        evidence: facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<BTreeMap<_, _>>(),
        caveats: caveats(cell.host, &standing, &seen),
    })
}
