//! A trial of `touch`: one byte written in each 4 KiB page of fresh memory, natively or in a fresh VM.

use vmtax_core::{
    arena::Layout,
    evidence,
    experiment::{Finding, Metric},
    plan::Touch,
    probe::Probe,
    touch::{self, NS_PER_PAGE},
    trial::Evidence,
    units::{Bytes, PageSize},
};
use vmtax_machine::{arena::Arena, interference::Watch, lane::Phase};

use super::{
    TrialError,
    attempt::{Attempt, cost, coverage, failed, proof, seconds, told},
    bench::HostBench,
    host::unmarked,
    mthp::Expected,
    sweep::prove,
};

/// Touches fresh memory once. The time is that of the pass alone: mapping, populating and making the VM come before it.
pub fn attempt(bench: &mut HostBench<'_>, job: Touch) -> Result<Attempt, TrialError> {
    let Touch { setting, size, vcpus, populated } = job;
    let memory = bench.fresh(setting.host, size, populated)?;
    let layout = Layout::new(Probe::Touch, size, Bytes(PageSize::Small.bytes())).map_err(|e| failed(&e))?;
    let arena = Arena::new(memory, layout, Probe::Touch, 0, u64::from(vcpus)).map_err(|e| failed(&e))?;
    bench.rig.vcpus = vcpus as usize;
    let expected = bench.rig.size.map(Expected::of);
    let watch = Watch::start();
    let (phase, kvm) = bench.rig.course(&arena, setting.guest, 1)?;
    let seen = watch.end(vcpus as usize);
    // After the pass: before it nothing is there to stand on anything.
    let standing = arena.memory().standing().map_err(|e| TrialError::Failed(format!("reading smaps: {e}")))?;
    let observed = Evidence { kernel_page_kb: standing.kernel_page_kb, thp_coverage: standing.thp_coverage, kvm };
    let faults = phase.usage.minor_faults;
    let contradiction = unmarked(setting.host, &standing)
        .or_else(|| evidence::contradiction(setting, &observed, size))
        .or_else(|| touch::contradiction(setting.host, populated, faults, size));
    if let Some(reason) = contradiction {
        return Err(TrialError::Failed(reason));
    }
    let on_size = expected.map(|expected| expected.proved(arena.memory())).transpose()?;
    bench.spare(arena.into_memory());
    let mut finding = Finding {
        metrics: metrics(&phase, vcpus, bench.rig.clock.ns_per_tick()),
        evidence: told(proof(&observed, faults), []),
        caveats: if on_size.is_some() { Vec::new() } else { coverage(setting.host, &standing) },
    };
    if let Some(proof) = &on_size {
        prove(&mut finding, proof, kvm)?;
    }
    Ok(Attempt { finding, seen })
}

/// Real time is that of a lane, on average; CPU time that of all of them.
fn metrics(phase: &Phase, lanes: u32, ns_per_tick: f64) -> Vec<Metric> {
    let [batch] = phase.batches[..] else { unreachable!("one batch was asked for") };
    [
        cost(NS_PER_PAGE, batch.ticks_per_access * ns_per_tick, "ns"),
        cost("real_seconds", seconds(batch.wall) / f64::from(lanes), "s"),
        cost("user_seconds", seconds(phase.usage.user), "s"),
        cost("system_seconds", seconds(phase.usage.system), "s"),
    ]
    .into_iter()
    .flatten()
    .collect()
}
