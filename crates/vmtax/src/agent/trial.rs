//! A trial inside the guest: a process of the guest measures its own memory, by the code that measures natively on a host.
//!
//! The trial comes as the smallest plan that says it, and its one cell runs on the bench of `vmtax run`: so a figure of the
//! venue `guest` differs from one of `native` by where it was taken, and by nothing else.

use std::{
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use vmtax_core::{availability::Reserve, experiment::Finding, plan::Plan};
use vmtax_machine::{
    clock::Clock,
    knob::{Host, Lease},
};

use super::message::Trial;
use crate::lab::{Until, bench::HostBench, experiment::Bench, knobs::Knobs};

/// Runs it. The lease under which the guest was set goes with it, as the trial may have switches of its own to turn.
pub fn run(trial: &Trial, lease: Option<Lease>) -> anyhow::Result<Finding> {
    let clock = Clock::default();
    let plan = Plan::parse("trial", &trial.plan)?;
    let cell = plan.cells().into_iter().next().context("a plan has a cell")?;
    // Nobody interrupts a guest: the host ends it.
    let stop = AtomicBool::new(false);
    let mut knobs = Knobs::of(&plan, Host::default(), lease, Reserve::No);
    let until = Until::Blocks(1);
    let mut bench = HostBench::new(&stop, &mut knobs, &[], clock, Instant::now(), Duration::ZERO, until);
    let mut ground = bench.lay(&plan.memory(&cell), trial.seed)?;
    let finding = bench.trial(&mut ground, &plan, &cell);
    bench.clear(ground);
    drop(bench);
    knobs.release()?;
    finding.map_err(|error| anyhow!(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(workload: &str) -> anyhow::Result<Finding> {
        let plan = format!("[factors]\nvenue = [\"native\"]\nhost = [\"4k\"]\n[[workload]]\n{workload}");
        super::run(&Trial { plan, seed: 7 }, None)
    }

    #[test]
    fn a_small_chase_gives_a_finding() {
        let finding = run("probe = \"chase\"\nsize = \"4M\"\n").unwrap();
        assert!(finding.value("ns_per_access").unwrap() > 0.0);
        assert_eq!(finding.evidence["smaps.kernel_page_kb"], "4");
    }

    #[test]
    fn a_trial_that_cannot_be_is_answered_in_words() {
        assert!(!run("probe = \"chase\"\nsize = \"4M\"\nstride = \"3\"\n").unwrap_err().to_string().is_empty());
    }
}
