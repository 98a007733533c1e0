//! Memory in use after a few bytes of a large mapping were touched.

use serde::Serialize;
use vmtax_core::{
    experiment::{Record, Status},
    plan::{Bloat, Job, Task},
    units::{Bytes, KIB, MIB},
};

use crate::{
    listing::{Align, table},
    row::{self, Document, Figures, workloads},
};

const METRIC: &str = "bytes_used";
const HEAD: [(&str, Align); 5] = [
    ("host", Align::Left),
    ("one byte in", Align::Right),
    ("touched", Align::Right),
    ("used", Align::Right),
    ("of the mapping", Align::Right),
];

/// A line for each cell of every workload of this kind.
pub(crate) fn body(record: &Record) -> String {
    let rows: Vec<Vec<String>> = bloats(record).iter().map(|(cell, bloat)| line(record, cell, bloat)).collect();
    table(&HEAD, &rows)
}

fn bloats(record: &Record) -> Vec<(String, Bloat)> {
    let bloat = |job: Job| match job {
        Job::Bloat(bloat) => Some(bloat),
        Job::Probe(_)
        | Job::Touch(_)
        | Job::Walk(_)
        | Job::Reserve(_)
        | Job::Rights
        | Job::Os(_)
        | Job::Program(_)
        | Job::Command(_) => None,
    };
    let jobs = workloads(record, Task::Bloat).into_iter().flat_map(|workload| record.plan.jobs(workload));
    jobs.filter_map(|(cell, job)| Some((cell.name(), bloat(job)?))).collect()
}

fn line(record: &Record, cell: &str, bloat: &Bloat) -> Vec<String> {
    let mut line = vec![bloat.host.name().to_owned(), bloat.stride.to_string()];
    let touched = || record.evidence(cell)?.get("touched_bytes")?.parse().ok().map(Bytes);
    line.extend(match (record.status(cell), record.median(cell, METRIC)) {
        (Status::Ok, Some(used)) => vec![
            touched().map_or("?".to_owned(), |touched| touched.to_string()),
            rounded(used as u64),
            format!("{:.1} %", used / bloat.size.0 as f64 * 100.0),
        ],
        (Status::Missing(_), _) => vec!["not here".to_owned()],
        (Status::Failed(_), _) => vec!["FAILED".to_owned()],
        (Status::NotReached | Status::Ok, _) => vec!["not reached".to_owned()],
    });
    line.resize(HEAD.len(), String::new());
    line
}

fn rounded(bytes: u64) -> String {
    match bytes {
        b if b >= MIB => format!("{:.0} MiB", b as f64 / MIB as f64),
        b => format!("{} KiB", b / KIB),
    }
}

/// One JSON object (schema 1).
pub fn json(record: &Record) -> String {
    #[derive(Serialize)]
    struct Row {
        host: &'static str,
        size_bytes: u64,
        gap_bytes: u64,
        touched_bytes: Option<u64>,
        used_bytes: Option<u64>,
        pool_pages: Option<u64>,
        metric: &'static str,
        #[serde(flatten)]
        figures: Figures,
    }
    let row = |(cell, bloat): (String, Bloat)| {
        let figures = Figures::of(record, &cell, METRIC);
        let fact = |name| figures.fact(name).parse().ok();
        Row {
            host: bloat.host.name(),
            size_bytes: bloat.size.0,
            gap_bytes: bloat.stride.0,
            touched_bytes: fact("touched_bytes"),
            used_bytes: figures.value.map(|used| used as u64),
            pool_pages: fact("pool_pages"),
            metric: METRIC,
            figures,
        }
    };
    row::json(&Document::of("bloat", record, Task::Bloat, bloats(record).into_iter().map(row).collect()))
}
