//! A trial of `touch`: one byte written in each 4 KiB page of fresh memory, natively or in a fresh VM.

use std::{collections::BTreeMap, slice, time::Duration};

use vmtax_core::{
    arena::Layout,
    evidence,
    experiment::Finding,
    probe::Probe,
    touch::{self, Cell, NS_PER_PAGE, Populated},
    trial::{Evidence, KvmCounts},
    units::{Bytes, PageSize},
};
use vmtax_machine::{
    arena::Arena,
    backing::Memory,
    interference::Watch,
    lane::{Native, Phase, run_phase},
    microvm::Microvm,
};

use super::{
    TrialError,
    series::{Bench, caveats, cost, ended, failed},
};

/// Touches `size` bytes of fresh memory once. The time is that of the pass alone: mapping, populating and making the VM come
/// before it.
pub fn trial(bench: &Bench, cell: Cell, size: Bytes) -> Result<Finding, TrialError> {
    let host = cell.setting.host;
    let memory = match cell.populated {
        Populated::No => Memory::map(host, size),
        Populated::Before => Memory::allocate(host, size),
    };
    let memory = memory.map_err(|e| failed(&e))?;
    let layout = Layout::new(Probe::Touch, size, Bytes(PageSize::Small.bytes())).map_err(|e| failed(&e))?;
    let arena = Arena::new(memory, layout, Probe::Touch, 0, 1).map_err(|e| failed(&e))?;
    let watch = Watch::start();
    let (phase, kvm) = pass(bench, cell, &arena)?;
    let seen = watch.end(1);
    // After the pass: before it nothing is there to stand on anything.
    let standing = arena.memory().standing().map_err(|e| TrialError::Failed(format!("reading smaps: {e}")))?;
    let observed = Evidence { kernel_page_kb: standing.kernel_page_kb, thp_coverage: standing.thp_coverage, kvm };
    let faults = phase.usage.minor_faults;
    let contradiction = evidence::contradiction(cell.setting, &observed, size);
    if let Some(reason) = contradiction.or_else(|| touch::contradiction(cell, faults, size)) {
        return Err(TrialError::Failed(reason));
    }
    Ok(Finding {
        metrics: metrics(bench, &phase),
        evidence: proof(&observed, faults),
        caveats: caveats(host, &standing, &seen),
    })
}

fn pass(bench: &Bench, cell: Cell, arena: &Arena) -> Result<(Phase, Option<KvmCounts>), TrialError> {
    let mut cursors = [arena.cursor(0, 1)];
    match cell.setting.guest {
        None => {
            let mut lane = Native::new(arena, bench.stop);
            let phase = run_phase(slice::from_mut(&mut lane), &mut cursors, arena, 1, &[]).map_err(ended)?;
            Ok((phase, None))
        }
        Some(leaf) => {
            let kvm = bench.kvm.ok_or_else(|| TrialError::Failed("/dev/kvm is not open".to_owned()))?;
            let vm = Microvm::new(kvm, arena.memory(), leaf, 1, arena.code(), bench.stop);
            let mut vm = vm.map_err(|e| ended(e.into()))?;
            let phase = run_phase(vm.vcpus(), &mut cursors, arena, 1, &[]).map_err(ended)?;
            Ok((phase, vm.counts()))
        }
    }
}

fn metrics(bench: &Bench, phase: &Phase) -> Vec<vmtax_core::experiment::Metric> {
    let seconds = |time: Duration| time.as_secs_f64();
    let [batch] = phase.batches[..] else { unreachable!("one batch was asked for") };
    [
        cost(NS_PER_PAGE, batch.ticks_per_access * bench.clock.ns_per_tick(), "ns"),
        cost("real_seconds", seconds(batch.wall), "s"),
        cost("user_seconds", seconds(phase.usage.user), "s"),
        cost("system_seconds", seconds(phase.usage.system), "s"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn proof(observed: &Evidence, faults: u64) -> BTreeMap<String, String> {
    let mut facts = vec![
        ("host.minor_faults", faults.to_string()),
        ("smaps.kernel_page_kb", observed.kernel_page_kb.to_string()),
        ("smaps.thp_coverage", format!("{:.4}", observed.thp_coverage)),
    ];
    if let Some(kvm) = observed.kvm {
        facts.extend([
            ("kvm.pf_taken", kvm.faults.to_string()),
            ("kvm.exits", kvm.exits.to_string()),
            ("kvm.pages_4k", kvm.pages_4k.to_string()),
            ("kvm.pages_2m", kvm.pages_2m.to_string()),
            ("kvm.pages_1g", kvm.pages_1g.to_string()),
        ]);
    }
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
