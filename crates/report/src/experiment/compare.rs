//! Comparisons as people and programs read them.

use serde::Serialize;
use vmtax_core::{
    experiment::{Change, Comparison, Verdict},
    prose::{change_within, nanos_within},
};

use super::table::columns;
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
        let rows = comparison.changes.iter().map(|change| row(change, pairing));
        let head = format!("{}: {} in {}\n", comparison.workload, comparison.metric, comparison.unit);
        head + &match pairing {
            Pairing::Apart => {
                columns(["cell", "first", "second", "change"], rows.map(|[cell, _, from, to, by]| [cell, from, to, by]))
            }
            Pairing::Blocks => columns(["cell", "against", "there", "here", "change"], rows),
        }
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

fn row(change: &Change, pairing: Pairing) -> [String; 5] {
    let value = |value: &Option<_>| value.as_ref().map_or("–".to_owned(), nanos_within);
    let by = change.ratio.map_or("–".to_owned(), |ratio| change_within(&ratio.minus_one()));
    let against = match pairing {
        Pairing::Blocks => change.against.clone(),
        Pairing::Apart => String::new(),
    };
    [change.cell.clone(), against, value(&change.from), value(&change.to), by]
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
