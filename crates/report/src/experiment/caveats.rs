//! Caveats of a run of a plan, gathered: a line for each cell and kind, not one for each trial.

use std::collections::BTreeMap;

use vmtax_core::experiment::{Outcome, Record};

use crate::wrap::item;

/// A caveat of some trials of a cell.
#[derive(Debug, Default)]
struct Gathered<'r> {
    /// As the first of them says it.
    words: &'r str,
    trials: u32,
}

/// A line for each cell and kind.
pub(super) fn text(record: &Record) -> String {
    let mut gathered: BTreeMap<(&str, String), Gathered<'_>> = BTreeMap::new();
    for trial in &record.trials {
        let Outcome::Ok(finding) = &trial.outcome else { continue };
        for caveat in &finding.caveats {
            let entry = gathered.entry((&trial.cell, kind(caveat))).or_default();
            if entry.trials == 0 {
                entry.words = caveat;
            }
            entry.trials += 1;
        }
    }
    let line = |((cell, _), Gathered { words, trials }): (&(&str, String), &Gathered<'_>)| {
        let times = if *trials == 1 { "once".to_owned() } else { format!("first of {trials}") };
        item("caveat: ", &format!("{cell}: {words} ({times})"))
    };
    gathered.iter().map(line).collect()
}

/// Caveats of a kind differ in their figures alone.
fn kind(caveat: &str) -> String {
    caveat.chars().filter(|c| !c.is_ascii_digit() && !matches!(c, '+' | '−' | '.')).collect()
}
