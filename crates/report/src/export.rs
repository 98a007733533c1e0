//! Machine-readable results of a matrix: JSON (schema 1) and CSV, one row a cell.

use serde::Serialize;
use vmtax_core::{
    analysis::{AnalysisError, CaveatCount, CellSummary, Figures, Outcome, Summary},
    host::Host,
    run::{Ending, Run},
    setting::Setting,
    stats::Estimate,
};

/// The version of the JSON: raised when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// `vmtax matrix --json`.
#[derive(Debug, Serialize)]
struct Document<'r> {
    schema: u32,
    run: &'r str,
    started: &'r str,
    ending: Option<Ending>,
    host: &'r Host,
    probe: Probe,
    seed: u64,
    blocks: u32,
    seconds: Option<f64>,
    noise_floor: Option<NoiseFloor>,
    baseline: Option<Setting>,
    cells: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Probe {
    name: &'static str,
    bytes: u64,
    stride: u64,
    vcpus: u32,
}

#[derive(Debug, Serialize)]
struct NoiseFloor {
    ratio: f64,
    ci: Option<[f64; 2]>,
}

/// One cell. What does not apply is null, never absent.
#[derive(Debug, Default, Serialize)]
struct Row {
    venue: &'static str,
    guest: Option<&'static str>,
    host: &'static str,
    metric: &'static str,
    value: Option<f64>,
    ci: Option<[f64; 2]>,
    trials: u32,
    failures: Vec<String>,
    first_pass: Option<f64>,
    first_pass_ci: Option<[f64; 2]>,
    tax: Option<f64>,
    tax_ci: Option<[f64; 2]>,
    distinguishable: Option<bool>,
    versus_baseline: Option<f64>,
    versus_baseline_ci: Option<[f64; 2]>,
    evidence: Option<RowEvidence>,
    caveats: Vec<String>,
    status: &'static str,
    reason: Option<String>,
    remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct RowEvidence {
    pages_4k: Option<u64>,
    pages_2m: Option<u64>,
    pages_1g: Option<u64>,
    kernel_page_kb: u64,
    thp_coverage: f64,
    faults: Option<u64>,
    exits: Option<u64>,
    steady_faults: Option<u64>,
    nx_lpage_splits: Option<u64>,
}

/// The run as one JSON object.
pub fn json(run: &Run) -> Result<String, AnalysisError> {
    let summary = run.summary()?;
    let document = Document {
        schema: SCHEMA,
        run: &run.id,
        started: &run.started,
        ending: run.ending,
        host: &run.host,
        probe: Probe {
            name: run.request.probe.name(),
            bytes: run.request.size.0,
            stride: run.request.stride.0,
            vcpus: run.request.vcpus,
        },
        seed: run.request.seed,
        blocks: summary.blocks,
        seconds: run.seconds,
        noise_floor: summary.noise_floor.map(|ratio| NoiseFloor { ratio: ratio.value, ci: ends(&ratio) }),
        baseline: summary.baseline,
        cells: rows(&summary),
    };
    Ok(serde_json::to_string(&document).expect("strings, numbers and lists of them are JSON") + "\n")
}

/// The cells as comma-separated values, with a head line (RFC 4180).
pub fn csv(run: &Run) -> Result<String, AnalysisError> {
    const HEAD: [&str; 27] = [
        "run",
        "venue",
        "guest",
        "host",
        "metric",
        "value",
        "value_lo",
        "value_hi",
        "trials",
        "first_pass",
        "tax",
        "tax_lo",
        "tax_hi",
        "distinguishable",
        "versus_baseline",
        "versus_baseline_lo",
        "versus_baseline_hi",
        "pages_4k",
        "pages_2m",
        "pages_1g",
        "kernel_page_kb",
        "thp_coverage",
        "faults",
        "exits",
        "status",
        "reason",
        "remedy",
    ];
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = "writing to memory does not fail";
    writer.write_record(HEAD).expect(written);
    for row in rows(&run.summary()?) {
        writer.write_record(fields(&run.id, row)).expect(written);
    }
    let bytes = writer.into_inner().expect(written);
    Ok(String::from_utf8(bytes).expect("made of strings"))
}

fn fields(run: &str, row: Row) -> [String; 27] {
    fn some(value: Option<impl ToString>) -> String {
        value.map_or(String::new(), |value| value.to_string())
    }
    let end = |ci: Option<[f64; 2]>, which: usize| some(ci.map(|ci| ci[which]));
    let evidence = |of: fn(&RowEvidence) -> Option<u64>| some(row.evidence.as_ref().and_then(of));
    [
        run.to_owned(),
        row.venue.to_owned(),
        some(row.guest),
        row.host.to_owned(),
        row.metric.to_owned(),
        some(row.value),
        end(row.ci, 0),
        end(row.ci, 1),
        row.trials.to_string(),
        some(row.first_pass),
        some(row.tax),
        end(row.tax_ci, 0),
        end(row.tax_ci, 1),
        some(row.distinguishable),
        some(row.versus_baseline),
        end(row.versus_baseline_ci, 0),
        end(row.versus_baseline_ci, 1),
        evidence(|e| e.pages_4k),
        evidence(|e| e.pages_2m),
        evidence(|e| e.pages_1g),
        evidence(|e| Some(e.kernel_page_kb)),
        some(row.evidence.map(|e| e.thp_coverage)),
        evidence(|e| e.faults),
        evidence(|e| e.exits),
        row.status.to_owned(),
        some(row.reason),
        some(row.remedy),
    ]
}

fn rows(summary: &Summary) -> Vec<Row> {
    summary.cells.iter().map(Row::of).collect()
}

impl Row {
    fn of(cell: &CellSummary) -> Row {
        let setting = cell.setting;
        let row = Row {
            venue: setting.venue().name(),
            guest: setting.guest.map(|leaf| leaf.name()),
            host: setting.host.name(),
            metric: "ns_per_access",
            failures: cell.failures.clone(),
            ..Row::default()
        };
        match &cell.outcome {
            Outcome::Ok(figures) => row.with(figures),
            Outcome::Unavailable { reason, remedy } => {
                Row { status: "unavailable", reason: Some(reason.clone()), remedy: Some(remedy.clone()), ..row }
            }
            Outcome::Failed { reason } => Row { status: "failed", reason: Some(reason.clone()), ..row },
        }
    }

