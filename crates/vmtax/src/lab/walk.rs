//! A trial of a walk: fresh, unpopulated memory walked at one stride, pass after pass, natively or in a fresh VM.

use vmtax_core::{
    arena::Layout,
    evidence,
    experiment::Finding,
    plan::Walk,
    touch::Populated,
    trial::Evidence,
    units::{Bytes, PageSize},
    walk::{LEADING, Order, metric},
};
use vmtax_machine::{arena::Arena, interference::Watch};

use super::{
    TrialError,
    attempt::{Attempt, cost, coverage, failed, proof, told},
    bench::HostBench,
    host::unmarked,
    mthp::Expected,
    sweep::prove,
};

/// Walks a region of its own: the average time per reference of all passes, and of those so far after 1, 2, 4 … of them.
pub fn attempt(bench: &mut HostBench<'_>, job: Walk, seed: u64) -> Result<Attempt, TrialError> {
    let memory = bench.fresh(job.setting.host, job.memory(), Populated::No)?;
    let layout = Layout::new(job.order.probe(), job.size, job.stride).map_err(|e| failed(&e))?;
    let arena = Arena::new(memory, layout, job.order.probe(), seed, 1).map_err(|e| failed(&e))?;
    let passes = job.passes_made();
    bench.rig.vcpus = 1;
    let expected = bench.rig.size.map(Expected::of);
    let watch = Watch::start();
    let (phase, kvm) = bench.rig.course(&arena, job.setting.guest, passes as usize)?;
    let seen = watch.end(1);
    let standing = arena.memory().standing().map_err(|e| TrialError::Failed(format!("reading smaps: {e}")))?;
    let observed = Evidence { kernel_page_kb: standing.kernel_page_kb, thp_coverage: standing.thp_coverage, kvm };
    let contradiction = unmarked(job.setting.host, &standing)
        .or_else(|| evidence::contradiction(job.setting, &observed, touched(&job)));
    if let Some(reason) = contradiction {
        return Err(TrialError::Failed(reason));
    }
    let on_size = expected.map(|expected| expected.proved(arena.memory())).transpose()?;
    bench.spare(arena.into_memory());
    let ns_per_tick = bench.rig.clock.ns_per_tick();
    let average = |n: u32| {
        let ticks: f64 = phase.batches[..n as usize].iter().map(|batch| batch.ticks_per_access).sum();
        ticks * ns_per_tick / f64::from(n)
    };
    let after = job.pass_counts().into_iter().filter_map(|n| cost(metric(n), average(n), "ns"));
    let mut finding = Finding {
        metrics: cost(LEADING, average(passes), "ns").into_iter().chain(after).collect(),
        evidence: told(
            proof(&observed, phase.usage.minor_faults),
            [
                ("walk.passes", passes.to_string()),
                ("walk.references", (u64::from(passes) * layout.nodes()).to_string()),
            ],
        ),
        caveats: if on_size.is_some() { Vec::new() } else { coverage(job.setting.host, &standing) },
    };
    if let Some(proof) = &on_size {
        prove(&mut finding, proof, kvm)?;
    }
    Ok(Attempt { finding, seen })
}

/// How much of the region was certainly touched, a small page at least for every reference: random ones may meet.
fn touched(job: &Walk) -> Bytes {
    let page = PageSize::Small.bytes();
    match job.order {
        Order::Sequential => Bytes(job.size.0 / job.stride.0.max(page) * page),
        Order::Random => Bytes(0),
    }
}
