//! Why cells have no figures: each reason once, with the command that would help.

use vmtax_core::analysis::{CellSummary, Outcome, Summary};

use crate::wrap::{item, wrapped};

/// Reasons why cells have no figures, each told once.
pub(super) struct Notes {
    notes: Vec<(String, Option<String>)>,
}

impl Notes {
    /// In the order of the table.
    pub fn of(summary: &Summary) -> Self {
        let mut notes = Vec::new();
        for note in summary.cells.iter().filter_map(Self::note) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        Notes { notes }
    }

    fn note(cell: &CellSummary) -> Option<(String, Option<String>)> {
        match &cell.outcome {
            Outcome::Ok(_) => None,
            Outcome::Unavailable { reason, remedy } => Some((reason.clone(), Some(remedy.clone()))),
            Outcome::Failed { .. } if cell.failures.is_empty() => None,
            Outcome::Failed { reason } => Some((reason.clone(), None)),
        }
    }

    /// `FAILED (1)`: a word, and which note says why.
    pub fn mark(&self, cell: &CellSummary, word: &str) -> String {
        let number = Self::note(cell).and_then(|note| self.notes.iter().position(|known| *known == note));
        number.map_or(word.to_owned(), |n| format!("{word} ({})", n + 1))
    }

    /// Every reason, with what would help.
    pub fn text(&self) -> String {
        let entry = |(n, (reason, remedy)): (usize, &(String, Option<String>))| {
            let mark = format!("({}) ", n + 1);
            item(&mark, reason) + &remedy.as_deref().map_or(String::new(), command)
        };
        let listed: String = self.notes.iter().enumerate().map(entry).collect();
        if listed.is_empty() { listed } else { format!("What could not be measured\n{listed}") }
    }
}

/// What would help. A pipeline is there to be copied: it gets a line of its own and is never broken.
pub(crate) fn command(remedy: &str) -> String {
    match remedy.split_once(", or: ") {
        Some((first, second)) => format!("    -> {first}, or:\n    {second}\n"),
        None if remedy.contains(" | ") => format!("    -> {remedy}\n"),
        None => wrapped("    -> ", "       ", remedy),
    }
}
