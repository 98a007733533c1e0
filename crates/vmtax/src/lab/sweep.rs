//! A trial of a probe over laid memory, on the rig that also measures matrices.

use vmtax_core::{
    arena::Layout,
    experiment::{Better, Finding, Metric},
    plan::Sweep,
    trial::{KvmCounts, Measurement},
};

use super::{
    TrialError,
    bench::{HostBench, Site},
    measure,
    mthp::Proof,
};

/// Lays the memory where this is the first on it, or where it needs another order of accesses, and measures.
pub fn trial(bench: &mut HostBench<'_>, site: &mut Site, job: Sweep) -> Result<Finding, TrialError> {
    bench.rig.probe = job.probe;
    bench.rig.vcpus = job.vcpus as usize;
    bench.rig.layout = Layout::new(job.probe, job.size, job.stride).map_err(|e| TrialError::Failed(e.to_string()))?;
    let ground = match site.laid.take() {
        None => super::Rig::lay(&mut bench.rig, job.setting.host, site.seed)?,
        Some((last, ground)) if is_laid_alike(&last, &job) => ground,
        Some((_, ground)) => bench.rig.relay(ground, site.seed)?,
    };
    let (_, ground) = site.laid.insert((job, ground));
    let measurement = measure(&mut bench.rig, ground, job.setting, &mut bench.repeating, bench.until)?;
    let kvm = measurement.evidence.kvm;
    let mut finding = finding(measurement);
    if let Some(proof) = ground.on_size() {
        prove(&mut finding, proof, kvm)?;
    }
    Ok(finding)
}

/// Adds what proves one size of transparent page to what was found on it.
///
/// # Errors
/// KVM maps larger pages.
pub(super) fn prove(finding: &mut Finding, proof: &Proof, kvm: Option<KvmCounts>) -> Result<(), TrialError> {
    if let Some(reason) = proof.contradiction(kvm) {
        return Err(TrialError::Failed(reason));
    }
    finding.evidence.extend(proof.evidence());
    finding.caveats.splice(0..0, proof.caveat());
    Ok(())
}

fn is_laid_alike(one: &Sweep, other: &Sweep) -> bool {
    Sweep { setting: other.setting, ..*one } == *other
}

/// A measurement as named numbers and facts.
fn finding(measurement: Measurement) -> Finding {
    let ns = |name: &str, value| Metric { name: name.to_owned(), value, unit: "ns".to_owned(), better: Better::Lower };
    let metrics = vec![ns("ns_per_access", measurement.value_ns()), ns("first_pass_ns", measurement.first_pass_ns)];
    let Measurement { evidence, interference, caveats, .. } = measurement;
    let mut facts = vec![
        ("smaps.kernel_page_kb", evidence.kernel_page_kb.to_string()),
        ("smaps.thp_coverage", evidence.thp_coverage.to_string()),
        ("interference.steal", interference.steal.to_string()),
        ("interference.involuntary_switches", interference.involuntary_switches.to_string()),
        ("interference.repeats", interference.repeats.to_string()),
    ];
    if let Some(kvm) = evidence.kvm {
        facts.extend([
            ("kvm.pages_4k", kvm.pages_4k.to_string()),
            ("kvm.pages_2m", kvm.pages_2m.to_string()),
            ("kvm.pages_1g", kvm.pages_1g.to_string()),
            ("kvm.faults", kvm.faults.to_string()),
            ("kvm.exits", kvm.exits.to_string()),
            ("kvm.steady_faults", kvm.steady_faults.to_string()),
        ]);
        facts.extend(kvm.nx_lpage_splits.map(|n| ("kvm.nx_lpage_splits", n.to_string())));
    }
    let evidence = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Finding { metrics, evidence, caveats: caveats.iter().map(ToString::to_string).collect() }
}
