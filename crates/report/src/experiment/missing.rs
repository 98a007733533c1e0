//! What a host cannot give, and what failed on it: each reason once with the cells it holds for.

use vmtax_core::experiment::{Missing, Record};

use crate::wrap::item;

/// A line for each reason; nothing where nothing is missing.
pub fn missing(missing: &[Missing]) -> String {
    let mut reasons: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for Missing { cell, reason, remedy } in missing {
        match reasons.iter_mut().find(|(why, way, _)| (*why, *way) == (reason, remedy)) {
            Some((_, _, cells)) => cells.push(cell),
            None => reasons.push((reason, remedy, vec![cell])),
        }
    }
    let line = |(reason, remedy, cells): &(&str, &str, Vec<&str>)| {
        item("not here: ", &format!("{}: {reason}; {remedy}", named(cells)))
    };
    reasons.iter().map(line).collect()
}

/// A line for each reason for which trials failed.
pub(super) fn failures(record: &Record) -> String {
    let mut reasons: Vec<(&str, Vec<&str>, Vec<u32>)> = Vec::new();
    for (trial, reason) in record.failures() {
        match reasons.iter_mut().find(|(why, ..)| *why == reason) {
            Some((_, cells, blocks)) => {
                cells.push(&trial.cell);
                blocks.push(trial.block + 1);
            }
            None => reasons.push((reason, vec![&trial.cell], vec![trial.block + 1])),
        }
    }
    let line = |(reason, cells, blocks): &mut (&str, Vec<&str>, Vec<u32>)| {
        let trials = if cells.len() > 1 { format!("{} trials, ", cells.len()) } else { String::new() };
        blocks.dedup();
        let numbers: Vec<String> = blocks.iter().map(u32::to_string).collect();
        let blocks = if numbers.len() == 1 { "block" } else { "blocks" };
        let mut distinct = cells.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let what = named(&distinct);
        item("FAILED: ", &format!("{what}, {trials}{blocks} {}: {reason}", numbers.join(", ")))
    };
    reasons.iter_mut().map(line).collect()
}

/// The cells by what they have in common: `walk host=2m (20 cells)`.
fn named(cells: &[&str]) -> String {
    let (first, others) = match cells {
        [] => return String::new(),
        [first, others @ ..] if others.len() > 1 => (first, others),
        few => return few.join(", "),
    };
    let is_common = |word: &&str| others.iter().all(|cell| cell.split(' ').any(|other| other == *word));
    let common: Vec<&str> = first.split(' ').filter(is_common).collect();
    match common.is_empty() {
        true => format!("{first} and {} other cells", cells.len() - 1),
        false => format!("{} ({} cells)", common.join(" "), cells.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once_for_the_cells_it_holds_for() {
        let cell = |name: &str, reason: &str| Missing {
            cell: name.to_owned(),
            reason: reason.to_owned(),
            remedy: "add --reserve".to_owned(),
        };
        let all = [
            cell("walk host=2m stride=4", "no pages"),
            cell("walk host=2m stride=8", "no pages"),
            cell("walk host=2m stride=16", "no pages"),
            cell("walk host=1g stride=4", "no CPU"),
        ];
        let text = "not here: walk host=2m (3 cells): no pages; add --reserve\n\
                    not here: walk host=1g stride=4: no CPU; add --reserve\n";
        assert_eq!(missing(&all), text);
        assert_eq!(missing(&[]), "");
    }
}
