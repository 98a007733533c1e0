//! Which cells a statement is about, and their values by block.

use std::{collections::BTreeMap, fmt};

use crate::{
    experiment::{Finding, Outcome, Record},
    factor::Level,
    plan::{Cell, Plan},
    setting::Replica,
};

/// Cells by the levels in force of factors and parameters: any of the levels listed, for each name listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection(pub Vec<(String, Vec<Level>)>);

/// Why there is no figure.
pub(super) type Reason = String;

impl Selection {
    /// Its cells of a workload of a plan, without twins; or why there are none.
    pub fn cells(&self, plan: &Plan, workload: &str) -> Result<Vec<Cell>, Reason> {
        let own = |cell: &Cell| cell.workload == workload && cell.replica == Replica::A;
        let mut cells: Vec<Cell> = plan.cells().into_iter().filter(own).collect();
        if cells.is_empty() {
            return Err(format!("the plan has no workload `{workload}`"));
        }
        for (name, levels) in &self.0 {
            let there = distinct(cells.iter().filter_map(|cell| level(plan, cell, name)));
            cells.retain(|cell| level(plan, cell, name).is_some_and(|level| levels.contains(&level)));
            if cells.is_empty() {
                let [wanted, there] = [levels, &there].map(|levels| listed(levels));
                return Err(match there.as_str() {
                    "" => format!("`{workload}` has no {name}"),
                    there => format!("it takes {name} {wanted}, the plan has {there}"),
                });
            }
        }
        Ok(cells)
    }

    /// This one, confined by another.
    pub(super) fn and(&self, other: &Selection) -> Selection {
        Selection(self.0.iter().chain(&other.0).cloned().collect())
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(|(name, levels)| format!("{name}={}", listed(levels))).collect();
        f.write_str(&words.join(" "))
    }
}

/// The level in force of a factor or of a parameter of the workload.
pub(super) fn level(plan: &Plan, cell: &Cell, name: &str) -> Option<Level> {
    let parameter = plan.parameters(cell).into_iter().find(|(own, _)| *own == name).map(|(_, level)| level);
    parameter.or_else(|| cell.setting.level(name))
}

/// Values of a metric by block: the geometric mean over cells, in blocks that have all of them. Or why there are none.
pub(super) fn values(record: &Record, cells: &[Cell], metric: &str) -> Result<BTreeMap<u32, f64>, Reason> {
    let mut logs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for cell in cells {
        let mut is_there = false;
        for (block, finding) in findings(record, cell)? {
            let value = finding.value(metric).filter(|value| *value > 0.0 && value.is_finite());
            is_there |= value.is_some();
            logs.entry(block).or_default().extend(value.map(f64::ln));
        }
        if !is_there {
            return Err(format!("{} has no {metric}", cell.name()));
        }
    }
    let whole = logs.into_iter().filter(|(_, logs)| logs.len() == cells.len());
    let values: BTreeMap<u32, f64> =
        whole.map(|(block, logs)| (block, (logs.iter().sum::<f64>() / cells.len() as f64).exp())).collect();
    if values.is_empty() { Err("no block has all of its cells".to_owned()) } else { Ok(values) }
}

/// The unit of a metric of a cell.
pub(super) fn unit(record: &Record, cell: &Cell, metric: &str) -> Result<String, Reason> {
    let unit = |finding: &Finding| finding.metrics.iter().find(|m| m.name == metric).map(|m| m.unit.clone());
    let units = findings(record, cell)?.into_iter().find_map(|(_, finding)| unit(finding));
    units.ok_or_else(|| format!("{} has no {metric}", cell.name()))
}

/// The successful trials of a cell by block, at least one; or why there are none.
pub(super) fn findings<'r>(record: &'r Record, cell: &Cell) -> Result<Vec<(u32, &'r Finding)>, Reason> {
    let name = cell.name();
    let trials = record.trials.iter().filter(|trial| trial.cell == name);
    let found: Vec<(u32, &Finding)> = trials
        .filter_map(|trial| match &trial.outcome {
            Outcome::Ok(finding) => Some((trial.block, finding)),
            Outcome::Failed { .. } => None,
        })
        .collect();
    if !found.is_empty() {
        return Ok(found);
    }
    if let Some(missing) = record.missing.iter().find(|missing| missing.cell == name) {
        return Err(missing.reason.clone());
    }
    let failed = record.failures().find(|(trial, _)| trial.cell == name).map(|(_, reason)| reason);
    Err(format!("{name}: {}", failed.unwrap_or("not reached")))
}

fn distinct(levels: impl Iterator<Item = Level>) -> Vec<Level> {
    let mut distinct: Vec<Level> = levels.collect();
    distinct.sort();
    distinct.dedup();
    distinct
}

fn listed(levels: &[Level]) -> String {
    let words: Vec<String> = levels.iter().map(Level::to_string).collect();
    match words.as_slice() {
        [first, .., last] if words.len() > 3 => format!("{first} to {last}"),
        _ => words.join(", "),
    }
}
