//! The first access to memory: a line for each setting, populated before and not.

mod export;

use vmtax_core::{
    experiment::{Record, Status},
    plan::Touch,
    prose::nanos_within,
    touch::{self, NS_PER_PAGE, Populated},
};

use crate::{
    listing::{Align, said, table},
    wrap::wrapped,
};

pub use export::{csv, json};

const HEAD: [(&str, Align); 9] = [
    ("guest", Align::Left),
    ("host", Align::Left),
    ("popu-\nlated", Align::Left),
    ("ns a page", Align::Right),
    ("real", Align::Right),
    ("user", Align::Right),
    ("sys", Align::Right),
    ("host\nfaults", Align::Right),
    ("KVM\nfaults", Align::Right),
];

/// The table, and what it means: of every workload of this kind.
pub(crate) fn body(record: &Record) -> String {
    let touches = sorted(record);
    let rows: Vec<Vec<String>> = touches.iter().map(|(cell, touch)| row(record, cell, touch)).collect();
    let legend = "Medians over blocks, ns with 95 % intervals; seconds of the pass alone. Host faults: minor faults of the \
                  thread (getrusage); KVM faults: pf_taken.";
    let meaning = said("What this means for this host", &touch::sentences(record, &touches));
    [table(&HEAD, &rows), wrapped("", "", legend), meaning]
        .into_iter()
        .filter(|p| !p.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Both cells of a setting together, in the order of the plan's settings; what cannot be had gets one line.
fn sorted(record: &Record) -> Vec<(String, Touch)> {
    let mut touches = touch::touches(record);
    let order: Vec<_> = touches.iter().map(|(_, touch)| touch.setting).collect();
    touches.sort_by_key(|(_, touch)| (order.iter().position(|setting| *setting == touch.setting), touch.populated));
    let is_absent = |cell: &str| matches!(record.status(cell), Status::Missing(_));
    touches.retain(|(cell, touch)| !is_absent(cell) || touch.populated == Populated::No);
    touches
}

fn row(record: &Record, cell: &str, touch: &Touch) -> Vec<String> {
    let guest = touch.setting.guest.map_or("native".to_owned(), |leaf| leaf.to_string());
    let status = record.status(cell);
    let populated = match status {
        Status::Missing(_) => "",
        Status::Ok | Status::Failed(_) | Status::NotReached => touch.populated.name(),
    };
    let mut row = vec![guest, touch.setting.host.to_string(), populated.to_owned()];
    let seconds = |metric| record.median(cell, metric).map_or(String::new(), |seconds| format!("{seconds:.3}"));
    let fact = |name| record.evidence(cell).and_then(|facts| facts.get(name).cloned()).unwrap_or_default();
    row.extend(match status {
        Status::Ok => vec![
            record.estimate(cell, NS_PER_PAGE).map_or(String::new(), |estimate| nanos_within(&estimate)),
            seconds("real_seconds"),
            seconds("user_seconds"),
            seconds("system_seconds"),
            fact("host.minor_faults"),
            fact("kvm.pf_taken"),
        ],
        Status::Failed(_) => vec!["FAILED".to_owned()],
        Status::Missing(_) => vec!["not here".to_owned()],
        Status::NotReached => vec!["not reached".to_owned()],
    });
    row
}

#[cfg(test)]
mod tests;
