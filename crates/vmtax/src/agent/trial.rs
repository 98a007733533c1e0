//! A trial inside the guest: a process of the guest measures its own memory, by the code that measures natively on a host.
//!
//! The job is written as the smallest plan that says it, and its one cell runs on the bench of `vmtax run`: so a figure of
//! the venue `guest` differs from one of `native` by where it was taken, and by nothing else.

use std::{
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use vmtax_core::{experiment::Finding, plan::Plan};
use vmtax_machine::clock::Clock;

use super::message::Job;
use crate::lab::{Until, bench::HostBench, experiment::Bench};

/// Runs it.
pub fn run(job: &Job) -> anyhow::Result<Finding> {
    let clock = Clock::default();
    let plan = Plan::parse("trial", &text(job))?;
    let cell = plan.cells().into_iter().next().context("a plan has a cell")?;
    // Nobody interrupts a guest: the host ends it.
    let stop = AtomicBool::new(false);
    let mut bench = HostBench::new(&stop, clock, Instant::now(), Duration::ZERO, Until::Blocks(1));
    let mut ground = bench.lay(&cell.setting, job.seed)?;
    let finding = bench.trial(&mut ground, &plan, &cell);
    bench.clear(ground);
    finding.map_err(|error| anyhow!(error))
}

fn text(job: &Job) -> String {
    let Job { probe, size, stride, backing, threads, seed: _ } = *job;
    format!(
        "[factors]\nvenue = [\"native\"]\nhost = [\"{}\"]\n\
         [[workload]]\nprobe = \"{probe}\"\nsize = \"{}\"\nstride = \"{}\"\nvcpus = {threads}\n",
        backing.name(),
        size.0,
        stride.0
    )
}

#[cfg(test)]
mod tests {
    use vmtax_core::{
        probe::Probe,
        setting::{self, Backing},
        units::{Bytes, KIB, MIB},
    };

    use super::*;

    #[test]
    fn a_job_is_the_job_of_its_plan() {
        let (size, stride) = (Bytes(8 * MIB), Bytes(4 * KIB));
        for backing in Backing::ALL {
            let job = Job { probe: Probe::Random, size, stride, backing, threads: 2, seed: 1 };
            let plan = Plan::parse("trial", &text(&job)).unwrap();
            let read = plan.job(&plan.cells()[0]).unwrap();
            let setting = setting::Setting::native(backing);
            let expected = vmtax_core::plan::Job { probe: Probe::Random, setting, size, stride, vcpus: 2 };
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn a_small_chase_gives_a_finding() {
        let (size, stride) = (Bytes(4 * MIB), Bytes(4 * KIB));
        let job = Job { probe: Probe::Chase, size, stride, backing: Backing::Small, threads: 1, seed: 7 };
        let finding = run(&job).unwrap();
        assert!(finding.value("ns_per_access").unwrap() > 0.0);
        assert_eq!(finding.evidence["smaps.kernel_page_kb"], "4");
    }

    #[test]
    fn a_job_that_cannot_be_is_answered_in_words() {
        let job = Job {
            probe: Probe::Chase,
            size: Bytes(4 * MIB),
            stride: Bytes(3),
            backing: Backing::Small,
            threads: 1,
            seed: 7,
        };
        assert!(!run(&job).unwrap_err().to_string().is_empty());
    }
}