    fn with(self, figures: &Figures) -> Row {
        let kvm = figures.evidence.kvm;
        Row {
            value: Some(figures.value.value),
            ci: ends(&figures.value),
            trials: figures.trials,
            first_pass: figures.first_pass.map(|e| e.value),
            first_pass_ci: figures.first_pass.as_ref().and_then(ends),
            tax: figures.tax.map(|e| e.value),
            tax_ci: figures.tax.as_ref().and_then(ends),
            distinguishable: figures.distinguishable,
            versus_baseline: figures.versus_baseline.map(|e| e.value),
            versus_baseline_ci: figures.versus_baseline.as_ref().and_then(ends),
            evidence: Some(RowEvidence {
                pages_4k: kvm.map(|k| k.pages_4k),
                pages_2m: kvm.map(|k| k.pages_2m),
                pages_1g: kvm.map(|k| k.pages_1g),
                kernel_page_kb: figures.evidence.kernel_page_kb,
                thp_coverage: figures.evidence.thp_coverage,
                faults: kvm.map(|k| k.faults),
                exits: kvm.map(|k| k.exits),
                steady_faults: kvm.map(|k| k.steady_faults),
                nx_lpage_splits: kvm.and_then(|k| k.nx_lpage_splits),
            }),
            caveats: figures.caveats.iter().map(told).collect(),
            status: "ok",
            ..self
        }
    }
}

fn told(counted: &CaveatCount) -> String {
    let trials = if counted.trials == 1 { "trial" } else { "trials" };
    format!("{} {trials}: {}", counted.trials, counted.worst)
}

fn ends(estimate: &Estimate) -> Option<[f64; 2]> {
    estimate.interval.map(|interval| [interval.lo, interval.hi])
}

#[cfg(test)]
mod tests;
