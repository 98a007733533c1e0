//! A run of a plan, cell by cell: what its good trials found, and where each cell stands.
//!
//! Cells are named, as trials name theirs ([`Cell::name`](crate::plan::Cell::name)).

use std::collections::BTreeMap;

use super::{Finding, Missing, Outcome, Record, Trial};
use crate::stats::{Estimate, median};

/// Where a cell stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Status<'r> {
    /// It has at least one good trial.
    Ok,
    /// Every trial of it failed; the reason of the last.
    Failed(&'r str),
    /// It cannot be measured on this host.
    Missing(&'r Missing),
    /// The run ended before its turn.
    NotReached,
}

impl Record {
    /// What the good trials of a cell found, with their blocks.
    pub fn findings<'r>(&'r self, cell: &'r str) -> impl Iterator<Item = (u32, &'r Finding)> {
        self.trials_of(cell).filter_map(|trial| match &trial.outcome {
            Outcome::Ok(finding) => Some((trial.block, finding)),
            Outcome::Failed { .. } => None,
        })
    }

    /// Why trials of a cell failed, in order of time.
    pub fn failures_of<'r>(&'r self, cell: &'r str) -> impl Iterator<Item = &'r str> {
        self.trials_of(cell).filter_map(|trial| match &trial.outcome {
            Outcome::Ok(_) => None,
            Outcome::Failed { reason } => Some(reason.as_str()),
        })
    }

    /// Where a cell stands.
    pub fn status<'r>(&'r self, cell: &'r str) -> Status<'r> {
        if self.findings(cell).next().is_some() {
            return Status::Ok;
        }
        match self.missing.iter().find(|missing| missing.cell == cell) {
            Some(missing) => Status::Missing(missing),
            None => self.failures_of(cell).last().map_or(Status::NotReached, Status::Failed),
        }
    }

    /// The median of a metric with its interval; none without good trials, or where it was nothing in one of them.
    pub fn estimate(&self, cell: &str, metric: &str) -> Option<Estimate> {
        let values: Option<Vec<f64>> = self.findings(cell).map(|(_, finding)| finding.value(metric)).collect();
        Estimate::of_median(&values?)
    }

    /// The median of a metric that may have been nothing; none without good trials.
    pub fn median(&self, cell: &str, metric: &str) -> Option<f64> {
        let values: Vec<f64> = self.findings(cell).map(|(_, found)| found.value(metric).unwrap_or(0.0)).collect();
        (!values.is_empty()).then(|| median(&values))
    }

    /// The median over blocks of `cell` over `to`, paired within blocks.
    pub fn ratio(&self, cell: &str, to: &str, metric: &str) -> Option<Estimate> {
        let bases: BTreeMap<u32, f64> = self.findings(to).filter_map(|(b, f)| Some((b, f.value(metric)?))).collect();
        let paired = |(block, finding): (u32, &Finding)| Some((finding.value(metric)?, *bases.get(&block)?));
        Estimate::of_ratio(&self.findings(cell).filter_map(paired).collect::<Vec<_>>())
    }

    /// The evidence of the last good trial of a cell.
    pub fn evidence(&self, cell: &str) -> Option<&BTreeMap<String, String>> {
        // Not through `findings`, whose iterator holds on to the name.
        let good = self.trials.iter().rev().filter(|trial| trial.cell == cell).find_map(|trial| match &trial.outcome {
            Outcome::Ok(finding) => Some(finding),
            Outcome::Failed { .. } => None,
        });
        good.map(|finding| &finding.evidence)
    }

    fn trials_of<'r>(&'r self, cell: &'r str) -> impl Iterator<Item = &'r Trial> {
        self.trials.iter().filter(move |trial| trial.cell == cell)
    }
}
