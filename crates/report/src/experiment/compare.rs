//! Comparisons as people and programs read them.

use serde::Serialize;
use vmtax_core::{
    experiment::{Change, Comparison, Verdict},
    prose::{change_within, nanos_within, ratio_within},
};

use super::grid::Grid;
use crate::wrap::wrapped;

/// `vmtax compare --json`.
#[derive(Debug, Serialize)]
struct Document<'c> {
    schema: u32,
    paired_in_blocks: bool,
    comparisons: &'c [Comparison],
    gate: Option<f64>,
    regressed: Vec<&'c str>,
    unknown: Vec<&'c str>,
}

/// Whether a block holds both sides of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Levels within a run.
    Blocks,
    /// Two runs.
    Apart,
}

/// Tables, and what they rest on.
pub fn compared(comparisons: &[Comparison], pairing: Pairing) -> String {
    let parts = comparisons.iter().map(|comparison| {
        let changes = &comparison.changes;
        let head = format!("{}: {} in {}\n", comparison.workload, comparison.metric, comparison.unit);
        let grid = Grid::of(changes.iter().map(|change| change.cell.as_str()));
        let figures = changes.iter().map(figures).collect();
        let [from, to] = sides(changes, pairing);
        head + &grid.shared_but(&to) + &grid.text(&[&from, &to, "change"], figures)
    });
    let note = match pairing {
        Pairing::Blocks => "Ratios are paired in blocks, with 95 % intervals.",
        Pairing::Apart => {
            "The runs have no blocks in common: ratios are unpaired, and what drifted between the runs is in them, not in \
             their 95 % intervals."
        }
    };
    parts.chain([wrapped("", "", note)]).collect::<Vec<_>>().join("\n")
}

fn figures(change: &Change) -> Vec<String> {
    let value = |value: &Option<_>| value.as_ref().map_or("–".to_owned(), nanos_within);
    let by = change.ratio.map_or("–".to_owned(), |ratio| ratio_within(&ratio));
    vec![value(&change.from), value(&change.to), by]
}

/// The heads of both values: the runs, or the reference level, which is that of all changes, and the level here.
fn sides(changes: &[Change], pairing: Pairing) -> [String; 2] {
    let words = |cell: &str| cell.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let reference = changes.first().and_then(|change| {
        let own = words(&change.cell);
        words(&change.against).into_iter().find(|word| !own.contains(word))
    });
    match (pairing, reference) {
        (Pairing::Apart, _) => ["first", "second"].map(str::to_owned),
        (Pairing::Blocks, Some(reference)) => {
            let factor = reference.split('=').next().unwrap_or_default().to_owned() + "=";
            let level = |change: &Change| words(&change.cell).into_iter().find(|word| word.starts_with(&factor));
            let first = changes.first().and_then(level);
            let is_one = changes.iter().all(|change| level(change) == first);
            [reference, first.filter(|_| is_one).unwrap_or_else(|| "here".to_owned())]
        }
        // A native cell is without the guest's leaf.
        (Pairing::Blocks, None) => ["without", "here"].map(str::to_owned),
    }
}

/// One JSON object.
pub fn compared_json(comparisons: &[Comparison], pairing: Pairing, gate: Option<f64>) -> serde_json::Result<String> {
    let judged = |verdict| judged(comparisons, gate, verdict).map(|change| change.cell.as_str()).collect();
    let document = Document {
        schema: crate::export::SCHEMA,
        paired_in_blocks: pairing == Pairing::Blocks,
        comparisons,
        gate,
        regressed: judged(Verdict::Regressed),
        unknown: judged(Verdict::Unknown),
    };
    Ok(serde_json::to_string(&document)? + "\n")
}

/// What stands in the way of passing a gate, a line each; nothing where it is passed.
pub fn gate_failures(comparisons: &[Comparison], gate: f64) -> Vec<String> {
    let regressed = judged(comparisons, Some(gate), Verdict::Regressed).map(|change| {
        let by = change.ratio.map_or(String::new(), |ratio| change_within(&ratio.minus_one()));
        format!("regression beyond {} %: {}: {by}", gate * 100.0, change.cell)
    });
    let unknown = judged(comparisons, Some(gate), Verdict::Unknown)
        .map(|change| format!("cannot be judged: {}: no value, or fewer than two blocks", change.cell));
    regressed.chain(unknown).collect()
}

fn judged(comparisons: &[Comparison], gate: Option<f64>, verdict: Verdict) -> impl Iterator<Item = &Change> {
    let leading = comparisons.iter().filter(|comparison| comparison.is_leading);
    let all = leading.flat_map(|comparison| comparison.changes.iter().map(move |change| (comparison, change)));
    all.filter(move |(comparison, change)| gate.is_some_and(|gate| comparison.verdict(change, gate) == verdict))
        .map(|(_, change)| change)
}

#[cfg(test)]
mod tests {
    use vmtax_core::{experiment::Better, stats::Estimate};

    use super::*;

    fn change(cell: &str, against: &str) -> Change {
        let estimate = |value: f64| Estimate::of_median(&[value; 7]);
        Change {
            cell: cell.to_owned(),
            against: against.to_owned(),
            from: estimate(2000.0),
            to: estimate(1000.0),
            ratio: estimate(0.5),
        }
    }

    #[test]
    fn levels_are_compared_side_by_side_in_a_terminal() {
        let comparison = |changes| Comparison {
            workload: "chase".to_owned(),
            metric: "ns_per_access".to_owned(),
            unit: "ns".to_owned(),
            better: Better::Lower,
            is_leading: true,
            changes,
        };
        let on = |venue: &str, host: &str| format!("chase venue={venue} host={host} size=128M stride=4K");
        let one = ["native", "microvm"].map(|venue| change(&on(venue, "thp"), &on(venue, "4k")));
        let two = ["thp", "2m"].map(|host| change(&on("native", host), &on("native", "4k")));
        let text = compared(&[comparison(one.to_vec()), comparison(two.to_vec())], Pairing::Blocks);
        crate::fixture::is_kept("compare.txt", &text);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
