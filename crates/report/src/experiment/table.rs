//! The table of one metric: a line a cell, a column a factor; what all cells share is said once.

use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle};
use vmtax_core::{
    experiment::{Row, Sheet},
    prose::{change_within, nanos_within},
};

use super::grid::Grid;

/// The cells of a sheet with their values, and their changes from the baseline.
pub(super) fn text(sheet: &Sheet) -> String {
    let grid = Grid::of(sheet.rows.iter().map(|row| row.cell.as_str()));
    let figures = sheet.rows.iter().map(|row| vec![value(row), against(row, sheet)]);
    grid.shared() + &grid.text(&[&sheet.unit, "against the baseline"], figures.collect())
}

/// A table of text without lines but the one below its head.
pub(crate) fn columns(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    let rule = TableStyle::new().header_separator(LineStyle::none().fill('─'));
    table.load_style(rule).set_content_arrangement(ContentArrangement::Disabled).set_header(head);
    table.add_rows(rows);
    for (nth, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if nth + 1 < head.len() { 2 } else { 0 }));
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn value(row: &Row) -> String {
    match (&row.value, &row.missing) {
        (Some(value), _) if row.emulated => format!("{} emulated", nanos_within(value)),
        (Some(value), _) => nanos_within(value),
        (None, Some(_)) => "not here".to_owned(),
        (None, None) if row.failed > 0 => "FAILED".to_owned(),
        (None, None) => "not reached".to_owned(),
    }
}

fn against(row: &Row, sheet: &Sheet) -> String {
    match &row.ratio {
        Some(ratio) => change_within(&ratio.minus_one()),
        None if Some(&row.cell) == sheet.baseline.as_ref() => "(baseline)".to_owned(),
        None => String::new(),
    }
}
