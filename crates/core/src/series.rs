//! An experiment by hand: cells measured once in each block, in random order, every trial on fresh memory.
//!
//! What `vmtax touch` and `vmtax walk` share. `C` is a cell: everything that is set, and nothing that is measured.

use std::collections::BTreeMap;

use crate::{
    experiment::{Finding, Outcome},
    host::Host,
    run::Ending,
    stats::{Estimate, median},
};

/// One trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Record<C> {
    /// The block, from 0.
    pub block: u32,
    /// What it is a trial of.
    pub cell: C,
    /// What came of it.
    pub outcome: Outcome,
}

/// A cell that cannot be measured here.
#[derive(Debug, Clone, PartialEq)]
pub struct Absent<C> {
    /// The cell.
    pub cell: C,
    /// Why not.
    pub reason: String,
    /// What would enable it.
    pub remedy: String,
}

/// All that was asked for, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Series<C> {
    /// The host it was measured on.
    pub host: Host,
    /// The orders follow from it.
    pub seed: u64,
    /// Every cell asked for, in the order of the table.
    pub cells: Vec<C>,
    /// Those that cannot be measured here.
    pub absent: Vec<Absent<C>>,
    /// Trials in order of time.
    pub records: Vec<Record<C>>,
    /// How it ended.
    pub ending: Ending,
    /// How long it took.
    pub seconds: f64,
}

/// Where a cell stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Status<'s> {
    /// It has at least one good trial.
    Ok,
    /// Every trial of it failed; the reason of the last.
    Failed(&'s str),
    /// It cannot be measured here.
    Unavailable {
        /// Why not.
        reason: &'s str,
        /// What would enable it.
        remedy: &'s str,
    },
    /// The run ended before its turn.
    NotReached,
}

impl<C: Copy + PartialEq> Series<C> {
    /// Blocks with a trial in them.
    pub fn blocks(&self) -> u32 {
        self.records.iter().map(|record| record.block + 1).max().unwrap_or(0)
    }

    /// What the good trials of a cell found, with their blocks.
    pub fn findings(&self, cell: C) -> impl Iterator<Item = (u32, &Finding)> {
        self.records.iter().filter(move |record| record.cell == cell).filter_map(|record| match &record.outcome {
            Outcome::Ok(finding) => Some((record.block, finding)),
            Outcome::Failed { .. } => None,
        })
    }

    /// Why trials of a cell failed, in order of time.
    pub fn failures(&self, cell: C) -> impl Iterator<Item = &str> {
        self.records.iter().filter(move |record| record.cell == cell).filter_map(|record| match &record.outcome {
            Outcome::Ok(_) => None,
            Outcome::Failed { reason } => Some(reason.as_str()),
        })
    }

    /// Where a cell stands.
    pub fn status(&self, cell: C) -> Status<'_> {
        if self.findings(cell).next().is_some() {
            return Status::Ok;
        }
        if let Some(absent) = self.absent.iter().find(|absent| absent.cell == cell) {
            return Status::Unavailable { reason: &absent.reason, remedy: &absent.remedy };
        }
        self.failures(cell).last().map_or(Status::NotReached, Status::Failed)
    }

    /// The median of a metric with its interval; none without good trials, or where it was nothing in one of them.
    pub fn estimate(&self, cell: C, metric: &str) -> Option<Estimate> {
        let values: Option<Vec<f64>> = self.findings(cell).map(|(_, finding)| finding.value(metric)).collect();
        Estimate::of_median(&values?)
    }

    /// The median of a metric that may have been nothing; none without good trials.
    pub fn median(&self, cell: C, metric: &str) -> Option<f64> {
        let values: Vec<f64> = self.findings(cell).map(|(_, found)| found.value(metric).unwrap_or(0.0)).collect();
        (!values.is_empty()).then(|| median(&values))
    }

    /// The median over blocks of `cell` over `to`, paired within blocks.
    pub fn ratio(&self, cell: C, to: C, metric: &str) -> Option<Estimate> {
        let bases: BTreeMap<u32, f64> = self.findings(to).filter_map(|(b, f)| Some((b, f.value(metric)?))).collect();
        let pairs: Vec<(f64, f64)> = self
            .findings(cell)
            .filter_map(|(block, finding)| Some((finding.value(metric)?, *bases.get(&block)?)))
            .collect();
        Estimate::of_ratio(&pairs)
    }

    /// The evidence of the last good trial of a cell.
    pub fn evidence(&self, cell: C) -> Option<&BTreeMap<String, String>> {
        self.findings(cell).last().map(|(_, finding)| &finding.evidence)
    }

    /// Every caveat once, with the number of trials it holds for.
    pub fn caveats(&self) -> Vec<(String, usize)> {
        let mut counted: Vec<(String, usize)> = Vec::new();
        let findings = self.cells.iter().flat_map(|&cell| self.findings(cell));
        for caveat in findings.flat_map(|(_, finding)| &finding.caveats) {
            match counted.iter_mut().find(|(known, _)| known == caveat) {
                Some((_, n)) => *n += 1,
                None => counted.push((caveat.clone(), 1)),
            }
        }
        counted
    }
}
