//! What the reports of `vmtax touch` and `vmtax walk` share: head, notes, caveats, and the frame of their JSON.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use serde::Serialize;
use vmtax_core::{
    host::Host,
    run::Ending,
    series::{Series, Status},
    stats::Estimate,
};

use crate::{
    export::SCHEMA,
    matrix,
    wrap::{item, wrapped},
};

/// One JSON object: what was asked for, the host, and rows.
#[derive(Debug, Serialize)]
pub(crate) struct Document<'s, R> {
    pub schema: u32,
    pub command: &'static str,
    pub host: &'s Host,
    pub seed: u64,
    pub blocks: u32,
    pub seconds: f64,
    pub ending: Ending,
    pub bytes: u64,
    pub rows: Vec<R>,
}

/// The figures of a row; what does not apply is null.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Figures {
    pub value: Option<f64>,
    pub ci: Option<[f64; 2]>,
    pub trials: usize,
    pub failures: Vec<String>,
    pub evidence: Option<BTreeMap<String, String>>,
    pub status: &'static str,
    pub reason: Option<String>,
    pub remedy: Option<String>,
}

impl Figures {
    /// Of one metric of a cell.
    pub fn of<C: Copy + PartialEq>(series: &Series<C>, cell: C, metric: &str) -> Figures {
        let estimate = series.estimate(cell, metric);
        let (status, reason, remedy) = match series.status(cell) {
            Status::Ok => ("ok", None, None),
            Status::Failed(reason) => ("failed", Some(reason), None),
            Status::Unavailable { reason, remedy } => ("unavailable", Some(reason), Some(remedy)),
            Status::NotReached => ("failed", Some("the run ended before its turn"), None),
        };
        Figures {
            value: estimate.map(|e| e.value),
            ci: ends(estimate.as_ref()),
            trials: series.findings(cell).count(),
            failures: series.failures(cell).map(str::to_owned).collect(),
            evidence: series.evidence(cell).cloned(),
            status,
            reason: reason.map(str::to_owned),
            remedy: remedy.map(str::to_owned),
        }
    }
}

/// The ends of an interval.
pub(crate) fn ends(estimate: Option<&Estimate>) -> Option<[f64; 2]> {
    estimate?.interval.map(|interval| [interval.lo, interval.hi])
}

/// The frame around `rows`.
pub(crate) fn document<'s, C: Copy + PartialEq, R>(
    command: &'static str,
    series: &'s Series<C>,
    bytes: u64,
    rows: Vec<R>,
) -> Document<'s, R> {
    Document {
        schema: SCHEMA,
        command,
        host: &series.host,
        seed: series.seed,
        blocks: series.blocks(),
        seconds: series.seconds,
        ending: series.ending,
        bytes,
        rows,
    }
}

/// A title, what paging this is, and how it was measured.
pub(crate) fn head<C: Copy + PartialEq>(title: &str, series: &Series<C>) -> String {
    let ending = match series.ending {
        Ending::Done => "",
        Ending::Interrupted => ", interrupted",
        Ending::Failed => ", ended by an error",
    };
    let blocks = series.blocks();
    let noun = if blocks == 1 { "block" } else { "blocks" };
    let measured = format!("{blocks} {noun} in {:.0} s, seed {}{ending}", series.seconds, series.seed);
    [title.to_owned(), matrix::kind(&series.host), measured].map(|line| wrapped("", "  ", &line)).concat()
}

/// Why cells have no figures, each reason once with the cells it holds for.
pub(crate) fn notes<C: Copy + PartialEq>(series: &Series<C>, name: impl Fn(C) -> String) -> String {
    let mut notes: Vec<(String, Option<String>, Vec<String>)> = Vec::new();
    for &cell in &series.cells {
        let (reason, remedy) = match series.status(cell) {
            Status::Ok | Status::NotReached => continue,
            Status::Failed(reason) => (format!("failed: {reason}"), None),
            Status::Unavailable { reason, remedy } => (reason.to_owned(), Some(remedy.to_owned())),
        };
        match notes.iter_mut().find(|(known, way, _)| (known, way) == (&reason, &remedy)) {
            Some((_, _, cells)) if !cells.contains(&name(cell)) => cells.push(name(cell)),
            Some(_) => {}
            None => notes.push((reason, remedy, vec![name(cell)])),
        }
    }
    let entry = |(reason, remedy, cells): &(String, Option<String>, Vec<String>)| {
        let way = remedy.as_deref().map_or(String::new(), matrix::notes::command);
        item("- ", &format!("{}: {reason}", cells.join(", "))) + &way
    };
    let listed: String = notes.iter().map(entry).collect();
    if listed.is_empty() { listed } else { format!("What could not be measured\n{listed}") }
}

/// What a reader must know.
pub(crate) fn caveats<C: Copy + PartialEq>(series: &Series<C>) -> String {
    let told = |(caveat, n): (String, usize)| format!("{n} {}: {caveat}.", if n == 1 { "trial" } else { "trials" });
    let mut lines: Vec<String> = series.caveats().into_iter().map(told).collect();
    let failures: usize = series.cells.iter().map(|&cell| series.failures(cell).count()).sum();
    if failures > 0 {
        lines.push(format!("Left out: {failures} of {} trials, which failed.", series.records.len()));
    }
    if series.host.nested {
        lines.push(
            "The figures hold for this guest, not for the bare metal below it: memory that the hypervisor below has \
             taken back costs its fault too."
                .to_owned(),
        );
    }
    let listed: String = lines.iter().map(|line| item("- ", line)).collect();
    if listed.is_empty() { listed } else { format!("Caveats\n{listed}") }
}

/// Sentences under a title; nothing for none.
pub(crate) fn said(title: &str, sentences: &[String]) -> String {
    let listed: String = sentences.iter().map(|sentence| item("- ", sentence)).collect();
    if listed.is_empty() { listed } else { format!("{title}\n{listed}") }
}

/// A table without lines but the one under its head, the columns from `numbers` on flush right.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>], numbers: usize) -> String {
    let mut table = Table::new();
    let rule = TableStyle::new().header_separator(LineStyle::none().fill('─'));
    table.load_style(rule).set_content_arrangement(ContentArrangement::Disabled).set_header(head);
    for row in rows {
        table.add_row(row);
    }
    for (nth, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if nth >= numbers {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Those parts that say something, an empty line between them.
pub(crate) fn joined(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}
