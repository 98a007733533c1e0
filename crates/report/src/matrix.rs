//! The table of `vmtax matrix` for a terminal of 80 columns, with what it means below.

use std::fmt::Write;

use vmtax_core::{
    analysis::{AnalysisError, CellSummary, Summary},
    explain,
    host::Host,
    prose::change_within,
    run::{Ending, Run},
};

use crate::wrap::{item, wrapped};
use notes::Notes;

mod caveats;
pub(crate) mod notes;
pub(crate) mod table;

/// Everything `vmtax matrix` and `vmtax show` print.
pub fn text(run: &Run) -> Result<String, AnalysisError> {
    let summary = run.summary()?;
    let notes = Notes::of(&summary);
    let table = table::text(&summary, &notes);
    let has_vague = table.contains("[?]");
    let parts = [
        head(run, &summary),
        table,
        below(&summary, has_vague),
        meaning(run, &summary),
        notes.text(),
        caveats::text(&run.host, &summary),
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
    [
        format!("Cost of a memory access: {} over {}, stride {}, {lanes}", request.probe, request.size, request.stride),
        kind(&run.host),
        format!("{} {blocks}{seconds}, seed {}, run {}{ending}", summary.blocks, request.seed, run.id),
    ]
    .map(|line| wrapped("", "  ", &line))
    .concat()
}

/// What paging this is, and what it stands on.
pub(crate) fn kind(host: &Host) -> String {
    let mut text = host.kvm.kind.to_string();
    if let Some(below) = host.below.as_ref().filter(|_| host.nested) {
        let _ = write!(text, " on a host that is itself a guest of {below}");
    }
    if host.emulated {
        text.push_str(", EMULATED: the times mean nothing");
    }
    text
}

fn below(summary: &Summary, has_vague: bool) -> String {
    let mut text = String::new();
    text.push_str("Medians over blocks with 95 % intervals; first: the first pass, in a fresh VM.\n");
    text.push_str("Mapped as: what smaps says natively, and what KVM has mapped for a guest.\n");
    let unclear = summary
        .cells
        .iter()
        .filter_map(CellSummary::figures)
        .any(|f| f.tax.is_some() && f.distinguishable != Some(true));
    if unclear {
        text.push_str("~ not distinguishable from noise.\n");
    }
    if has_vague {
        text.push_str("[?] over a factor of ten: too few blocks (--blocks 5, or a larger --budget).\n");
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

#[cfg(test)]
mod tests;
