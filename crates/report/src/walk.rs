//! What `vmtax walk` prints: curves, where small pages begin to win, and what was published.

use serde::Serialize;
use vmtax_core::{
    crossover::Crossover,
    prose::nanos_within,
    series::Series,
    setting::Backing,
    units::{Bytes, KIB, MIB},
    walk::{self, Cell, MOST_REFERENCES, Order, Request, STATEMENT, Verdict, crossover, metric, verdict},
};

use crate::{
    plot::{self, Curve},
    series::{self, Figures},
    wrap::wrapped,
};

/// Curves, crossovers, the published statement and what to know.
pub fn text(series: &Series<Cell>, request: &Request) -> String {
    let capped = request.strides.iter().any(|s| request.passes_at(*s).len() < request.pass_counts().len());
    let cap = format!(
        "A trial makes at most {} million references: the smallest strides have fewer passes.",
        MOST_REFERENCES / 1_000_000
    );
    let title = format!("Walks over {} of fresh memory, 4-byte writes; first touches included", request.size);
    let mut parts = vec![series::head(&title, series)];
    for &order in &request.orders {
        let last = *request.pass_counts().last().expect("one pass is always made");
        let counts = if last > 1 { vec![1, last] } else { vec![1] };
        parts.extend(counts.into_iter().map(|passes| curves(series, request, order, passes)));
        parts.push(table(series, request, order));
        parts.push(series::said(
            &format!("4 KiB pages against larger ones, {}", order.name()),
            &moves(series, request, order),
        ));
    }
    parts.push(wrapped("Published: ", "  ", &format!("\"{STATEMENT}\": {}", verdict(request, series).words())));
    if capped {
        parts.push(wrapped("", "", &cap));
    }
    parts.push(series::notes(series, |cell| format!("{} pages", cell.host)));
    parts.push(series::caveats(series));
    series::joined(parts)
}

fn at(host: Backing, order: Order, stride: Bytes) -> Cell {
    Cell { host, order, stride }
}

fn curves(series: &Series<Cell>, request: &Request, order: Order, passes: u32) -> String {
    let value = |host, stride| series.estimate(at(host, order, stride), &metric(passes)).map(|e| e.value);
    let curve = |&host: &Backing| Curve {
        letter: letter(host),
        values: request.strides.iter().map(|&stride| value(host, stride)).collect(),
    };
    let hosts: Vec<&Backing> =
        request.hosts.iter().filter(|host| request.strides.iter().any(|s| value(**host, *s).is_some())).collect();
    let places: Vec<String> = request.strides.iter().map(|stride| short(*stride)).collect();
    let plot = plot::text(&places, &hosts.iter().map(|host| curve(host)).collect::<Vec<_>>());
    if plot.is_empty() {
        return plot;
    }
    let key: Vec<String> = hosts.iter().map(|host| format!("{} {host}", letter(**host))).collect();
    let after = if passes == 1 { "1 pass".to_owned() } else { format!("{passes} passes") };
    let title = format!("ns a reference after {after}, {} ({}, * several)", order.name(), key.join(", "));
    format!("{title}\n{plot}{:10}stride in bytes (K: KiB, M: MiB), both scales logarithmic\n", "")
}

fn letter(host: Backing) -> char {
    match host {
        Backing::Small => '4',
        Backing::Thp => 't',
        Backing::Huge2m => '2',
        Backing::Huge1g => '1',
    }
}

/// At most three columns: `128`, `32K`, `½M`.
fn short(stride: Bytes) -> String {
    match stride.0 {
        n if n == MIB / 2 => "½M".to_owned(),
        n if n == MIB / 4 => "¼M".to_owned(),
        n if n == MIB / 8 => "⅛M".to_owned(),
        n if n >= MIB => format!("{}M", n / MIB),
        n if n >= KIB => format!("{}K", n / KIB),
        n => n.to_string(),
    }
}

/// Figures of one pass, with their intervals.
fn table(series: &Series<Cell>, request: &Request, order: Order) -> String {
    let head: Vec<String> = request.hosts.iter().map(|host| format!("{host} pages, ns")).collect();
    let head: Vec<&str> = ["stride"].into_iter().chain(head.iter().map(String::as_str)).collect();
    let figure = |host, stride| {
        series.estimate(at(host, order, stride), &metric(1)).map_or("-".to_owned(), |estimate| nanos_within(&estimate))
    };
    let row = |&stride: &Bytes| {
        let figures = request.hosts.iter().map(|&host| figure(host, stride));
        [stride.to_string()].into_iter().chain(figures).collect()
    };
    let rows: Vec<Vec<String>> = request.strides.iter().map(row).collect();
    format!("One pass, {}: medians with 95 % intervals\n{}", order.name(), series::table(&head, &rows, 1))
}

/// The crossover against every larger backing, for one pass and for more, only where it says something new.
fn moves(series: &Series<Cell>, request: &Request, order: Order) -> Vec<String> {
    let mut said = Vec::new();
    for &host in request.hosts.iter().filter(|host| **host != Backing::Small) {
        let found = |passes| Some((passes, crossover(series, order, host, passes)?));
        let all: Vec<(u32, Crossover)> = request.pass_counts().into_iter().filter_map(found).collect();
        let Some((_, first)) = all.first() else { continue };
        said.push(format!("Against {host}, one pass: {}.", first.sentence("small pages")));
        let later: Vec<String> = all.iter().skip(1).map(|(n, c)| format!("{n}: {}", c.value.in_bytes())).collect();
        if !later.is_empty() {
            said.push(format!(
                "Against {host}, after more passes they win from (passes: stride) {}.",
                later.join("; ")
            ));
        }
    }
    said
}

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
