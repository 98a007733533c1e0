//! Huge pages prepared after stress: the rounds, and how scattered free memory was.

use serde::Serialize;
use vmtax_core::{
    experiment::Record,
    plan::{Compact, Job, Reserve, Task},
    published::Judged,
    reserve::{LEADING, Placed, Scatter, placed},
    stats::Estimate,
};

use crate::{
    listing::{Align, table},
    row::{self, Document, Figures, workloads},
    wrap::{item, wrapped},
};

const HEAD: [(&str, Align); 9] = [
    ("block", Align::Right),
    ("round", Align::Right),
    ("asked", Align::Right),
    ("granted", Align::Right),
    ("time", Align::Right),
    ("pages/s", Align::Right),
    ("scattered", Align::Right),
    ("then", Align::Right),
    ("compaction", Align::Right),
];

/// The rounds of every workload of this kind, and their median.
pub(crate) fn body(record: &Record) -> String {
    let of = |workload: &str| {
        let rounds = placed(record, workload);
        let rows: Vec<Vec<String>> = rounds.iter().map(row).collect();
        let asked = asked(record, workload).map_or(String::new(), |job| stress(&job));
        let table = if rows.is_empty() { String::new() } else { table(&HEAD, &rows) };
        let legend = "A block with ' is the baseline's twin. Scattered: share of free memory in blocks smaller than such a page, \
                      before the pages are prepared; then: when they are.";
        let medians: String = record.plan.jobs(workload).iter().map(|(cell, _)| median(record, &cell.name())).collect();
        let rounds = asked + &table + &wrapped("", "", legend);
        if medians.is_empty() { rounds } else { [rounds, medians].join("\n") }
    };
    workloads(record, Task::Reserve).into_iter().map(of).collect::<Vec<_>>().join("\n")
}

/// The job of a workload's first cell.
fn asked(record: &Record, workload: &str) -> Option<Reserve> {
    record
        .plan
        .jobs(workload)
        .into_iter()
        .find_map(|(_, job)| if let Job::Reserve(job) = job { Some(job) } else { None })
}

fn stress(job: &Reserve) -> String {
    let compacted = match job.compact {
        Compact::Off => "",
        Compact::Before => "; memory is compacted before",
    };
    let text = format!(
        "Stress on {:.0} % of available memory, of which {:.2} % stays meanwhile{compacted}.",
        job.stress * 100.0,
        job.kept * 100.0
    );
    wrapped("", "", &text)
}

fn row(Placed { cell, block, round }: &Placed) -> Vec<String> {
    let share =
        |state: &Option<Scatter>| state.map_or("?".to_owned(), |state| format!("{:.0} %", state.unusable * 100.0));
    vec![
        format!("{}{}", block + 1, if cell.ends_with('\'') { "'" } else { "" }),
        round.round.to_string(),
        round.asked.to_string(),
        round.granted.to_string(),
        time(round.seconds),
        format!("{:.0}", round.granted as f64 / round.seconds),
        share(&round.before),
        share(&round.after),
        round.compaction_seconds.map_or("none".to_owned(), time),
    ]
}

/// The median of a cell, over trials of the median over their rounds.
fn median(record: &Record, cell: &str) -> String {
    let Some(Estimate { value, interval, n }) = record.estimate(cell, LEADING) else { return String::new() };
    let within = interval.map_or(String::new(), |i| format!(" [{}, {}]", time(i.lo), time(i.hi)));
    let trials = if n == 1 { "one trial: no interval".to_owned() } else { format!("{n} trials") };
    item("", &format!("{cell}: {}{within} for all pages, the median over rounds ({trials}).", time(value)))
}

/// Three digits, in seconds or milliseconds.
fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 0.1 => format!("{:.0} ms", s * 1e3),
        s => format!("{:.2} ms", s * 1e3),
    }
}

/// One JSON object (schema 1): every round, and a row for each cell.
pub fn json(record: &Record, published: &[Judged]) -> String {
    #[derive(Serialize)]
    struct Round {
        cell: String,
        block: u32,
        round: u32,
        asked: u64,
        granted: u64,
        seconds: f64,
        pages_per_second: f64,
        compaction_seconds: Option<f64>,
        before: Option<State>,
        after: Option<State>,
    }
    #[derive(Serialize)]
    struct State {
        unusable: f64,
        extfrag: f64,
    }
    #[derive(Serialize)]
    struct Row {
        cell: String,
        metric: &'static str,
        #[serde(flatten)]
        figures: Figures,
    }
    #[derive(Serialize)]
    struct Whole<'r> {
        #[serde(flatten)]
        document: Document<'r, Row>,
        rounds: Vec<Round>,
        published: &'r [Judged],
    }
    let state = |s: Option<Scatter>| s.map(|s| State { unusable: s.unusable, extfrag: s.index });
    let round = |Placed { cell, block, round }: Placed| Round {
        cell,
        block,
        round: round.round,
        asked: round.asked,
        granted: round.granted,
        seconds: round.seconds,
        pages_per_second: round.granted as f64 / round.seconds,
        compaction_seconds: round.compaction_seconds,
        before: state(round.before),
        after: state(round.after),
    };
    let names = workloads(record, Task::Reserve);
    let cells = names.iter().flat_map(|workload| record.plan.jobs(workload)).map(|(cell, _)| cell.name());
    let rows = cells.map(|cell| Row { figures: Figures::of(record, &cell, LEADING), cell, metric: LEADING }).collect();
    row::json(&Whole {
        document: Document::of("reserve", record, Task::Reserve, rows),
        rounds: names.iter().flat_map(|workload| placed(record, workload)).map(round).collect(),
        published,
    })
}

#[cfg(test)]
mod tests;
