//! What a study published, and what a run says of it.

use std::fmt::Write;

use vmtax_core::{
    factor::Level,
    plan::{Plan, Setting, Value, Workload},
    published::{Judged, Published, Statement},
};

use crate::{
    experiment::{columns, replication},
    wrap::{cell, item, wrapped},
};

#[cfg(test)]
mod tests;

/// Columns of the table: what was published, ours, and `not tested here`, which is 15 wide; two spaces between them.
const WIDTHS: [usize; 3] = [34, 27, 15];

/// "published / measured here / agrees?", a blank line between statements; empty where nothing was published.
pub fn table(judged: &[Judged]) -> String {
    if judged.is_empty() {
        return String::new();
    }
    let row = |judged: &Judged| {
        let texts = [&judged.says, &here(judged), judged.verdict.word()];
        let [says, ours, word] = [0, 1, 2].map(|nth| cell(texts[nth], WIDTHS[nth]));
        [vec![says, ours, word], vec![String::new(); 3]]
    };
    let mut rows: Vec<Vec<String>> = judged.iter().flat_map(row).collect();
    rows.pop();
    columns(&["published", "measured here", "agrees?"], rows.into_iter())
}

/// The same for a document.
pub fn markdown(judged: &[Judged]) -> String {
    if judged.is_empty() {
        return String::new();
    }
    let mut text = "\n## Published statements\n\n| published | measured here | agrees? |\n|---|---|---|\n".to_owned();
    for judged in judged {
        let _ = writeln!(text, "| {} | {} | {} |", judged.says, here(judged), judged.verdict.word());
    }
    text
}

/// One statement with what became of it, where there is no table.
pub fn sentence(judged: &Judged) -> String {
    let here = Some(here(judged)).filter(|here| !here.is_empty()).map_or(String::new(), |here| format!(" ({here})"));
    wrapped(
        "Published: ",
        "  ",
        &format!("\"{}\": {}{here}.", judged.says.trim_end_matches('.'), judged.verdict.word()),
    )
}

/// Our figure, and why it decides nothing where it does not.
fn here(judged: &Judged) -> String {
    match (judged.here.as_str(), judged.verdict.reason()) {
        (here, None) => here.to_owned(),
        ("", Some(reason)) => reason.to_owned(),
        (here, Some(reason)) => format!("{here}; {reason}"),
    }
}

/// `vmtax studies show NAME`: the plan in short, and what was published.
pub fn study(name: &str, plan: &Plan, published: Option<&Published>) -> String {
    let parts = [
        wrapped("", "  ", &format!("{name}: {}", plan.title)),
        outline(plan),
        published.map_or(String::new(), source),
        published.map_or(String::new(), |published| {
            published.statements.iter().map(statement).collect::<Vec<_>>().join("\n")
        }),
        wrapped("", "", &format!("`vmtax run {name}` measures it; with `--dry-run` it says how.")),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Workloads, factors and replication.
fn outline(plan: &Plan) -> String {
    let line = |name: &str, text: &str| item(&format!("  {name:<9} "), text);
    let mut text = "It runs\n".to_owned();
    for workload in &plan.workloads {
        text.push_str(&line(&workload.name, &parameters(workload)));
    }
    if !plan.factors.is_empty() {
        text.push_str("and varies\n");
    }
    for varied in &plan.factors {
        text.push_str(&line(varied.factor.name, &levels(&varied.levels)));
    }
    let baseline = plan.baseline.as_ref().map(Setting::to_string).filter(|setting| !setting.is_empty());
    let against = baseline.map_or(String::new(), |setting| format!(", against {setting}"));
    let cells = plan.cells().len();
    let blocks = replication(plan.replication);
    text + &wrapped("", "", &format!("in {cells} cells{against}; {blocks}."))
}

/// What it does, and the parameters that its author set, or that follow a factor.
fn parameters(workload: &Workload) -> String {
    let own = workload.kind.parameters();
    let told = own.zip(&workload.parameters).filter_map(|(parameter, (name, value))| match value {
        Value::Literal(level) if *level == parameter.default_value() => None,
        Value::Literal(level) => Some(format!("{name} {level}")),
        Value::Factor(_) => None,
    });
    let told: Vec<String> = told.collect();
    let with = if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) };
    format!("{}{with}", workload.kind.about)
}

fn levels(levels: &[Level]) -> String {
    levels.iter().map(Level::to_string).collect::<Vec<_>>().join(", ")
}

fn source(published: &Published) -> String {
    let source = &published.source;
    let lines = [format!("Published: {}", source.title), source.place.clone(), format!("Machine: {}", source.machine)];
    lines.iter().map(|line| wrapped("", "  ", line)).collect()
}

fn statement(statement: &Statement) -> String {
    let Statement { id, says, place, remark, test } = statement;
    let mut text = wrapped("", "  ", &format!("{id}: {says}"));
    text.push_str(&wrapped("  judged by ", "    ", &test.to_string()));
    if let Some(remark) = remark {
        text.push_str(&wrapped("  note: ", "    ", remark));
    }
    text + &wrapped("  in: ", "    ", place)
}
