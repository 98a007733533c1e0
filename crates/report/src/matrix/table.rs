//! The table itself: a group of rows for native memory and for each leaf of the guest.

use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle};
use vmtax_core::{
    analysis::{CellSummary, Figures, Outcome, Summary},
    prose::{change_within, nanos, nanos_within},
    setting::{Backing, Setting},
    trial::{Evidence, KvmCounts},
    units::{Bytes, KIB, PageSize},
};

use super::notes::Notes;

const HEAD: [&str; 6] = ["guest", "host", "ns an access", "tax over native", "first", "mapped as"];
/// Columns of [`HEAD`] that begin with a number.
const NUMBERS: [usize; 3] = [2, 3, 4];

/// The table, a line a cell.
pub(super) fn text(summary: &Summary, notes: &Notes) -> String {
    let mut rows: Vec<[String; HEAD.len()]> =
        summary.cells.iter().map(|cell| row(cell, summary.baseline, notes)).collect();
    for column in NUMBERS {
        align(&mut rows, column);
    }
    let mut table = Table::new();
    let rule = TableStyle::new().header_separator(LineStyle::none().fill('─'));
    table.load_style(rule).set_content_arrangement(ContentArrangement::Disabled).set_header(HEAD);
    let mut group = summary.cells.first().map(|cell| cell.setting.guest);
    for (cell, row) in summary.cells.iter().zip(rows) {
        if group.replace(cell.setting.guest) != Some(cell.setting.guest) {
            table.add_row([""]);
        }
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Moves numbers to the right so that the first words of a column end one below the other; words stay where they are.
fn align(rows: &mut [[String; HEAD.len()]], column: usize) {
    let number = |text: &str| {
        let first = text.split(' ').next().unwrap_or_default();
        first.contains(|c: char| c.is_ascii_digit()).then(|| first.chars().count())
    };
    let widest = rows.iter().filter_map(|row| number(&row[column])).max().unwrap_or(0);
    for row in rows {
        if let Some(width) = number(&row[column]) {
            row[column].insert_str(0, &" ".repeat(widest - width));
        }
    }
}

fn row(cell: &CellSummary, baseline: Option<Setting>, notes: &Notes) -> [String; HEAD.len()] {
    let Setting { guest, host } = cell.setting;
    let [value, tax, first, mapped] = match &cell.outcome {
        Outcome::Ok(figures) => [
            nanos_within(&figures.value),
            tax(cell.setting, figures, baseline),
            figures.first_pass.map_or(String::new(), |first| nanos(first.value)),
            mapped(cell.setting, &figures.evidence),
        ],
        Outcome::Unavailable { .. } => said(notes.mark(cell, "not here")),
        Outcome::Failed { .. } if cell.failures.is_empty() => said("not reached".to_owned()),
        Outcome::Failed { .. } => said(notes.mark(cell, "FAILED")),
    };
    [guest.map_or("native".to_owned(), |leaf| leaf.to_string()), host.to_string(), value, tax, first, mapped]
}

/// A word in place of figures.
fn said(word: String) -> [String; 4] {
    [word, String::new(), String::new(), String::new()]
}

fn tax(setting: Setting, figures: &Figures, baseline: Option<Setting>) -> String {
    match (&figures.tax, figures.distinguishable) {
        (Some(tax), Some(true)) => change_within(tax),
        (Some(tax), Some(false) | None) => format!("{} ~", change_within(tax)),
        (None, _) if Some(setting) == baseline => "(baseline)".to_owned(),
        (None, _) => String::new(),
    }
}

/// What the evidence shows: KVM's leaves for a guest, smaps natively.
fn mapped(setting: Setting, evidence: &Evidence) -> String {
    match (setting.guest, evidence.kvm) {
        (Some(_), Some(kvm)) => leaves(&kvm),
        (Some(_), None) => "(not counted)".to_owned(),
        (None, _) => match setting.host {
            Backing::Thp => format!("thp {:.0} %", evidence.thp_coverage * 100.0),
            Backing::Small | Backing::Huge2m | Backing::Huge1g => {
                format!("{} pages", Bytes(evidence.kernel_page_kb * KIB))
            }
        },
    }
}

/// `512×2m 3×4k`: the largest first.
fn leaves(kvm: &KvmCounts) -> String {
    let counted = [(PageSize::Giant, kvm.pages_1g), (PageSize::Large, kvm.pages_2m), (PageSize::Small, kvm.pages_4k)];
    let shown: Vec<_> = counted.iter().filter(|(_, n)| *n > 0).map(|(page, n)| format!("{n}×{page}")).collect();
    shown.join(" ")
}
