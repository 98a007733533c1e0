//! The table of `vmtax matrix` for a terminal of 80 columns, with what it means below.

use std::fmt::Write;

use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle};
use vmtax_core::{
    analysis::{AnalysisError, CaveatCount, CellSummary, Figures, Outcome, Summary},
    explain,
    host::Host,
    prose::{change_within, nanos, nanos_within},
    run::{Ending, Run},
    setting::{Backing, Setting},
    trial::{Evidence, KvmCounts},
    units::PageSize,
};

/// The width of a terminal that nobody has widened.
const WIDTH: usize = 80;

/// Everything `vmtax matrix` and `vmtax show` print.
pub fn text(run: &Run) -> Result<String, AnalysisError> {
    let summary = run.summary()?;
    let notes = Notes::of(&summary);
    let parts = [
        head(run, &summary),
        table(&summary, &notes),
        below(&summary),
        meaning(run, &summary),
        notes.text(),
        caveats(&run.host, &summary),
    ];
    Ok(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"))
}

fn head(run: &Run, summary: &Summary) -> String {
    let request = &run.request;
    let lanes = match request.vcpus {
        1 => "1 vCPU or thread".to_owned(),
        n => format!("{n} vCPUs or threads"),
    };
    let ending = match run.ending {
        Some(Ending::Done) => "",
        Some(Ending::Interrupted) => ", interrupted",
        Some(Ending::Failed) => ", ended by an error",
        None => ", not ended",
    };
    let seconds = run.seconds.map_or(String::new(), |s| format!(" in {s:.0} s"));
    let blocks = if summary.blocks == 1 { "block" } else { "blocks" };
    format!(
        "Cost of a memory access: {} over {}, stride {}, {lanes}\n{}\n{} {blocks}{seconds}, seed {}, run {}{ending}\n",
        request.probe,
        request.size,
        request.stride,
        kind(&run.host),
        summary.blocks,
        request.seed,
        run.id,
    )
}

/// What paging this is, and what it stands on.
fn kind(host: &Host) -> String {
    let mut text = host.kvm.kind.to_string();
    if let Some(below) = host.below.as_ref().filter(|_| host.nested) {
        let _ = write!(text, " on a host that is itself a guest of {below}");
    }
    if host.emulated {
        text.push_str(", EMULATED: the times mean nothing");
    }
    text
}

fn table(summary: &Summary, notes: &Notes) -> String {
    let mut table = Table::new();
    let rule = TableStyle::new().header_separator(LineStyle::none().fill('─'));
    table.load_style(rule).set_content_arrangement(ContentArrangement::Disabled);
    let head = ["guest", "host", "ns an access", "tax over native", "first", "mapped by"];
    table.set_header(head);
    for cell in &summary.cells {
        table.add_row(row(cell, summary.baseline, notes));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn row(cell: &CellSummary, baseline: Option<Setting>, notes: &Notes) -> Vec<String> {
    let Setting { guest, host } = cell.setting;
    let guest = guest.map_or("native".to_owned(), |leaf| leaf.to_string());
    let rest = match &cell.outcome {
        Outcome::Ok(figures) => [
            nanos_within(&figures.value),
            tax(cell.setting, figures, baseline),
            figures.first_pass.map_or(String::new(), |first| nanos(first.value)),
            mapped(cell.setting, &figures.evidence),
        ],
        Outcome::Unavailable { .. } => [notes.mark(cell, "not here"), String::new(), String::new(), String::new()],
        Outcome::Failed { .. } => [notes.mark(cell, "FAILED"), String::new(), String::new(), String::new()],
    };
    [guest, host.to_string()].into_iter().chain(rest).collect()
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
            Backing::Small | Backing::Huge2m | Backing::Huge1g => format!("{} kB pages", evidence.kernel_page_kb),
        },
    }
}

/// `512 × 2m, 3 × 4k`: the largest first.
fn leaves(kvm: &KvmCounts) -> String {
    let counted = [(PageSize::Giant, kvm.pages_1g), (PageSize::Large, kvm.pages_2m), (PageSize::Small, kvm.pages_4k)];
    let shown: Vec<_> = counted.iter().filter(|(_, n)| *n > 0).map(|(page, n)| format!("{n}×{page}")).collect();
    shown.join(" ")
}

fn below(summary: &Summary) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "Median over blocks with its 95 % interval; first: first pass in a fresh VM, ns.");
    let unclear = summary
        .cells
        .iter()
        .filter_map(CellSummary::figures)
        .any(|f| f.tax.is_some() && f.distinguishable != Some(true));
    if unclear {
        text.push_str("~ not distinguishable from noise.\n");
    }
    match &summary.noise_floor {
        Some(ratio) => {
            let same = ratio.minus_one();
            let _ = writeln!(text, "Noise floor: the baseline against itself, A′/A: {}.", change_within(&same));
        }
        None => text.push_str("Noise floor: unknown, the baseline was not measured twice.\n"),
    }
    text
}

