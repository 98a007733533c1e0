//! Blocks of trials on fresh memory, in an order that is random in each: what `vmtax touch` and `vmtax walk` share.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use vmtax_core::{
    experiment::{Better, Finding, Metric, Outcome},
    run::Ending,
    schedule,
    series::Record,
    setting::Backing,
};
use vmtax_machine::{Kvm, backing::Standing, clock::Clock, interference::Seen, lane::LaneError};

use super::{STEAL_LIMIT, TrialError, Until, host};

/// What executors need of this host.
#[derive(Debug)]
pub struct Bench<'a> {
    /// KVM, if it can be used.
    pub kvm: Option<&'a Kvm>,
    /// Ticks to nanoseconds.
    pub clock: Clock,
    /// Ends a trial early when true.
    pub stop: &'a AtomicBool,
}

/// Where a series stands, told before each trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step<C> {
    /// The block, from 0.
    pub block: u32,
    /// Trials made in it.
    pub made: usize,
    /// Trials in a block.
    pub of: usize,
    /// What comes next.
    pub next: C,
    /// Failed trials so far.
    pub failed: usize,
    /// Time since the beginning.
    pub elapsed: Duration,
}

/// Measures every cell once a block until the limit or a signal; what was measured is kept either way.
pub fn run<C: Copy>(
    (seed, until): (u64, Until),
    cells: &[C],
    started: Instant,
    stop: &AtomicBool,
    mut before: impl FnMut(Step<C>),
    mut trial: impl FnMut(C) -> Result<Finding, TrialError>,
) -> (Vec<Record<C>>, Ending) {
    let mut records = Vec::new();
    let mut failed = 0;
    for block in 0..until.blocks().unwrap_or(u32::MAX) {
        let elapsed = started.elapsed();
        if cells.is_empty() || until.budget().is_some_and(|budget| block > 0 && elapsed + elapsed / block > budget) {
            break;
        }
        for (made, next) in schedule::shuffled(seed, block, cells).into_iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                return (records, Ending::Interrupted);
            }
            before(Step { block, made, of: cells.len(), next, failed, elapsed: started.elapsed() });
            let outcome = match trial(next) {
                Err(TrialError::Interrupted) => return (records, Ending::Interrupted),
                Ok(finding) => Outcome::Ok(finding),
                Err(TrialError::Failed(reason)) => Outcome::Failed { reason },
            };
            failed += usize::from(matches!(outcome, Outcome::Failed { .. }));
            records.push(Record { block, cell: next, outcome });
        }
    }
    (records, Ending::Done)
}

/// A metric of which less is better; none where it was nothing, as metrics are positive.
pub(super) fn cost(name: impl Into<String>, value: f64, unit: &str) -> Option<Metric> {
    (value > 0.0).then(|| Metric { name: name.into(), value, unit: unit.to_owned(), better: Better::Lower })
}

/// What a reader must know of a trial.
pub(super) fn caveats(backing: Backing, standing: &Standing, seen: &Seen) -> Vec<String> {
    let mut caveats = Vec::new();
    if backing == Backing::Thp && standing.thp_coverage < host::FULL_COVERAGE {
        caveats.push("transparent huge pages do not cover all of the memory".to_owned());
    }
    // Steal is known to within a tick of the kernel's account: it counts when it is certain.
    if seen.steal - seen.steal_resolution > STEAL_LIMIT {
        caveats.push("more than 2 % of the time was stolen by the hypervisor below".to_owned());
    }
    if seen.frequency_change.abs() > host::CLOCK_LIMIT {
        caveats.push("the clock frequency changed by more than 2 %".to_owned());
    }
    caveats
}

/// A failure in the words of its causes.
pub(super) fn failed(error: &dyn std::error::Error) -> TrialError {
    TrialError::Failed(host::chain(error))
}

/// A lane's end: interrupted, or failed.
pub(super) fn ended(error: LaneError) -> TrialError {
    host::outcome(error)
}

#[cfg(test)]
mod tests;
