//! What a run of a plan says: for each workload and metric its cells, their ratios to the baseline, and the effects of
//! the factors.

use serde::Serialize;

use super::{Better, Metric, Outcome, Record};
use crate::{
    effects::{Effects, Observation},
    plan::{Cell, Workload},
    setting::Replica,
    stats::Estimate,
};

/// One metric of one workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sheet {
    /// The workload.
    pub workload: String,
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Which way it improves.
    pub better: Better,
    /// The cell that ratios are ratios to.
    pub baseline: Option<String>,
    /// In the order of the plan, without the baseline's twin.
    pub rows: Vec<Row>,
    /// What the factors do, and the noise floor.
    pub effects: Effects,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// [`Cell::name`].
    pub cell: String,
    /// The median over blocks; none where no trial succeeded.
    pub value: Option<Estimate>,
    /// The ratio to the baseline, paired in blocks; none for the baseline itself, and between versions of a program.
    pub ratio: Option<Estimate>,
    /// Trials that succeeded.
    pub trials: u32,
    /// Trials that failed.
    pub failed: u32,
    /// Why the cell cannot be measured on this host, where it cannot.
    pub missing: Option<String>,
    /// Whether a processor that QEMU emulates has part in it: mechanisms are real then, and times mean nothing.
    pub emulated: bool,
}

impl Record {
    /// A sheet for every metric of every workload; the leading metric of a workload first.
    pub fn sheets(&self) -> Vec<Sheet> {
        let cells = self.plan.cells();
        self.plan.workloads.iter().flat_map(|workload| self.all_of(workload, &cells)).collect()
    }

    /// The sheet of a workload's leading metric; none where nothing was measured, or only facts were found.
    pub fn leading(&self, workload: &str) -> Option<Sheet> {
        let workload = self.plan.workload(workload)?;
        let cells = self.plan.cells();
        let first = *self.metrics_of(workload, &cells).first()?;
        Some(self.sheet(workload, first, &cells))
    }

    /// Every value of a metric of a workload.
    pub fn observations(&self, workload: &str, metric: &str, cells: &[Cell]) -> Vec<Observation> {
        let of = |cell: &Cell| {
            let name = cell.name();
            let values = self.trials.iter().filter(move |trial| trial.cell == name);
            let values = values.filter_map(|trial| match &trial.outcome {
                Outcome::Ok(finding) => Some((trial.block, finding.value(metric)?)),
                Outcome::Failed { .. } => None,
            });
            let Cell { setting, replica, .. } = cell.clone();
            let of = move |(block, value)| Observation { block, setting: setting.clone(), replica, value };
            values.map(of).collect::<Vec<_>>()
        };
        cells.iter().filter(|cell| cell.workload == workload).flat_map(of).collect()
    }

    /// The sheets of one workload.
    pub fn sheets_of(&self, workload: &str) -> Vec<Sheet> {
        let cells = self.plan.cells();
        self.plan.workload(workload).map_or_else(Vec::new, |workload| self.all_of(workload, &cells))
    }

    fn all_of(&self, workload: &Workload, cells: &[Cell]) -> Vec<Sheet> {
        let metrics = self.metrics_of(workload, cells);
        metrics.into_iter().map(|metric| self.sheet(workload, metric, cells)).collect()
    }

    /// The metrics that trials of a workload have, the leading one first.
    fn metrics_of(&self, workload: &Workload, cells: &[Cell]) -> Vec<&Metric> {
        let names: Vec<String> = cells.iter().filter(|c| c.workload == workload.name).map(Cell::name).collect();
        let mut metrics: Vec<&Metric> = Vec::new();
        for trial in self.trials.iter().filter(|trial| names.contains(&trial.cell)) {
            let Outcome::Ok(finding) = &trial.outcome else { continue };
            for metric in &finding.metrics {
                if !metrics.iter().any(|known| known.name == metric.name) {
                    metrics.push(metric);
                }
            }
        }
        metrics
    }

    fn sheet(&self, workload: &Workload, metric: &Metric, cells: &[Cell]) -> Sheet {
        let observations = self.observations(&workload.name, &metric.name, cells);
        let baseline = self.plan.baseline(workload);
        let is_mixed = self.mixed(&workload.name).is_some();
        let is_row = |cell: &&Cell| cell.workload == workload.name && cell.replica == Replica::A;
        let base: Vec<&Observation> =
            observations.iter().filter(|o| o.replica == Replica::A && Some(&o.setting) == baseline.as_ref()).collect();
        let row = |cell: &Cell| {
            let own: Vec<&Observation> =
                observations.iter().filter(|o| o.replica == Replica::A && o.setting == cell.setting).collect();
            let is_baseline = Some(&cell.setting) == baseline.as_ref();
            let values: Vec<f64> = own.iter().map(|o| o.value).collect();
            let name = cell.name();
            Row {
                value: Estimate::of_median(&values),
                ratio: if is_baseline || is_mixed { None } else { paired(&own, &base) },
                trials: own.len() as u32,
                failed: self.failures().filter(|(trial, _)| trial.cell == name).count() as u32,
                missing: self.missing.iter().find(|missing| missing.cell == name).map(|m| m.reason.clone()),
                emulated: self.is_emulated(&name),
                cell: name,
            }
        };
        let Metric { name, unit, better, .. } = metric.clone();
        let cell = |setting| Cell { workload: workload.name.clone(), setting, replica: Replica::A };
        Sheet {
            workload: workload.name.clone(),
            metric: name,
            unit,
            better,
            rows: cells.iter().filter(is_row).map(row).collect(),
            effects: match is_mixed {
                true => Effects::of(&[], &[]),
                false => Effects::of(&self.plan.contrasts(workload), &observations),
            },
            baseline: baseline.map(|setting| cell(setting).name()),
        }
    }
}

/// The ratio of two cells over the blocks that have both.
pub(super) fn paired(numerators: &[&Observation], denominators: &[&Observation]) -> Option<Estimate> {
    let partner = |o: &Observation| denominators.iter().find(|other| other.block == o.block).map(|other| other.value);
    let pairs: Vec<(f64, f64)> = numerators.iter().filter_map(|o| Some((o.value, partner(o)?))).collect();
    Estimate::of_ratio(&pairs)
}
