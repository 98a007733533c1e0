//! What `vmtax touch` prints.

use serde::Serialize;
use vmtax_core::{
    prose::nanos_within,
    series::{Series, Status},
    touch::{self, Cell, NS_PER_PAGE},
    units::Bytes,
};

use crate::{
    series::{self, Figures},
    wrap::wrapped,
};

const HEAD: [&str; 9] = ["guest", "host", "populated", "ns a page", "real", "user", "sys", "host faults", "KVM faults"];

/// The table, and what it means.
pub fn text(series: &Series<Cell>, size: Bytes) -> String {
    let rows: Vec<Vec<String>> = series.cells.iter().map(|&cell| row(series, cell)).collect();
    let legend = "Medians over blocks, ns with 95 % intervals; seconds of the pass alone. Host faults: minor faults of the \
                  thread (getrusage); KVM faults: pf_taken.";
    series::joined([
        series::head(&format!("First access: one byte written in each 4 KiB page of {size}"), series),
        series::table(&HEAD, &rows, 3),
        wrapped("", "", legend),
        series::said("What this means for this host", &touch::sentences(series)),
        series::notes(series, |cell| cell.setting.to_string()),
        series::caveats(series),
    ])
}

fn row(series: &Series<Cell>, cell: Cell) -> Vec<String> {
    let guest = cell.setting.guest.map_or("native".to_owned(), |leaf| leaf.to_string());
    let mut row = vec![guest, cell.setting.host.to_string(), cell.populated.name().to_owned()];
    let seconds = |metric| series.median(cell, metric).map_or(String::new(), |seconds| format!("{seconds:.3}"));
    let fact = |name| series.evidence(cell).and_then(|facts| facts.get(name).cloned()).unwrap_or_default();
    row.extend(match series.status(cell) {
        Status::Ok => vec![
            series.estimate(cell, NS_PER_PAGE).map_or(String::new(), |estimate| nanos_within(&estimate)),
            seconds("real_seconds"),
            seconds("user_seconds"),
            seconds("system_seconds"),
            fact("host.minor_faults"),
            fact("kvm.pf_taken"),
        ],
        Status::Failed(_) => vec!["FAILED".to_owned()],
        Status::Unavailable { .. } => vec!["not here".to_owned()],
        Status::NotReached => vec!["not reached".to_owned()],
    });
    row
}

#[derive(Debug, Serialize)]
struct Row {
    venue: &'static str,
    guest: Option<&'static str>,
    host: &'static str,
    populated: &'static str,
    metric: &'static str,
    #[serde(flatten)]
    figures: Figures,
    real_seconds: Option<f64>,
    user_seconds: Option<f64>,
    system_seconds: Option<f64>,
    real_ci: Option<[f64; 2]>,
}

/// The same as one JSON object (schema 1).
pub fn json(series: &Series<Cell>, size: Bytes) -> String {
    let rows = series.cells.iter().map(|&cell| Row::of(series, cell)).collect();
    let document = series::document("touch", series, size.0, rows);
    serde_json::to_string(&document).expect("strings, numbers and lists of them are JSON") + "\n"
}

/// The same as comma-separated values, one line a cell.
pub fn csv(series: &Series<Cell>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = "writing to memory does not fail";
    let head = "venue,guest,host,populated,metric,value,lo,hi,trials,real_seconds,user_seconds,system_seconds,\
                host_faults,kvm_faults,status,reason,remedy";
    writer.write_record(head.split(',')).expect(written);
    for row in series.cells.iter().map(|&cell| Row::of(series, cell)) {
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let Figures { value, ci, trials, evidence, status, reason, remedy, .. } = row.figures;
        let fact = |name| evidence.as_ref().and_then(|facts| facts.get(name).cloned()).unwrap_or_default();
        let fields = [
            row.venue.to_owned(),
            row.guest.unwrap_or_default().to_owned(),
            row.host.to_owned(),
            row.populated.to_owned(),
            row.metric.to_owned(),
            number(value),
            number(ci.map(|ci| ci[0])),
            number(ci.map(|ci| ci[1])),
            trials.to_string(),
            number(row.real_seconds),
            number(row.user_seconds),
            number(row.system_seconds),
            fact("host.minor_faults"),
            fact("kvm.pf_taken"),
            status.to_owned(),
            reason.unwrap_or_default(),
            remedy.unwrap_or_default(),
        ];
        writer.write_record(fields).expect(written);
    }
    String::from_utf8(writer.into_inner().expect(written)).expect("made of strings")
}

impl Row {
    fn of(series: &Series<Cell>, cell: Cell) -> Row {
        let median = |metric| series.median(cell, metric);
        Row {
            venue: cell.setting.venue().name(),
            guest: cell.setting.guest.map(|leaf| leaf.name()),
            host: cell.setting.host.name(),
            populated: cell.populated.name(),
            metric: NS_PER_PAGE,
            figures: Figures::of(series, cell, NS_PER_PAGE),
            real_seconds: median("real_seconds"),
            user_seconds: median("user_seconds"),
            system_seconds: median("system_seconds"),
            real_ci: series::ends(series.estimate(cell, "real_seconds").as_ref()),
        }
    }
}
