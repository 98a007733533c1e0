//! What `vmtax touch` prints.

mod export;

use vmtax_core::{
    prose::nanos_within,
    series::{Series, Status},
    touch::{self, Cell, NS_PER_PAGE},
    units::Bytes,
};

use crate::{series, wrap::wrapped};

pub use export::{csv, json};

const HEAD: [&str; 9] =
    ["guest", "host", "popu-\nlated", "ns a page", "real", "user", "sys", "host\nfaults", "KVM\nfaults"];

/// The table, and what it means.
pub fn text(series: &Series<Cell>, size: Bytes) -> String {
    // What cannot be had is as absent populated as not: it gets one row.
    let is_shown = |cell: &&Cell| {
        !matches!(series.status(**cell), Status::Unavailable { .. }) || cell.populated == touch::Populated::No
    };
    let rows: Vec<Vec<String>> = series.cells.iter().filter(is_shown).map(|&cell| row(series, cell)).collect();
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
    let populated = match series.status(cell) {
        Status::Unavailable { .. } => "",
        Status::Ok | Status::Failed(_) | Status::NotReached => cell.populated.name(),
    };
    let mut row = vec![guest, cell.setting.host.to_string(), populated.to_owned()];
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

#[cfg(test)]
mod tests;
