//! A run of a plan as it is kept: all that its tables, exports and comparisons are derived from.

use serde::{Deserialize, Serialize};

use super::{Outcome, Trial};
use crate::{host::Host, plan::Plan, run::Ending};

/// A run of a plan, as read from a results file.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its name.
    pub id: String,
    /// When it began: UTC, ISO 8601.
    pub started: String,
    /// The name of the plan: of its file, or of the built-in study.
    pub name: String,
    /// The plan.
    pub plan: Plan,
    /// Orders and layouts followed from it.
    pub seed: u64,
    /// What the host is.
    pub host: Host,
    /// How it ended; none when it did not live to say, or still runs.
    pub ending: Option<Ending>,
    /// How long it took, pauses between an end and its resumption left out.
    pub seconds: Option<f64>,
    /// What was measured, by block and place.
    pub trials: Vec<Trial>,
    /// What could not be.
    pub missing: Vec<Missing>,
}

/// A cell that cannot be measured on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// [`crate::plan::Cell::name`].
    pub cell: String,
    /// Why not.
    pub reason: String,
    /// What would enable it.
    pub remedy: String,
}

impl Record {
    /// The number of blocks in which something was measured, or tried.
    pub fn blocks(&self) -> u32 {
        self.trials.iter().map(|trial| trial.block + 1).max().unwrap_or(0)
    }

    /// Whether a processor that QEMU emulates had part in a cell: that of the host, or that of its guests.
    pub fn is_emulated(&self, cell: &str) -> bool {
        let is_tcg = |outcome: &Outcome| match outcome {
            Outcome::Ok(finding) => finding.evidence.get("qemu.accel").is_some_and(|accel| accel == "tcg"),
            Outcome::Failed { .. } => false,
        };
        self.host.emulated || self.trials.iter().any(|trial| trial.cell == cell && is_tcg(&trial.outcome))
    }

    /// Trials that failed.
    pub fn failures(&self) -> impl Iterator<Item = (&Trial, &str)> {
        self.trials.iter().filter_map(|trial| match &trial.outcome {
            Outcome::Ok(_) => None,
            Outcome::Failed { reason } => Some((trial, reason.as_str())),
        })
    }
}
