//! The table of first accesses for programs.

use serde::Serialize;
use vmtax_core::{
    experiment::Record,
    plan::{Task, Touch},
    touch::{NS_PER_PAGE, touches},
};

use crate::row::{self, Document, Figures, number};

#[derive(Debug, Serialize)]
struct Row {
    venue: &'static str,
    guest: Option<&'static str>,
    host: &'static str,
    populated: &'static str,
    bytes: u64,
    metric: &'static str,
    #[serde(flatten)]
    figures: Figures,
    real_seconds: Option<f64>,
    user_seconds: Option<f64>,
    system_seconds: Option<f64>,
    real_ci: Option<[f64; 2]>,
}

fn rows(record: &Record) -> Vec<Row> {
    touches(record).iter().map(|(cell, touch)| Row::of(record, cell, touch)).collect()
}

/// The same as one JSON object (schema 1).
pub fn json(record: &Record) -> String {
    row::json(&Document::of("touch", record, Task::Touch, rows(record)))
}

/// The same as comma-separated values, one line a cell.
pub fn csv(record: &Record) -> String {
    let head = "venue,guest,host,populated,metric,value,lo,hi,trials,real_seconds,user_seconds,system_seconds,\
                host_faults,kvm_faults,status,reason,remedy";
    row::csv(head, rows(record).into_iter().map(Row::line))
}

impl Row {
    fn of(record: &Record, cell: &str, touch: &Touch) -> Row {
        let median = |metric| record.median(cell, metric);
        Row {
            venue: touch.setting.venue().name(),
            guest: touch.setting.guest.map(|leaf| leaf.name()),
            host: touch.setting.host.name(),
            populated: touch.populated.name(),
            bytes: touch.size.0,
            metric: NS_PER_PAGE,
            figures: Figures::of(record, cell, NS_PER_PAGE),
            real_seconds: median("real_seconds"),
            user_seconds: median("user_seconds"),
            system_seconds: median("system_seconds"),
            real_ci: row::ends(record.estimate(cell, "real_seconds").as_ref()),
        }
    }

    fn line(self) -> Vec<String> {
        let figures = self.figures;
        vec![
            self.venue.to_owned(),
            self.guest.unwrap_or_default().to_owned(),
            self.host.to_owned(),
            self.populated.to_owned(),
            self.metric.to_owned(),
            number(figures.value),
            number(figures.ci.map(|ci| ci[0])),
            number(figures.ci.map(|ci| ci[1])),
            figures.trials.to_string(),
            number(self.real_seconds),
            number(self.user_seconds),
            number(self.system_seconds),
            figures.fact("host.minor_faults"),
            figures.fact("kvm.pf_taken"),
            figures.status.to_owned(),
            figures.reason.unwrap_or_default(),
            figures.remedy.unwrap_or_default(),
        ]
    }
}