fn meaning(run: &Run, summary: &Summary) -> String {
    let sentences = explain::sentences(run, summary);
    if sentences.is_empty() {
        return String::new();
    }
    let listed: String = sentences.iter().map(|sentence| item("- ", sentence)).collect();
    format!("What this means for this host\n{listed}")
}

/// A paragraph of a list, wrapped and indented below its mark.
fn item(mark: &str, text: &str) -> String {
    let indent = " ".repeat(mark.chars().count());
    let options = textwrap::Options::new(WIDTH).initial_indent(mark).subsequent_indent(&indent).break_words(false);
    textwrap::fill(text, options) + "\n"
}

/// Reasons why cells have no figures, each told once.
struct Notes {
    notes: Vec<(String, Option<String>)>,
}

impl Notes {
    fn of(summary: &Summary) -> Self {
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
            Outcome::Failed { reason } => Some((reason.clone(), None)),
        }
    }

    fn mark(&self, cell: &CellSummary, word: &str) -> String {
        let number = Self::note(cell).and_then(|note| self.notes.iter().position(|known| *known == note));
        number.map_or(word.to_owned(), |n| format!("{word} ({})", n + 1))
    }

    fn text(&self) -> String {
        let entry = |(n, (reason, remedy)): (usize, &(String, Option<String>))| {
            let mark = format!("({}) ", n + 1);
            let remedy = remedy.as_ref().map_or(String::new(), |remedy| item("    to enable: ", remedy));
            item(&mark, reason) + &remedy
        };
        let listed: String = self.notes.iter().enumerate().map(entry).collect();
        if listed.is_empty() { listed } else { format!("What could not be measured\n{listed}") }
    }
}

fn caveats(host: &Host, summary: &Summary) -> String {
    let told = |CaveatCount { worst, trials }| match trials {
        1 => format!("1 trial: {worst}."),
        n => format!("{n} trials, the worst: {worst}."),
    };
    let mut lines: Vec<String> = summary.caveats().into_iter().map(told).collect();
    let failures: usize = summary.cells.iter().map(|cell| cell.failures.len()).sum();
    let shown = summary.cells.iter().filter(|cell| matches!(cell.outcome, Outcome::Failed { .. })).count();
    if failures > shown {
        let first = summary.cells.iter().find_map(|cell| cell.failures.first());
        lines.push(format!("{failures} trials failed and are left out: {}.", first.map_or("", |reason| reason)));
    }
    for cell in &summary.cells {
        if let Some(dissent) = cell.figures().and_then(|figures| figures.dissent) {
            lines.push(format!("{}: {} trials stood on other page sizes than the rest.", cell.setting, dissent.trials));
        }
    }
    if host.nested {
        lines.push("The figures hold for this guest, not for the bare metal below it.".to_owned());
    }
    if lines.is_empty() {
        return String::new();
    }
    let listed: String = lines.iter().map(|line| item("- ", line)).collect();
    format!("Caveats\n{listed}")
}
