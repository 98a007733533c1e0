//! The table of one metric: a line a cell.

use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle};
use vmtax_core::{
    experiment::{Row, Sheet},
    prose::{change_within, nanos_within},
};

/// The cells of a sheet with their values, and their changes from the baseline.
pub(super) fn text(sheet: &Sheet) -> String {
    let rows = sheet.rows.iter().map(|row| {
        let setting = row.cell.strip_prefix(&sheet.workload).unwrap_or(&row.cell).trim_start();
        [if setting.is_empty() { "(all)" } else { setting }.to_owned(), value(row), against(row, sheet)]
    });
    columns(["cell", &sheet.unit, "against the baseline"], rows)
}

/// A table of text without lines but the one below its head.
pub(crate) fn columns<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    let rule = TableStyle::new().header_separator(LineStyle::none().fill('─'));
    table.load_style(rule).set_content_arrangement(ContentArrangement::Disabled).set_header(head);
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn value(row: &Row) -> String {
    match (&row.value, &row.missing) {
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
