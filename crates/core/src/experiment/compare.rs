//! Two runs of one plan, or two levels of a factor in one run.
//!
//! Levels within a run are paired in blocks. Runs have no blocks in common: the ratio is that of their medians, and its
//! interval is put together from theirs, on the logarithmic scale, by the method of variance estimates recovery (Zou and
//! Donner 2008, Statistics in Medicine 27, 1693-1702). What drifts between two runs is in the ratio, and is not in the
//! interval.

use serde::Serialize;

use super::{Better, Record, Sheet, sheet::paired};
use crate::{
    effects::Observation,
    factor::Factor,
    plan::{Cell, Setting},
    setting::Replica,
    stats::{Basis, Estimate, Interval},
};

/// One metric of one workload, here and there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The workload.
    pub workload: String,
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Which way it improves.
    pub better: Better,
    /// Whether it is the metric that a gate judges: the first of its workload.
    pub is_leading: bool,
    /// By cell.
    pub changes: Vec<Change>,
}

/// A cell, against another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// What is compared: a [`Cell::name`].
    pub cell: String,
    /// With what: the same name in another run, or the cell with the reference level.
    pub against: String,
    /// The value there.
    pub from: Option<Estimate>,
    /// The value here.
    pub to: Option<Estimate>,
    /// Here over there; none where one of them is missing.
    pub ratio: Option<Estimate>,
}

/// What a gate says of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Not certainly worse by more than the gate.
    Passed,
    /// Worse by more than the gate, with all of its interval.
    Regressed,
    /// A value or the interval is missing.
    Unknown,
}

impl Record {
    /// This run against an earlier one, over the cells that both plans have.
    pub fn against(&self, earlier: &Record) -> Vec<Comparison> {
        let before = earlier.sheets();
        let comparison = |sheet: &Sheet| {
            let old = before.iter().find(|old| old.workload == sheet.workload && old.metric == sheet.metric)?;
            let change = |row: &super::Row| {
                let from = old.rows.iter().find(|old| old.cell == row.cell)?.value;
                let ratio = from.zip(row.value).map(|(from, to)| unpaired(&to, &from));
                Some(Change { cell: row.cell.clone(), against: row.cell.clone(), from, to: row.value, ratio })
            };
            Some(compared(sheet, sheet.rows.iter().filter_map(change).collect()))
        };
        led(self.sheets().iter().filter_map(comparison).collect())
    }

    /// Every level of a factor against its reference level, the other factors being equal; nothing of a workload whose
    /// program had two versions.
    pub fn by(&self, factor: &Factor) -> Vec<Comparison> {
        let cells = self.plan.cells();
        let comparison = |sheet: &Sheet| {
            let workload =
                self.plan.workload(&sheet.workload).filter(|workload| self.mixed(&workload.name).is_none())?;
            let contrasts = self.plan.contrasts(workload);
            let reference = contrasts.iter().find(|varied| varied.factor == factor)?.levels[0];
            let observations = self.observations(&sheet.workload, &sheet.metric, &cells);
            let own = |setting: &Setting| -> Vec<&Observation> {
                observations.iter().filter(|o| o.replica == Replica::A && o.setting == *setting).collect()
            };
            let settings = self.plan.settings(workload);
            let change = |setting: &Setting| {
                let level = setting.named(factor.name).filter(|level| *level != reference)?;
                // A native setting is without the guest's leaf: it is the reference of all of them.
                let is_reference = |other: &&Setting| {
                    other
                        .levels()
                        .all(|(f, l)| if f == factor { l == reference } else { setting.named(f.name) == Some(l) })
                };
                let other =
                    settings.iter().find(|other| other.named(factor.name) != Some(level) && is_reference(other))?;
                let name = |setting: &Setting| {
                    Cell { workload: sheet.workload.clone(), setting: setting.clone(), replica: Replica::A }.name()
                };
                let value =
                    |own: &[&Observation]| Estimate::of_median(&own.iter().map(|o| o.value).collect::<Vec<_>>());
                let (to, from) = (own(setting), own(other));
                Some(Change {
                    cell: name(setting),
                    against: name(other),
                    from: value(&from),
                    to: value(&to),
                    ratio: paired(&to, &from),
                })
            };
            Some(compared(sheet, settings.iter().filter_map(change).collect()))
        };
        led(self.sheets().iter().filter_map(comparison).collect())
    }
}

impl Comparison {
    /// Whether a change is worse by more than `gate`, a fraction.
    pub fn verdict(&self, change: &Change, gate: f64) -> Verdict {
        let Some(interval) = change.ratio.and_then(|ratio| ratio.interval) else { return Verdict::Unknown };
        let is_worse = match self.better {
            Better::Lower => interval.lo > 1.0 + gate,
            Better::Higher => interval.hi < 1.0 - gate,
        };
        if is_worse { Verdict::Regressed } else { Verdict::Passed }
    }
}

fn compared(sheet: &Sheet, changes: Vec<Change>) -> Comparison {
    let Sheet { workload, metric, unit, better, .. } = sheet.clone();
    Comparison { workload, metric, unit, better, is_leading: false, changes }
}

/// Marks the first metric of each workload.
fn led(mut comparisons: Vec<Comparison>) -> Vec<Comparison> {
    for i in 0..comparisons.len() {
        comparisons[i].is_leading = i == 0 || comparisons[i - 1].workload != comparisons[i].workload;
    }
    comparisons
}

/// The ratio of two medians that were measured apart.
fn unpaired(numerator: &Estimate, denominator: &Estimate) -> Estimate {
    let ends = |e: &Estimate| e.interval.map(|i| (e.value.ln(), i.lo.ln(), i.hi.ln(), i.basis));
    let interval =
        ends(numerator).zip(ends(denominator)).map(|((a, a_lo, a_hi, one), (b, b_lo, b_hi, other))| Interval {
            lo: (a - b - (a - a_lo).hypot(b_hi - b)).exp(),
            hi: (a - b + (a_hi - a).hypot(b - b_lo)).exp(),
            basis: if one == Basis::Interpolated { other } else { one },
        });
    Estimate { value: numerator.value / denominator.value, interval, n: numerator.n.min(denominator.n) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_two_runs_is_that_of_independent_logarithms() {
        let estimate = |value: f64, width: f64| Estimate {
            value,
            interval: Some(Interval { lo: value / width, hi: value * width, basis: Basis::Interpolated }),
            n: 7,
        };
        let ratio = unpaired(&estimate(150.0, 1.03_f64.exp()), &estimate(100.0, 1.04_f64.exp()));
        let interval = ratio.interval.unwrap();
        let width = 1.03_f64.hypot(1.04);
        assert!((interval.hi / 1.5 - width.exp()).abs() < 1e-9 && (1.5 / interval.lo - width.exp()).abs() < 1e-9);
        let certain = unpaired(&estimate(110.0, 1.0), &estimate(100.0, 1.0));
        let comparison = |better| Comparison {
            workload: String::new(),
            metric: String::new(),
            unit: String::new(),
            better,
            is_leading: true,
            changes: Vec::new(),
        };
        let change = Change { cell: String::new(), against: String::new(), from: None, to: None, ratio: Some(certain) };
        assert_eq!(comparison(Better::Lower).verdict(&change, 0.05), Verdict::Regressed);
        assert_eq!(comparison(Better::Lower).verdict(&change, 0.15), Verdict::Passed);
        assert_eq!(comparison(Better::Higher).verdict(&change, 0.05), Verdict::Passed);
        assert_eq!(comparison(Better::Higher).verdict(&Change { ratio: None, ..change }, 0.05), Verdict::Unknown);
    }
}
