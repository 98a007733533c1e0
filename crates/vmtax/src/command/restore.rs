//! `vmtax restore`: puts the host back after a crash.

use std::{process::ExitCode, time::Duration};

use vmtax_machine::knob::{self, Contention};

use crate::output;

/// How long a living vmtax, or a guardian at work, is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Restores, and says what became of each change.
pub fn run() -> anyhow::Result<ExitCode> {
    let outcomes = knob::restore(&knob::Host::default(), Contention::WaitAtMost(PATIENCE))?;
    if outcomes.is_empty() {
        output::print("Nothing to put back: vmtax has left no change on this host.\n")?;
    }
    for outcome in &outcomes {
        output::print(&format!("{outcome}\n"))?;
    }
    Ok(if outcomes.iter().any(knob::Outcome::is_failed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
