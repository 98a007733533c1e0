//! Statements against a run, and against figures found by hand.

use std::collections::BTreeMap;

use super::{
    Bound, Crossing, Fact, Judged, NOT_TESTED, Published, Ratio, Statement, Term, Test, Value, Verdict, WalkReferences,
    select::{self, Reason},
};
use crate::{
    crossover::{Crossover, Point, Reach},
    experiment::Record,
    factor::Level,
    plan::Cell,
    prose::{self, nanos_within, ratio_within},
    setting::Replica,
    stats::Estimate,
};

/// Our figure in words, and what follows from it; or why there is no figure.
type Finding = Result<(String, Verdict), Reason>;

impl Published {
    /// Every statement against a run.
    pub fn judge(&self, record: &Record) -> Vec<Judged> {
        self.statements.iter().map(|statement| statement.judge(record)).collect()
    }
}

impl Statement {
    /// The statement against a run.
    pub fn judge(&self, record: &Record) -> Judged {
        self.judged(match &self.test {
            Test::Crossover(crossing) => crossing.find(record).map(|found| crossing.judge(&found)),
            Test::Value(value) => value.find(record),
            Test::Ratio(ratio) => ratio.find(record),
            Test::Fact(fact) => fact.find(record),
            Test::WalkReferences(references) => Ok(references.judge()),
        })
    }

    /// The statement beside what was found, or the reason why nothing was: for commands that have no [`Record`].
    pub fn judged(&self, found: Result<(String, Verdict), String>) -> Judged {
        let (here, verdict) = found.unwrap_or_else(|reason| (String::new(), Verdict::NotTested { reason }));
        Judged { id: self.id.clone(), says: self.says.clone(), here, verdict }
    }
}

impl Crossing {
    fn find(&self, record: &Record) -> Result<Crossover, Reason> {
        let curve = |selection: &super::Selection| -> Result<Vec<Point>, Reason> {
            let cells = selection.cells(&record.plan, &self.workload)?;
            refuse_emulated(record, &cells[0], &self.metric)?;
            let mut points = Vec::new();
            let mut reason = None;
            for cell in &cells {
                // A place that could not be measured leaves the others.
                match select::values(record, std::slice::from_ref(cell), &self.metric) {
                    Ok(values) => {
                        let at = select::level(&record.plan, cell, self.along.name).and_then(number);
                        points.extend(
                            values.into_iter().filter_map(|(block, cost)| Some(Point { block, at: at?, cost })),
                        );
                    }
                    Err(why) => reason = reason.or(Some(why)),
                }
            }
            if points.is_empty() { Err(reason.unwrap_or_else(|| "no such cell".to_owned())) } else { Ok(points) }
        };
        let found = Crossover::of(&curve(&self.incumbent)?, &curve(&self.challenger)?);
        found.ok_or_else(|| format!("no block has both curves at two levels of {}", self.along.name))
    }

    /// The statement against a crossover.
    pub fn judge(&self, found: &Crossover) -> (String, Verdict) {
        let place = |reach: Reach| match reach {
            Reach::Before(_) => 0.0,
            Reach::At(place) => place,
            Reach::Beyond(_) => f64::INFINITY,
        };
        let verdict = match found.interval.map(|interval| (place(interval.lo), place(interval.hi))) {
            None => Verdict::undecided("one block has no interval"),
            Some((lo, hi)) => {
                let (near, far) = (self.at / self.within, self.at * self.within);
                let holds_it = lo <= self.at && self.at <= hi && hi < prose::VAGUE * lo;
                match (lo, hi) {
                    (lo, hi) if (near <= lo && hi <= far) || holds_it => Verdict::Confirmed,
                    (lo, hi) if hi < near || far < lo => Verdict::Contradicted,
                    _ => Verdict::undecided("the interval reaches beyond what would agree: more blocks"),
                }
            }
        };
        (found.sentence(&self.names), verdict)
    }
}

impl Value {
    fn find(&self, record: &Record) -> Finding {
        let cells = self.of.cells(&record.plan, &self.workload)?;
        let unit = select::unit(record, &cells[0], &self.metric)?;
        refuse_emulated(record, &cells[0], &self.metric)?;
        for cell in &cells {
            for (_, finding) in select::findings(record, cell)? {
                for (key, wanted) in &self.demands {
                    let got = finding.evidence.get(key).map_or("nothing", String::as_str);
                    if got != wanted {
                        return Err(format!("it takes {key} {wanted}, a trial had {got}"));
                    }
                }
            }
        }
        let values: Vec<f64> = select::values(record, &cells, &self.metric)?.into_values().collect();
        let estimate = Estimate::of_median(&values).ok_or("no positive value")?;
        Ok((format!("{} {unit}", nanos_within(&estimate)), self.bound.judge(&estimate)))
    }
}

impl Ratio {
    fn find(&self, record: &Record) -> Finding {
        let [of, over] = [&self.of, &self.over].map(|terms| self.product(record, terms));
        let (of, over) = (of?, over?);
        let pairs: Vec<(f64, f64)> = of.iter().filter_map(|(block, of)| Some((*of, *over.get(block)?))).collect();
        let ratio = Estimate::of_ratio(&pairs).ok_or("no block has both sides of the ratio")?;
        let verdict = match self.bound.judge(&ratio) {
            Verdict::Confirmed | Verdict::Contradicted if self.drowns(record, &ratio) => {
                Verdict::undecided("the baseline differs as much from itself")
            }
            verdict => verdict,
        };
        Ok((format!("{}: {}", self.measures, ratio_within(&ratio)), verdict))
    }

