//! What a trial of a plan gives: named numbers, what proves its setting, and what a reader must know.

mod compare;
mod ratios;
mod record;
mod sheet;
mod version;
mod view;

use std::collections::BTreeMap;

pub use compare::{Change, Comparison, Verdict};
pub use ratios::Ratios;
pub use record::{Missing, Record};
use serde::{Deserialize, Serialize};
pub use sheet::{Row, Sheet};
pub use view::Status;

/// Which way a metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better: times, faults, bytes used.
    Lower,
    /// More is better: rates.
    Higher,
}

/// A named number. Names are stable identifiers of the results file: added, never renamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Such as `ns_per_access` or `ns_per_page`.
    pub name: String,
    /// Its value in its unit; positive.
    pub value: f64,
    /// Such as `ns`, `s`, `pages/s` or `faults`.
    pub unit: String,
    /// Which way it improves.
    pub better: Better,
}

/// What one successful trial found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The first is the one that tables lead with; none where a trial finds facts and no figures.
    pub metrics: Vec<Metric>,
    /// Observed facts by name, such as `smaps.kernel_page_kb` or `kvm.pages_2m`; never what was asked for.
    pub evidence: BTreeMap<String, String>,
    /// What a reader must know before using the figures.
    pub caveats: Vec<String>,
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Outcome {
    /// It succeeded, and its evidence agrees with its setting.
    Ok(Finding),
    /// It cannot be used: shown, and never averaged in.
    Failed {
        /// What went wrong, or which evidence contradicts the setting.
        reason: String,
    },
}

/// One execution of a cell of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The block, from 0.
    pub block: u32,
    /// Its place in the block's order, from 0.
    pub place: u32,
    /// [`crate::plan::Cell::name`].
    pub cell: String,
    /// What came of it.
    pub outcome: Outcome,
}

impl Finding {
    /// The value of a metric.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value)
    }
}

impl Outcome {
    /// What it found, if it succeeded.
    pub fn finding(&self) -> Option<&Finding> {
        match self {
            Outcome::Ok(finding) => Some(finding),
            Outcome::Failed { .. } => None,
        }
    }

    /// Whether it cannot be used.
    pub fn is_failed(&self) -> bool {
        match self {
            Outcome::Ok(_) => false,
            Outcome::Failed { .. } => true,
        }
    }
}
