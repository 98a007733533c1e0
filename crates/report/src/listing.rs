//! Plain tables and lists, for results that have no table of their own.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

pub use crate::wrap::item;

/// Where the text of a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table with a rule below its head; no line ends in spaces.
pub fn table(head: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    let rule = TableStyle::new().header_separator(LineStyle::none().fill('─'));
    table.load_style(rule).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(head.iter().map(|(name, _)| *name));
    for row in rows {
        table.add_row(row);
    }
    for (column, (_, align)) in table.column_iter_mut().zip(head) {
        column.set_padding((0, 2));
        column.set_cell_alignment(match align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        });
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Sentences under a title; nothing for none.
pub(crate) fn said(title: &str, sentences: &[String]) -> String {
    let listed: String = sentences.iter().map(|sentence| item("- ", sentence)).collect();
    if listed.is_empty() { listed } else { format!("{title}\n{listed}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let rows = [vec!["mmap".to_owned(), "5".to_owned()], vec!["file".to_owned(), "1234".to_owned()]];
        let text = table(&[("way", Align::Left), ("pages", Align::Right)], &rows);
        assert_eq!(text, "way   pages\n─────────────\nmmap      5\nfile   1234\n");
    }
}
