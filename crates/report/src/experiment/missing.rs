//! What a host cannot give, each reason once with the cells it holds for.

use vmtax_core::experiment::Missing;

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
