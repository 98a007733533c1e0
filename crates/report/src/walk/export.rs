//! The curves of walks for programs.

use serde::Serialize;
use vmtax_core::{
    crossover::Crossover,
    experiment::Record,
    plan::{Task, Walk},
    published::Judged,
    setting::Backing,
    walk::{crossover_in, metric, walks},
};

use super::View;
use crate::row::{self, Document, Figures, number, workloads};

#[derive(Debug, Serialize)]
struct Row {
    venue: &'static str,
    guest: Option<&'static str>,
    host: &'static str,
    order: &'static str,
    bytes: u64,
    stride: u64,
    passes: u32,
    metric: &'static str,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Debug, Serialize)]
struct Crossing {
    guest: Option<&'static str>,
    host: &'static str,
    order: &'static str,
    bytes: u64,
    passes: u32,
    crossover: Crossover,
}

fn rows(record: &Record) -> Vec<Row> {
    let of = |(cell, walk): (String, Walk)| {
        let row = |passes| Row {
            venue: walk.setting.venue().name(),
            guest: walk.setting.guest.map(|leaf| leaf.name()),
            host: walk.setting.host.name(),
            order: walk.order.name(),
            bytes: walk.size.0,
            stride: walk.stride.0,
            passes,
            metric: "ns_per_reference",
            figures: Figures::of(record, &cell, &metric(passes)),
        };
        walk.pass_counts().into_iter().map(row).collect::<Vec<_>>()
    };
    workloads(record, Task::Walk).into_iter().flat_map(|workload| walks(record, workload)).flat_map(of).collect()
}

fn crossings(record: &Record) -> Vec<Crossing> {
    let mut crossings = Vec::new();
    for walks in workloads(record, Task::Walk).into_iter().map(|workload| walks(record, workload)) {
        for view in View::all(record, &walks) {
            for &host in view.hosts.iter().filter(|host| **host != Backing::Small) {
                crossings.extend(view.pass_counts().into_iter().filter_map(|passes| {
                    Some(Crossing {
                        guest: view.panel.guest.map(|leaf| leaf.name()),
                        host: host.name(),
                        order: view.panel.order.name(),
                        bytes: view.panel.size.0,
                        passes,
                        crossover: crossover_in(record, &walks, view.panel, host, passes)?,
                    })
                }));
            }
        }
    }
    crossings
}

/// The same as one JSON object (schema 1): rows, crossovers, and what was published with what became of it.
pub fn json(record: &Record, published: &[Judged]) -> String {
    #[derive(Serialize)]
    struct Whole<'r> {
        #[serde(flatten)]
        document: Document<'r, Row>,
        most_references: Option<u64>,
        crossovers: Vec<Crossing>,
        published: &'r [Judged],
    }
    let workloads = workloads(record, Task::Walk);
    let first = workloads.first();
    let most = first.and_then(|workload| walks(record, workload).first().and_then(|(_, walk)| walk.references));
    row::json(&Whole {
        document: Document::of("walk", record, Task::Walk, rows(record)),
        most_references: most,
        crossovers: crossings(record),
        published,
    })
}

/// The curves as comma-separated values: one line for each cell and number of passes.
pub fn csv(record: &Record) -> String {
    let head = "venue,guest,host,order,stride,passes,metric,value,lo,hi,trials,status,reason,remedy";
    let line = |row: Row| {
        let Row { venue, guest, host, order, stride, passes, metric, figures, .. } = row;
        vec![
            venue.to_owned(),
            guest.unwrap_or_default().to_owned(),
            host.to_owned(),
            order.to_owned(),
            stride.to_string(),
            passes.to_string(),
            metric.to_owned(),
            number(figures.value),
            number(figures.ci.map(|ci| ci[0])),
            number(figures.ci.map(|ci| ci[1])),
            figures.trials.to_string(),
            figures.status.to_owned(),
            figures.reason.unwrap_or_default(),
            figures.remedy.unwrap_or_default(),
        ]
    };
    row::csv(head, rows(record).into_iter().map(line))
}
