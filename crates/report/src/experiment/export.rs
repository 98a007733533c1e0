//! Runs of plans for programs and documents: JSON (schema 1), CSV and Markdown.

use serde::Serialize;
use vmtax_core::{
    experiment::{Missing, Record, Row, Sheet, Trial},
    host::Host,
    plan::Plan,
    prose::{change_within, nanos_within},
    published::Judged,
    run::Ending,
    stats::Estimate,
};

/// `vmtax show --json` of a run of a plan.
#[derive(Debug, Serialize)]
struct Document<'r> {
    schema: u32,
    run: &'r str,
    plan: &'r str,
    title: &'r str,
    started: &'r str,
    ending: Option<Ending>,
    seconds: Option<f64>,
    host: &'r Host,
    seed: u64,
    blocks: u32,
    sheets: Vec<Sheet>,
    trials: &'r [Trial],
    missing: &'r [Missing],
    published: &'r [Judged],
}

/// One JSON object; `judged` is what a study published, beside what was measured.
pub fn json(record: &Record, judged: &[Judged]) -> serde_json::Result<String> {
    let Plan { title, .. } = &record.plan;
    let document = Document {
        schema: crate::export::SCHEMA,
        run: &record.id,
        plan: &record.name,
        title,
        started: &record.started,
        ending: record.ending,
        seconds: record.seconds,
        host: &record.host,
        seed: record.seed,
        blocks: record.blocks(),
        sheets: record.sheets(),
        trials: &record.trials,
        missing: &record.missing,
        published: judged,
    };
    Ok(serde_json::to_string(&document)? + "\n")
}

/// One line of CSV.
#[derive(Debug, Serialize)]
struct CsvRow<'r> {
    run: &'r str,
    workload: &'r str,
    cell: &'r str,
    metric: &'r str,
    unit: &'r str,
    value: Option<f64>,
    lo: Option<f64>,
    hi: Option<f64>,
    ratio: Option<f64>,
    ratio_lo: Option<f64>,
    ratio_hi: Option<f64>,
    trials: u32,
    failed: u32,
    missing: Option<&'r str>,
}

/// A line for every cell and metric.
pub fn csv(record: &Record) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for sheet in record.sheets() {
        for row in &sheet.rows {
            writer.serialize(csv_row(record, &sheet, row))?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8(bytes).expect("what was written was text"))
}

fn csv_row<'r>(record: &'r Record, sheet: &'r Sheet, row: &'r Row) -> CsvRow<'r> {
    let value = |estimate: &Option<Estimate>| estimate.map(|e| e.value);
    let lo = |estimate: &Option<Estimate>| estimate.and_then(|e| e.interval).map(|i| i.lo);
    let hi = |estimate: &Option<Estimate>| estimate.and_then(|e| e.interval).map(|i| i.hi);
    CsvRow {
        run: &record.id,
        workload: &sheet.workload,
        cell: &row.cell,
        metric: &sheet.metric,
        unit: &sheet.unit,
        value: value(&row.value),
        lo: lo(&row.value),
        hi: hi(&row.value),
        ratio: value(&row.ratio),
        ratio_lo: lo(&row.ratio),
        ratio_hi: hi(&row.ratio),
        trials: row.trials,
        failed: row.failed,
        missing: row.missing.as_deref(),
    }
}

/// Tables for a document.
pub fn markdown(record: &Record, judged: &[Judged]) -> String {
    let mut text = format!("# {}\n\nRun {}, seed {}.\n", record.plan.title, record.id, record.seed);
    for sheet in record.sheets() {
        text.push_str(&format!("\n## {}: {}\n\n", sheet.workload, sheet.metric));
        text.push_str(&format!("| cell | {} | against the baseline | trials |\n|---|---|---|---|\n", sheet.unit));
        for row in &sheet.rows {
            let value = row.value.as_ref().map_or("–".to_owned(), nanos_within);
            let ratio = row.ratio.map_or(String::new(), |ratio| change_within(&ratio.minus_one()));
            text.push_str(&format!("| {} | {value} | {ratio} | {} |\n", row.cell, row.trials));
        }
        text.push('\n');
        sheet.effects.effects.iter().for_each(|effect| text.push_str(&format!("- {}\n", effect.sentence())));
    }
    text + &crate::published::markdown(judged)
}
