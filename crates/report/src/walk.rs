//! What `vmtax walk` prints: curves, where small pages begin to win, and what was published.

mod export;

use vmtax_core::{
    crossover::Crossover,
    prose::nanos_within,
    series::Series,
    setting::Backing,
    units::{Bytes, KIB, MIB},
    walk::{Cell, MOST_REFERENCES, Order, Request, STATEMENT, crossover, metric, verdict},
};

pub use export::{csv, json};

use crate::{
    plot::{self, Curve},
    series,
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
        parts.push(tables(series, request, order));
        parts.push(series::said(
            &format!("4 KiB pages against larger ones, {}", order.name()),
            &moves(series, request, order),
        ));
    }
    parts.push(published(series, request));
    if capped {
        parts.push(wrapped("", "", &cap));
    }
    parts.push(series::notes(series, |cell| format!("{} pages", cell.host)));
    parts.push(series::caveats(series));
    series::joined(parts)
}

/// The statement, what became of it, and our figure.
fn published(series: &Series<Cell>, request: &Request) -> String {
    let ours = crossover(series, Order::Sequential, Backing::Huge2m, 1);
    let ours = ours.map_or(String::new(), |found| format!("; here {}", found.sentence("small pages")));
    wrapped("Published: ", "  ", &format!("\"{STATEMENT}\": {}{ours}.", verdict(request, series).words()))
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
    let hosts = measured(series, request, order);
    let places: Vec<String> = request.strides.iter().map(|stride| short(*stride)).collect();
    let plot = plot::text(&places, &hosts.iter().map(curve).collect::<Vec<_>>());
    if plot.is_empty() {
        return plot;
    }
    let key: Vec<String> = hosts.iter().map(|host| format!("{} {host}", letter(*host))).collect();
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

/// `128`, `32K`, `2M`.
fn short(stride: Bytes) -> String {
    match stride.0 {
        n if n >= MIB => format!("{}M", n / MIB),
        n if n >= KIB => format!("{}K", n / KIB),
        n => n.to_string(),
    }
}

/// Figures of one pass, with their intervals: two backings side by side, as more do not fit 80 columns.
fn tables(series: &Series<Cell>, request: &Request, order: Order) -> String {
    let measured = measured(series, request, order);
    let pairs: Vec<String> = measured.chunks(2).map(|hosts| table(series, request, order, hosts)).collect();
    if pairs.is_empty() {
        return String::new();
    }
    format!("One pass, {}: medians with 95 % intervals, ns\n{}", order.name(), pairs.join("\n"))
}

fn table(series: &Series<Cell>, request: &Request, order: Order, hosts: &[Backing]) -> String {
    let head: Vec<String> = hosts.iter().map(|host| format!("on {host}")).collect();
    let head: Vec<&str> = ["stride"].into_iter().chain(head.iter().map(String::as_str)).collect();
    let figure = |host, stride| {
        series.estimate(at(host, order, stride), &metric(1)).map_or("-".to_owned(), |estimate| nanos_within(&estimate))
    };
    let row = |&stride: &Bytes| {
        let figures = hosts.iter().map(|&host| figure(host, stride));
        [stride.to_string()].into_iter().chain(figures).collect()
    };
    let rows: Vec<Vec<String>> = request.strides.iter().map(row).collect();
    series::table(&head, &rows, 1)
}

/// Backings with at least one figure.
fn measured(series: &Series<Cell>, request: &Request, order: Order) -> Vec<Backing> {
    let has_figure = |host: &Backing| {
        request.strides.iter().any(|&stride| series.findings(at(*host, order, stride)).next().is_some())
    };
    request.hosts.iter().copied().filter(has_figure).collect()
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

#[cfg(test)]
mod tests;
