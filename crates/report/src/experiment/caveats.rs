//! Caveats of a run of a plan, gathered: a line a kind, not one for each trial or cell.

use std::collections::BTreeMap;

use vmtax_core::experiment::{Outcome, Record};

use crate::wrap::item;

/// A caveat of some trials.
#[derive(Debug, Default)]
struct Gathered<'r> {
    /// As each of them says it.
    words: Vec<&'r str>,
    /// Without repetition.
    cells: Vec<&'r str>,
}

/// Cells are named up to so many.
const NAMED: usize = 2;

/// A line a kind.
pub(super) fn text(record: &Record) -> String {
    let mut gathered: BTreeMap<String, Gathered<'_>> = BTreeMap::new();
    let mut good = 0;
    for trial in &record.trials {
        let Outcome::Ok(finding) = &trial.outcome else { continue };
        good += 1;
        for caveat in &finding.caveats {
            let entry = gathered.entry(Figures::of(caveat).kind()).or_default();
            entry.words.push(caveat);
            if !entry.cells.contains(&trial.cell.as_str()) {
                entry.cells.push(&trial.cell);
            }
        }
    }
    let line = |Gathered { words, cells }: &Gathered<'_>| {
        let (trials, cells) = (words.len(), named(cells));
        item("caveat: ", &format!("{} ({trials} of {good} trials, {cells})", range(words)))
    };
    gathered.values().map(line).collect()
}

/// Both cells, or how many there are, with the first.
fn named(cells: &[&str]) -> String {
    match cells.len() {
        n if n <= NAMED => cells.join(" and "),
        n => format!("{n} cells, such as {}", cells[0]),
    }
}

/// `differ by +2.4 to +12 %`: the smallest and the largest figure, where caveats of a kind have one; else the first.
fn range(words: &[&str]) -> String {
    let figures: Vec<Figures> = words.iter().map(|words| Figures::of(words)).collect();
    let [first, ..] = figures.as_slice() else { return String::new() };
    let mut single: Vec<(f64, &str)> = figures.iter().filter_map(Figures::single).collect();
    single.sort_by(|one, other| one.0.total_cmp(&other.0));
    match single.as_slice() {
        [(least, low), .., (most, high)] if single.len() == words.len() && least < most => {
            format!("{}{low} to {high}{}", first.text[0], first.text[1])
        }
        _ if words.iter().all(|other| *other == words[0]) => words[0].to_owned(),
        [_] => words[0].to_owned(),
        _ => format!("{}, for instance", words[0]),
    }
}

/// A caveat taken apart: text, figure, text, figure … text.
#[derive(Debug)]
struct Figures<'w> {
    /// One more than figures.
    text: Vec<&'w str>,
    figures: Vec<&'w str>,
}

impl<'w> Figures<'w> {
    fn of(words: &'w str) -> Figures<'w> {
        let is_figure = |c: char| c.is_ascii_digit() || matches!(c, '+' | '−' | '.');
        let mut taken = Figures { text: Vec::new(), figures: Vec::new() };
        let mut rest = words;
        while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
            // With the sign before it; a word that holds a digit is none.
            let sign = rest[..start].chars().next_back().filter(|c| matches!(c, '+' | '−')).map_or(0, char::len_utf8);
            let sign = if rest[..start].ends_with(" -") { 1 } else { sign };
            let from = start - sign;
            let length = rest[start..].find(|c: char| !is_figure(c)).map_or(rest.len(), |length| start + length);
            let end = from + rest[from..length].trim_end_matches('.').len();
            taken.text.push(&rest[..from]);
            taken.figures.push(&rest[from..end]);
            rest = &rest[end..];
        }
        taken.text.push(rest);
        taken
    }

    /// Caveats of a kind differ in their figures alone.
    fn kind(&self) -> String {
        self.text.join("#")
    }

    /// The figure, if it is the only one.
    fn single(&self) -> Option<(f64, &'w str)> {
        match self.figures.as_slice() {
            [figure] => Some((figure.replace('−', "-").parse().ok()?, figure)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caveats_of_a_kind_are_one_with_the_range_of_their_figure() {
        let check = |words: &[&str], expected: &str| assert_eq!(range(words), expected);
        let differ = |by: &str| format!("clocks differ by {by} %");
        let [a, b, c] = ["+2.4", "−8.5", "+12"].map(differ);
        check(&[&a, &b, &c], "clocks differ by −8.5 to +12 %");
        check(&[&a, &a], &a);
        check(&["changed by -2.2 %", "changed by +21.4 %"], "changed by -2.2 to +21.4 %");
        check(&["3 faults.", "12 faults."], "3 to 12 faults.");
        check(&["only 3 of 5 pages", "only 4 of 5 pages"], "only 3 of 5 pages, for instance");
        assert_eq!(Figures::of(&a).kind(), Figures::of(&b).kind());
    }

    #[test]
    fn cells_are_named_when_they_are_few_and_counted_when_not() {
        assert_eq!(named(&["a", "b"]), "a and b");
        assert_eq!(named(&["a", "b", "c"]), "3 cells, such as a");
    }
}
