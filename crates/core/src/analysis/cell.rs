//! One row of the table: what was asked for, and what came of it.

use serde::{Deserialize, Serialize};

use super::figures::Figures;
use crate::{
    setting::{Cell, Replica, Setting},
    stats::Estimate,
    trial::{self, Measurement, Trial, Unavailable},
};

/// What all trials of one setting say together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellSummary {
    /// The setting.
    pub setting: Setting,
    /// Why trials failed, in the order of their blocks, one for each; the baseline's twin is marked `A': `.
    pub failures: Vec<String>,
    /// What came of the others.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Outcome {
    /// At least one trial succeeded.
    Ok(Box<Figures>),
    /// It cannot be measured here.
    Unavailable {
        /// Why not.
        reason: String,
        /// What would enable it.
        remedy: String,
    },
    /// No trial succeeded.
    Failed {
        /// Why the first one did not, or that there was none.
        reason: String,
    },
}

impl CellSummary {
    /// The figures, where a trial succeeded.
    pub fn figures(&self) -> Option<&Figures> {
        match &self.outcome {
            Outcome::Ok(figures) => Some(figures),
            Outcome::Unavailable { .. } | Outcome::Failed { .. } => None,
        }
    }

    pub(super) fn unavailable(why: &Unavailable) -> CellSummary {
        let outcome = Outcome::Unavailable { reason: why.reason.clone(), remedy: why.remedy.clone() };
        CellSummary { setting: why.setting, failures: Vec::new(), outcome }
    }

    /// Summarizes one setting; `trials` are those of the whole run, by block.
    pub(super) fn of(
        setting: Setting,
        trials: &[&Trial],
        baseline: Option<Setting>,
        noise_floor: Option<Estimate>,
    ) -> CellSummary {
        let own = Series::of(Cell { setting, replica: Replica::A }, trials);
        let twin = Series::of(Cell { setting, replica: Replica::APrime }, trials);
        let outcome = match Figures::of(setting, &own, trials, baseline, noise_floor) {
            Some(figures) => Outcome::Ok(Box::new(figures)),
            None => {
                let reason = own.failures.first().cloned().unwrap_or_else(|| "no trial was made".to_owned());
                Outcome::Failed { reason }
            }
        };
        let twin_failures = twin.failures.iter().map(|reason| format!("{}: {reason}", Replica::APrime.name()));
        CellSummary { setting, failures: own.failures.iter().cloned().chain(twin_failures).collect(), outcome }
    }
}

/// The trials of one cell, by block.
pub(super) struct Series<'t> {
    /// What succeeded.
    pub points: Vec<Point<'t>>,
    /// Why the others failed.
    pub failures: Vec<String>,
}

/// One successful trial.
pub(super) struct Point<'t> {
    /// Its block.
    pub block: u32,
    /// The median of its batches, in nanoseconds an access: positive.
    pub value_ns: f64,
    /// All that was measured.
    pub measurement: &'t Measurement,
}

impl<'t> Series<'t> {
    pub fn of(cell: Cell, trials: &[&'t Trial]) -> Series<'t> {
        let mut series = Series { points: Vec::new(), failures: Vec::new() };
        for trial in trials.iter().filter(|trial| trial.cell == cell) {
            match &trial.outcome {
                trial::Outcome::Failed { reason } => series.failures.push(reason.clone()),
                trial::Outcome::Ok(measurement) => match measurement.value_ns() {
                    value_ns if value_ns > 0.0 && value_ns.is_finite() => {
                        series.points.push(Point { block: trial.block, value_ns, measurement });
                    }
                    odd => series.failures.push(format!("{odd} ns an access is no time")),
                },
            }
        }
        series
    }

    /// The ratio to another cell, over the blocks in which both succeeded; none when there are none.
    pub fn ratio_to(&self, other: &Series) -> Option<Estimate> {
        let partner = |block| other.points.iter().find(|point| point.block == block);
        let pairs: Vec<(f64, f64)> =
            self.points.iter().filter_map(|p| Some((p.value_ns, partner(p.block)?.value_ns))).collect();
        Estimate::of_ratio(&pairs)
    }
}
