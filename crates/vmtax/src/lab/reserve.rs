//! A trial of `reserve`: stress, then huge pages prepared for a pool, round after round.

use vmtax_core::{
    experiment::Finding,
    plan::{Compact, Reserve},
    reserve::{self, Round, Scatter},
};
use vmtax_machine::{
    fragmentation::Fragmentation,
    interference::Watch,
    reserve::{Compaction, Plan, run},
};

use super::{TrialError, attempt::failed, bench::HostBench};

/// Measures every round. What is stolen from rounds of seconds is told, and they are not repeated.
///
/// # Errors
/// A signal ends the trial: the kernel cuts a raise of a pool short when one comes.
pub fn trial(bench: &mut HostBench<'_>, job: Reserve, seed: u64) -> Result<Finding, TrialError> {
    // Memory kept for later trials would be in the way of the stress.
    bench.rig.spare = None;
    let stop = bench.rig.stop;
    let plan = Plan {
        page: job.page,
        pages: job.pages,
        rounds: job.rounds,
        stress: job.stress,
        kept: job.kept,
        compaction: match job.compact {
            Compact::Off => Compaction::Off,
            Compact::Before => Compaction::Before,
        },
        seed,
    };
    let watch = Watch::start();
    let lease = bench.knobs.lease();
    let lease = lease.ok_or_else(|| TrialError::Failed("there is no right to raise a pool".to_owned()))?;
    let rounds = run(lease, &plan, stop, |_| ()).map_err(|e| failed(&e));
    let seen = watch.end(1);
    if stop.load(std::sync::atomic::Ordering::Relaxed) {
        return Err(TrialError::Interrupted);
    }
    let rounds = rounds?;
    let mut finding = reserve::finding(&rounds.iter().map(told).collect::<Vec<_>>());
    finding.evidence.insert("interference.steal".to_owned(), format!("{:.4}", seen.steal));
    if let Some(state) = rounds.iter().find_map(|round| round.before.as_ref()) {
        finding.evidence.insert("extfrag_source".to_owned(), format!("{:?}", state.source).to_lowercase());
    }
    Ok(finding)
}

fn told(round: &vmtax_machine::reserve::Round) -> Round {
    Round {
        round: round.round,
        asked: round.asked,
        granted: round.granted,
        // A pool that had the pages took no time at all; a metric is more than nothing.
        seconds: round.seconds.max(1e-9),
        compaction_seconds: round.compaction_seconds,
        held: round.held,
        before: round.before.as_ref().map(scatter),
        after: round.after.as_ref().map(scatter),
    }
}

fn scatter(state: &Fragmentation) -> Scatter {
    let index = state.zones.iter().map(|zone| zone.index).fold(-1.0, f64::max);
    Scatter { unusable: state.unusable(), index }
}
