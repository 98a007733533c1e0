//! What is said of each workload: a table of its own where its kind has one, the sheets of its metrics elsewhere.

use vmtax_core::{
    experiment::{Record, Sheet},
    plan::Task,
};

use crate::{
    bloat, reserve, rights,
    row::workloads,
    touch, walk,
    wrap::{item, wrapped},
};

/// Effects that are listed below a table of its own; of more only the number is.
const LISTED: usize = 8;

/// The parts, in the order of the plan; workloads that share a table come with the first of them.
pub(super) fn parts(record: &Record) -> Vec<String> {
    let mut told: Vec<Task> = Vec::new();
    let mut parts = Vec::new();
    for workload in &record.plan.workloads {
        let task = workload.kind.task;
        let own = match task {
            Task::Probe(_) => {
                let sheets = record.sheets_of(&workload.name);
                parts.extend(sheets.iter().map(super::sheet));
                continue;
            }
            _ if told.contains(&task) => continue,
            Task::Touch => touch::body(record),
            Task::Walk => walk::body(record),
            Task::Reserve => reserve::body(record),
            Task::Rights => rights::body(record),
            Task::Bloat => bloat::body(record),
        };
        told.push(task);
        parts.push(own);
        let leading = workloads(record, task).into_iter().filter_map(|workload| record.leading(workload));
        parts.push(leading.map(|sheet| summary(&sheet, record)).collect());
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The noise floor of a leading metric, and its effects where they are few.
fn summary(sheet: &Sheet, record: &Record) -> String {
    let mut text = super::floor(sheet, &format!("{}, {}", sheet.workload, sheet.metric));
    let effects = &sheet.effects.effects;
    match effects.len() {
        0 => {}
        1..=LISTED => {
            effects.iter().for_each(|effect| text.push_str(&item("- ", &effect.sentence())));
            for note in sheet.effects.notes() {
                text.push_str(&wrapped("  ", "  ", &format!("({note})")));
            }
        }
        n => {
            let listed = format!("{n} effects of factors: `vmtax export {} --format md` lists them.", record.id);
            text.push_str(&item("", &listed));
        }
    }
    text
}
