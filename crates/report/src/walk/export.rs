//! The curves of a walk for programs.

use serde::Serialize;
use vmtax_core::{
    crossover::Crossover,
    series::Series,
    setting::Backing,
    walk::{self, Cell, Request, STATEMENT, Verdict, crossover, metric, verdict},
};

use crate::series::{self, Figures};

#[derive(Debug, Serialize)]
struct Row {
    host: &'static str,
    order: &'static str,
    stride: u64,
    passes: u32,
    metric: &'static str,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Debug, Serialize)]
struct Crossing {
    host: &'static str,
    order: &'static str,
    passes: u32,
    crossover: Crossover,
}

fn rows(series: &Series<Cell>, request: &Request) -> Vec<Row> {
    let of = |&cell: &Cell| {
        request.passes_at(cell.stride).into_iter().map(move |passes| Row {
            host: cell.host.name(),
            order: cell.order.name(),
            stride: cell.stride.0,
            passes,
            metric: "ns_per_reference",
            figures: Figures::of(series, cell, &metric(passes)),
        })
    };
    series.cells.iter().flat_map(of).collect()
}

/// The same as one JSON object (schema 1): rows, crossovers, and the published statement with its verdict.
pub fn json(series: &Series<Cell>, request: &Request) -> String {
    let mut crossovers = Vec::new();
    for &order in &request.orders {
        for &host in request.hosts.iter().filter(|host| **host != Backing::Small) {
            crossovers.extend(request.pass_counts().into_iter().filter_map(|passes| {
                let crossover = crossover(series, order, host, passes)?;
                Some(Crossing { host: host.name(), order: order.name(), passes, crossover })
            }));
        }
    }
    #[derive(Serialize)]
    struct Published {
        statement: &'static str,
        #[serde(flatten)]
        verdict: Verdict,
    }
    #[derive(Serialize)]
    struct Whole<'s> {
        #[serde(flatten)]
        document: series::Document<'s, Row>,
        most_references: u64,
        crossovers: Vec<Crossing>,
        published: Published,
    }
    let whole = Whole {
        document: series::document("walk", series, request.size.0, rows(series, request)),
        most_references: walk::MOST_REFERENCES,
        crossovers,
        published: Published { statement: STATEMENT, verdict: verdict(request, series) },
    };
    serde_json::to_string(&whole).expect("strings, numbers and lists of them are JSON") + "\n"
}

/// The curves as comma-separated values: one line for each cell and number of passes.
pub fn csv(series: &Series<Cell>, request: &Request) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = "writing to memory does not fail";
    let head = "host,order,stride,passes,metric,value,lo,hi,trials,status,reason,remedy";
    writer.write_record(head.split(',')).expect(written);
    for Row { host, order, stride, passes, metric, figures } in rows(series, request) {
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let fields = [
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
        ];
        writer.write_record(fields).expect(written);
    }
    String::from_utf8(writer.into_inner().expect(written)).expect("made of strings")
}