    fn product(&self, record: &Record, terms: &[Term]) -> Result<BTreeMap<u32, f64>, Reason> {
        let mut product: Option<BTreeMap<u32, f64>> = None;
        for Term { metric, cells } in terms {
            let cells = cells.cells(&record.plan, &self.workload)?;
            refuse_emulated(record, &cells[0], metric)?;
            let values = select::values(record, &cells, metric)?;
            product = Some(match product {
                None => values,
                Some(known) => {
                    known.into_iter().filter_map(|(block, value)| Some((block, value * values.get(&block)?))).collect()
                }
            });
        }
        product.ok_or_else(|| "the statement names no cells".to_owned())
    }

    /// Whether the baseline's twin shows as large a difference where there is none.
    fn drowns(&self, record: &Record, ratio: &Estimate) -> bool {
        let (Some(workload), Some(term)) = (record.plan.workload(&self.workload), self.of.first()) else {
            return false;
        };
        let Some(setting) = record.plan.baseline(workload) else { return false };
        let own = |replica| {
            let cell = Cell { workload: workload.name.clone(), setting: setting.clone(), replica };
            select::values(record, &[cell], &term.metric).unwrap_or_default()
        };
        let (first, second) = (own(Replica::A), own(Replica::APrime));
        let pairs: Vec<(f64, f64)> = second.iter().filter_map(|(block, b)| Some((*b, *first.get(block)?))).collect();
        let floor = Estimate::of_ratio(&pairs).map_or(0.0, |floor| floor.value.ln().abs());
        (ratio.value / self.bound.value()).ln().abs() <= floor
    }
}

impl Fact {
    fn find(&self, record: &Record) -> Finding {
        let mut told: Vec<&str> = Vec::new();
        for cell in super::Selection::default().cells(&record.plan, &self.workload)? {
            let findings = select::findings(record, &cell)?;
            told.extend(findings.into_iter().filter_map(|(_, f)| f.evidence.get(&self.evidence).map(String::as_str)));
        }
        self.judge(&told)
    }

    /// The statement against what was observed, trial by trial.
    pub fn judge(&self, told: &[&str]) -> Result<(String, Verdict), String> {
        let tested: Vec<&str> = told.iter().copied().filter(|told| !told.starts_with(NOT_TESTED)).collect();
        let Some(first) = tested.first() else {
            let reason = told.iter().find_map(|told| told.strip_prefix(NOT_TESTED));
            return Err(reason.map_or_else(|| format!("no trial tells {}", self.evidence), str::to_owned));
        };
        let agree = tested.iter().filter(|told| self.agrees(told)).count();
        let odd = tested.iter().find(|told| **told != *first);
        let here = match odd {
            None => format!("{}: {first}", self.evidence),
            Some(odd) => format!("{}: {first}, but also {odd}", self.evidence),
        };
        let verdict = match agree {
            n if n == tested.len() => Verdict::Confirmed,
            0 => Verdict::Contradicted,
            n => Verdict::undecided(format!("{n} of {} trials agree", tested.len())),
        };
        Ok((here, verdict))
    }

    fn agrees(&self, told: &str) -> bool {
        told.strip_prefix(&self.is).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    }
}

impl WalkReferences {
    fn judge(&self) -> (String, Verdict) {
        let WalkReferences { guest, host, published } = *self;
        let count = self.count();
        let verdict = if count == published { Verdict::Confirmed } else { Verdict::Contradicted };
        let here = format!("by arithmetic: ({guest} + 1) × ({host} + 1) − 1 = {count}, the data not counted");
        (here, verdict)
    }
}

impl Bound {
    /// What is said of a figure with its interval.
    pub fn judge(&self, figure: &Estimate) -> Verdict {
        let Some(interval) = figure.interval else { return Verdict::undecided("one block has no interval") };
        let (agrees, disagrees) = match *self {
            Bound::Below(bound) => (interval.hi < bound, interval.lo >= bound),
            Bound::Above(bound) => (interval.lo > bound, interval.hi <= bound),
        };
        match (agrees, disagrees) {
            (true, _) => Verdict::Confirmed,
            (false, true) => Verdict::Contradicted,
            (false, false) => Verdict::undecided("the interval holds the bound: more blocks"),
        }
    }

    fn value(&self) -> f64 {
        match *self {
            Bound::Below(bound) | Bound::Above(bound) => bound,
        }
    }
}

/// Times on an emulated processor are those of its emulator; numbers of bytes and events hold there too.
fn refuse_emulated(record: &Record, cell: &Cell, metric: &str) -> Result<(), Reason> {
    let unit = select::unit(record, cell, metric)?;
    let is_time = matches!(unit.as_str(), "ns" | "us" | "ms" | "s") || unit.ends_with("/s");
    match record.is_emulated(&cell.name()) && is_time {
        true => Err("emulated: the times mean nothing".to_owned()),
        false => Ok(()),
    }
}

/// A level on the scale of its factor.
fn number(level: Level) -> Option<f64> {
    level.size().map(|size| size.0 as f64).or_else(|| level.count().map(|count| count as f64))
}
