//! What the exports of work that has a table of its own share: the frame of the JSON, and the figures of a row.

use std::collections::BTreeMap;

use serde::Serialize;
use vmtax_core::{
    experiment::{Record, Status},
    host::Host,
    plan::Task,
    run::Ending,
    stats::Estimate,
};

use crate::export::SCHEMA;

/// One JSON object: what was asked for, the host, and rows.
#[derive(Debug, Serialize)]
pub(crate) struct Document<'r, R> {
    pub schema: u32,
    pub run: &'r str,
    pub command: &'static str,
    pub host: &'r Host,
    pub seed: u64,
    pub blocks: u32,
    pub seconds: Option<f64>,
    pub ending: Option<Ending>,
    pub noise_floor: Option<NoiseFloor>,
    pub rows: Vec<R>,
}

/// The baseline against itself, A′/A.
#[derive(Debug, Serialize)]
pub(crate) struct NoiseFloor {
    pub ratio: f64,
    pub ci: Option<[f64; 2]>,
}

impl<'r, R> Document<'r, R> {
    /// The frame around `rows`; the noise floor is that of the first workload of this kind.
    pub fn of(command: &'static str, record: &'r Record, task: Task, rows: Vec<R>) -> Self {
        let floor =
            workloads(record, task).into_iter().find_map(|workload| record.leading(workload)?.effects.noise_floor);
        Document {
            schema: SCHEMA,
            run: &record.id,
            command,
            host: &record.host,
            seed: record.seed,
            blocks: record.blocks(),
            seconds: record.seconds,
            ending: record.ending,
            noise_floor: floor.map(|floor| NoiseFloor { ratio: floor.value, ci: ends(Some(&floor)) }),
            rows,
        }
    }
}

/// The names of the workloads that one executor carries out.
pub(crate) fn workloads(record: &Record, task: Task) -> Vec<&str> {
    let own = record.plan.workloads.iter().filter(|workload| workload.kind.task == task);
    own.map(|workload| workload.name.as_str()).collect()
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
    pub fn of(record: &Record, cell: &str, metric: &str) -> Figures {
        let estimate = record.estimate(cell, metric);
        let (status, reason, remedy) = match record.status(cell) {
            Status::Ok => ("ok", None, None),
            Status::Failed(reason) => ("failed", Some(reason), None),
            Status::Missing(missing) => ("unavailable", Some(missing.reason.as_str()), Some(missing.remedy.as_str())),
            Status::NotReached => ("failed", Some("the run ended before its turn"), None),
        };
        Figures {
            value: estimate.map(|e| e.value),
            ci: ends(estimate.as_ref()),
            trials: record.findings(cell).count(),
            failures: record.failures_of(cell).map(str::to_owned).collect(),
            evidence: record.evidence(cell).cloned(),
            status,
            reason: reason.map(str::to_owned),
            remedy: remedy.map(str::to_owned),
        }
    }

    /// A fact of the evidence; empty where it was not seen.
    pub fn fact(&self, name: &str) -> String {
        self.evidence.as_ref().and_then(|facts| facts.get(name).cloned()).unwrap_or_default()
    }
}

/// The ends of an interval.
pub(crate) fn ends(estimate: Option<&Estimate>) -> Option<[f64; 2]> {
    estimate?.interval.map(|interval| [interval.lo, interval.hi])
}

/// A number of a CSV; empty for none.
pub(crate) fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Lines of CSV under a head.
pub(crate) fn csv(head: &str, lines: impl IntoIterator<Item = Vec<String>>) -> String {
    let written = "writing to memory does not fail";
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(head.split(',')).expect(written);
    lines.into_iter().for_each(|line| writer.write_record(line).expect(written));
    String::from_utf8(writer.into_inner().expect(written)).expect("made of strings")
}

/// An object as a line.
pub(crate) fn json(object: &impl Serialize) -> String {
    serde_json::to_string(object).expect("strings, numbers and lists of them are JSON") + "\n"
}
