//! What a reader must know before using the figures of the table.

use vmtax_core::{
    analysis::{CaveatCount, Outcome, Summary},
    host::Host,
};

use crate::wrap::item;

/// A list; empty when there is nothing to warn of.
pub(super) fn text(host: &Host, summary: &Summary) -> String {
    let mut lines: Vec<String> = summary.caveats().into_iter().map(told).collect();
    lines.extend(failures(summary));
    for cell in &summary.cells {
        if let Some(dissent) = cell.figures().and_then(|figures| figures.dissent) {
            let stood = if dissent.trials == 1 { "trial" } else { "trials" };
            lines
                .push(format!("{}: {} {stood} stood on other page sizes than the rest.", cell.setting, dissent.trials));
        }
    }
    if host.nested {
        lines.push("The figures hold for this guest, not for the bare metal below it.".to_owned());
    }
    if lines.is_empty() {
        return String::new();
    }
    let listed: String = lines.iter().map(|line| item("- ", line)).collect();
    format!("Caveats\n{listed}")
}

fn told(CaveatCount { worst, trials }: CaveatCount) -> String {
    match trials {
        1 => format!("1 trial: {worst}."),
        n => format!("{n} trials, the worst: {worst}."),
    }
}

/// Trials left out of cells that have figures all the same, one line a reason. A cell without figures has a note.
fn failures(summary: &Summary) -> Vec<String> {
    let mut counted: Vec<(&str, u32)> = Vec::new();
    let cells = summary.cells.iter().filter(|cell| matches!(cell.outcome, Outcome::Ok(_)));
    for reason in cells.flat_map(|cell| &cell.failures) {
        match counted.iter_mut().find(|(known, _)| known == reason) {
            Some((_, n)) => *n += 1,
            None => counted.push((reason, 1)),
        }
    }
    let line = |(reason, n)| match n {
        1 => format!("1 trial failed and is left out: {reason}."),
        n => format!("{n} trials failed and are left out: {reason}."),
    };
    counted.into_iter().map(line).collect()
}
