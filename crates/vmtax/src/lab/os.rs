//! A trial of what the operating system does for programs, in a process of vmtax's own, here or inside a guest.
//!
//! It may use as many CPUs as the plan says, one unless it says more: a guest has as many, and a test of two processes on two
//! CPUs measures something else than one on one.

use vmtax_core::{experiment::Finding, os::Test, plan::Os};
use vmtax_machine::{interference::Watch, lane, os};

use super::{
    TrialError,
    attempt::{Attempt, failed},
    bench::HostBench,
};
use crate::program::{Place, filesystem};

/// Runs it; again where time was certainly stolen from it.
pub fn trial(bench: &mut HostBench<'_>, job: Os) -> Result<Finding, TrialError> {
    bench.rig.spare = None;
    let cpus = cpus(&bench.rig.pin, job.vcpus)?;
    bench.repeated(|bench| attempt(bench, job, &cpus))
}

/// Those of `--pin`, or the last of those there are.
fn cpus(pin: &[usize], n: u32) -> Result<Vec<usize>, TrialError> {
    let named = if pin.is_empty() { lane::last_cpus(n as usize) } else { pin.get(..n as usize).map(<[usize]>::to_vec) };
    named.ok_or_else(|| TrialError::Failed(format!("the plan asks for {n} CPUs, and there are fewer; vcpus = 1")))
}

fn attempt(bench: &mut HostBench<'_>, job: Os, cpus: &[usize]) -> Result<Attempt, TrialError> {
    let stop = bench.rig.stop;
    let directory = Place::here(0).private().map_err(|failure| TrialError::Failed(failure.to_string()))?;
    let watch = Watch::start();
    let count = lane::on_cpus(cpus, || os::run(job.test, job.time, directory.path(), stop)).map_err(|e| failed(&e))?;
    let seen = watch.end(cpus.len());
    if stop.load(std::sync::atomic::Ordering::Relaxed) {
        return Err(TrialError::Interrupted);
    }
    let count = count.map_err(|e| failed(&e))?;
    let mut facts = vec![
        ("os.operations".to_owned(), count.operations.to_string()),
        ("os.seconds".to_owned(), format!("{:.6}", count.elapsed.as_secs_f64())),
        ("os.cpus".to_owned(), cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")),
    ];
    let files = match job.test {
        Test::FileCopy(_) => filesystem(directory.path()),
        Test::Syscall | Test::Exec | Test::Spawn | Test::Pipe | Test::Context => None,
    };
    let in_memory = files.as_deref() == Some("tmpfs");
    facts.extend(files.map(|kind| ("os.filesystem".to_owned(), kind)));
    let caveat = "its files lie on tmpfs, in memory, and compare with files on tmpfs alone; TMPDIR says where they lie";
    let caveats = in_memory.then(|| caveat.to_owned()).into_iter().collect();
    let finding = Finding { metrics: job.test.metrics(count.rate()), evidence: facts.into_iter().collect(), caveats };
    Ok(Attempt { finding, seen })
}
