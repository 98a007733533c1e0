//! A trial of a program: a benchmark of the table, or one of the plan's author.
//!
//! What is stolen from it is told, and it is not repeated: programs take minutes.

use std::{net::TcpListener, path::Path};

use vmtax_core::{
    experiment::Finding,
    plan::{Benchmark, Job, Own},
    units::PageSize,
};
use vmtax_machine::{
    interference::Watch,
    knob::{Host, default_page},
    lane,
};

use super::{
    TrialError,
    attempt::{disturbances, failed},
    bench::HostBench,
    knobs::Obstacle,
};
use crate::{
    guest::boot,
    program::{Failure, Place, run, run_command},
};

/// Runs a benchmark program.
pub fn trial(bench: &mut HostBench<'_>, job: &Benchmark) -> Result<Finding, TrialError> {
    let place = Place { tree: job.tree.clone(), ..Place::here(port()?) };
    let stop = bench.rig.stop;
    watched(bench, || run(job.program, &job.values, &place, stop))
}

/// Runs a program of the plan's author.
pub fn command(bench: &mut HostBench<'_>, job: &Own) -> Result<Finding, TrialError> {
    let stop = bench.rig.stop;
    watched(bench, || run_command(&job.command, job.timeout, &Place::here(0), stop))
}

fn watched(bench: &mut HostBench<'_>, work: impl FnOnce() -> Result<Finding, Failure>) -> Result<Finding, TrialError> {
    // Memory kept for later trials is the program's to use.
    bench.rig.spare = None;
    let watch = Watch::start();
    let ran = lane::on_cpus(&bench.rig.pin, work).map_err(|e| failed(&e))?;
    let seen = watch.end(std::thread::available_parallelism().map_or(1, usize::from));
    let mut finding = ran.map_err(|failure| match failure {
        Failure::Stopped => TrialError::Interrupted,
        other => TrialError::Failed(other.to_string()),
    })?;
    finding.caveats.extend(disturbances(&seen));
    finding.evidence.insert("interference.steal".to_owned(), format!("{:.4}", seen.steal));
    Ok(finding)
}

/// A port that is free now, and most likely still is in a moment.
fn port() -> Result<u16, TrialError> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.map(|address| address.port()).map_err(|e| TrialError::Failed(format!("no port for a server: {e}")))
}

/// Why a program cannot be run on this host, as far as can be known without running it.
pub fn obstacle(job: &Job) -> Option<Obstacle> {
    match job {
        Job::Program(job) => absent(job.program.needs.program, job.program.needs.remedy()).or_else(|| {
            let unfit = job.script().err()?;
            let remedy = match job.lacks_tree() {
                true => "then tree = \"/path\" in the plan",
                false => "other parameters in the plan, or exclude it",
            };
            Some(Obstacle::new(unfit.to_string(), remedy))
        }),
        Job::Command(job) => absent(&job.command.command[0], "install it, or write its path in the plan".to_owned()),
        Job::Probe(_) | Job::Touch(_) | Job::Walk(_) | Job::Reserve(_) | Job::Rights | Job::Bloat(_) | Job::Os(_) => {
            None
        }
    }
}

fn absent(program: &str, remedy: String) -> Option<Obstacle> {
    let found = boot::program(Path::new(program));
    found.err().map(|_| Obstacle::new(format!("`{program}` is not installed"), remedy))
}

/// The pages that a program takes from a pool, whose size the kernel says.
pub fn pages(job: &Job) -> Option<(PageSize, u64)> {
    let Job::Program(job) = job else { return None };
    let huge = job.script().ok()?.huge?;
    let page = default_page(&Host::default()).ok()?;
    Some((page, huge.pages(page)))
}
