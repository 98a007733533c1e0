//! Runs of plans as people and programs read them.

use serde::Serialize;
use vmtax_core::{
    experiment::{Record, Sheet, Trial},
    plan::Replication,
    prose::change_within,
    published::Judged,
    run::Ending,
};

use crate::{
    os, published,
    wrap::{item, wrapped},
};
pub use compare::{Pairing, compared, compared_json, gate_failures};
pub use dry::{Changes, Loan, Turned, dry_run};
pub use export::{csv, json, markdown};
pub use missing::missing;
pub(crate) use table::columns;

mod body;
mod caveats;
mod compare;
mod dry;
mod export;
mod grid;
mod missing;
mod table;

/// One line of `vmtax run --json`.
#[derive(Debug, Serialize)]
struct Line<'t> {
    schema: u32,
    run: &'t str,
    #[serde(flatten)]
    trial: &'t Trial,
}

/// A trial as one line of JSON (schema 1).
pub fn line(run: &str, trial: &Trial) -> String {
    let line = Line { schema: crate::export::SCHEMA, run, trial };
    serde_json::to_string(&line).expect("names and numbers are JSON") + "\n"
}

/// What will happen, before it does.
pub fn announcement(record: &Record) -> String {
    let cells = record.plan.cells().len() - record.missing.len();
    let rest = match record.missing.len() {
        0 => String::new(),
        n => format!(" ({n} cannot be measured here)"),
    };
    let kept = match record.trials.len() {
        0 => String::new(),
        n => format!("; {n} trials are kept already"),
    };
    let noun = if cells == 1 { "cell" } else { "cells" };
    format!("Run {}: {cells} {noun}{rest}, {}{kept}.", record.id, replication(record.plan.replication))
}

pub(crate) fn replication(replication: Replication) -> String {
    match replication {
        Replication::Blocks(1) => "1 block".to_owned(),
        Replication::Blocks(n) => format!("{n} blocks"),
        Replication::Within { blocks, budget } => format!("{blocks} blocks, or what {} s allow", budget.as_secs()),
        Replication::Target { half_width, budget } => {
            format!("until ±{} % or {} s", half_width * 100.0, budget.as_secs())
        }
    }
}

/// Everything `vmtax run` and `vmtax show` print; `judged` is what a study published, beside what was measured.
pub fn text(record: &Record, judged: &[Judged]) -> String {
    let mut parts = vec![head(record)];
    match record.trials.iter().all(|trial| trial.outcome.is_failed()) {
        true => parts.push("Nothing has been measured.\n".to_owned()),
        false => parts.extend(body::parts(record)),
    }
    parts.push(os::ratios(record));
    parts.push(remarks(record));
    parts.push(published::table(judged));
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn head(record: &Record) -> String {
    let ending = match record.ending {
        Some(Ending::Done) => String::new(),
        Some(Ending::Interrupted) => ", interrupted".to_owned(),
        Some(Ending::Failed) => ", ended by an error".to_owned(),
        None => ", not ended".to_owned(),
    };
    let title = if record.plan.title.is_empty() { &record.name } else { &record.plan.title };
    let blocks = if record.blocks() == 1 { "block" } else { "blocks" };
    let seconds = record.seconds.map_or(String::new(), |s| format!(" in {s:.0} s"));
    let run = format!("{} {blocks}{seconds}, seed {}, run {}{ending}", record.blocks(), record.seed, record.id);
    wrapped("", "  ", title) + &wrapped("", "  ", &crate::matrix::kind(&record.host)) + &wrapped("", "  ", &run)
}

fn sheet(sheet: &Sheet) -> String {
    let better = match sheet.better {
        vmtax_core::experiment::Better::Lower => "lower is better",
        vmtax_core::experiment::Better::Higher => "higher is better",
    };
    let mut text = format!("{}: {} in {}, {better}\n", sheet.workload, sheet.metric, sheet.unit);
    text.push_str(&table::text(sheet));
    text.push_str(&floor(sheet, ""));
    if sheet.effects.effects.is_empty() {
        return text;
    }
    text.push_str("Effects of the factors\n");
    for effect in &sheet.effects.effects {
        text.push_str(&item("- ", &effect.sentence()));
    }
    for note in sheet.effects.notes() {
        text.push_str(&wrapped("  ", "  ", &format!("({note})")));
    }
    text
}

/// The noise floor, of what it is where that is not plain.
fn floor(sheet: &Sheet, of: &str) -> String {
    let of = if of.is_empty() { String::new() } else { format!(" ({of})") };
    match sheet.effects.noise_floor.as_ref().map(|ratio| change_within(&ratio.minus_one())) {
        Some(change) => item("", &format!("Noise floor{of}: the baseline against itself, A′/A: {change}.")),
        None => item("", &format!("Noise floor{of}: unknown, the baseline was not measured twice.")),
    }
}

/// What could not be measured, what failed, and what readers must know.
fn remarks(record: &Record) -> String {
    let mut text = missing(&record.missing);
    text.push_str(&missing::failures(record));
    let mixed = record.plan.workloads.iter().filter_map(|workload| record.mixed(&workload.name));
    mixed.for_each(|mixed| text.push_str(&item("caveat: ", &format!("{mixed}. No ratios, no effects of it."))));
    text.push_str(&caveats::text(record));
    text
}
