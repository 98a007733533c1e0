//! The table of first accesses for programs.

use serde::Serialize;
use vmtax_core::{
    series::Series,
    touch::{Cell, NS_PER_PAGE},
    units::Bytes,
};

use crate::series::{self, Figures};

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
