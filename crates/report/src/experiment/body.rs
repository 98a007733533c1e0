//! What is said of each workload: a table of its own where its kind has one, the sheets of its metrics elsewhere.

use vmtax_core::{
    experiment::{Record, Sheet},
    plan::{Cell, Task},
};

use crate::{
    bloat, reserve, rights,
    row::workloads,
    touch, walk,
    wrap::{item, wrapped},
};

/// Effects are listed below a table of its own if they are no more than these.
const LISTED: usize = 6;

/// The parts, in the order of the plan; workloads that share a table come with the first of them.
pub(super) fn parts(record: &Record) -> Vec<String> {
    let mut told: Vec<Task> = Vec::new();
    let mut parts = Vec::new();
    for workload in &record.plan.workloads {
        let task = workload.kind.task;
        let own = match task {
            // The other metric is this one over a constant, and is told for all tests together.
            Task::Os => {
                parts.extend(record.leading(&workload.name).iter().map(super::sheet));
                continue;
            }
            Task::Probe(_) | Task::Program(_) | Task::Command => {
                parts.extend(record.sheets_of(&workload.name).iter().map(super::sheet));
                continue;
            }
            Task::Touch | Task::Walk | Task::Bloat if is_beyond_tables(record, &workload.name) => {
                parts.extend(record.sheets_of(&workload.name).iter().map(super::sheet));
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
        let is_mixed = record.plan.workloads.iter().any(|other| other.kind.task != task);
        let heading = if is_mixed { format!("{}: {}", workload.kind.name, workload.kind.about) } else { String::new() };
        parts.push(match (heading.is_empty(), own.is_empty()) {
            (_, true) => String::new(),
            (true, false) => own,
            (false, false) => wrapped("", "  ", &heading) + "\n" + &own,
        });
        let leading = workloads(record, task).into_iter().filter_map(|workload| record.leading(workload));
        parts.push(leading.map(|sheet| summary(&sheet, record)).collect());
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether the settings of a workload differ in more than tables of their own have columns for: in a knob, or in the machine
/// of a Linux guest.
fn is_beyond_tables(record: &Record, workload: &str) -> bool {
    const COLUMNS: [&str; 6] = ["venue", "host", "guest", "size", "stride", "order"];
    let beyond = |cell: &Cell| {
        cell.setting.is_linux_guest() || cell.setting.levels().any(|(factor, _)| !COLUMNS.contains(&factor.name))
    };
    record.plan.cells().iter().any(|cell| cell.workload == workload && beyond(cell))
}

/// The noise floor of a leading metric, and those of its effects that are certain.
fn summary(sheet: &Sheet, record: &Record) -> String {
    let mut text = super::floor(sheet, &format!("{}, {}", sheet.workload, sheet.metric));
    let effects = &sheet.effects.effects;
    let certain: Vec<_> = effects.iter().filter(|effect| effect.distinguishable == Some(true)).collect();
    if certain.len() <= LISTED {
        certain.iter().for_each(|effect| text.push_str(&item("- ", &effect.sentence())));
    }
    if certain.len() < effects.len() || certain.len() > LISTED {
        let (n, sure) = (effects.len(), certain.len());
        text.push_str(&format!("  ({sure} of {n} effects of factors are certain; all of them are in\n"));
        text.push_str(&format!("  vmtax export {} --format md)\n", record.id));
    }
    text
}
