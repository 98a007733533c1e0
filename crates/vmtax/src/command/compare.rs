//! `vmtax compare A B`, `vmtax compare RUN --by FACTOR`: what changed, and whether it is worse than a gate allows.

use std::process::ExitCode;

use vmtax_core::{
    experiment::{Comparison, Record},
    factor::{FACTORS, Factor},
};
use vmtax_report::experiment::{self, Pairing};

use super::{Refusal, show};
use crate::{cli::CompareArgs, output};

/// Compares, prints, judges.
pub fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let store = show::results(&args.results)?;
    let record = store.load_experiment(&args.run)?;
    let (comparisons, pairing) = match (&args.with, &args.by) {
        (Some(with), _) => (runs(&record, &store.load_experiment(with)?)?, Pairing::Apart),
        (None, Some(factor)) => (levels(&record, factor)?, Pairing::Blocks),
        (None, None) => unreachable!("clap demands another run or a factor"),
    };
    let text = match args.json {
        true => experiment::compared_json(&comparisons, pairing, args.gate)?,
        false => experiment::compared(&comparisons, pairing),
    };
    output::print(&text)?;
    let failures = args.gate.map(|gate| experiment::gate_failures(&comparisons, gate)).unwrap_or_default();
    failures.iter().for_each(output::note);
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn runs(first: &Record, second: &Record) -> Result<Vec<Comparison>, Refusal> {
    if first.plan.workloads != second.plan.workloads {
        let message = format!("runs {} and {} have other workloads: nothing to compare", first.id, second.id);
        return Err(Refusal::new(message, "compare two runs of one plan"));
    }
    if let Some(mixed) = second.mixed_with(first) {
        return Err(Refusal::new(mixed.to_string(), "what each of them measured: vmtax show RUN"));
    }
    let comparisons = second.against(first);
    if comparisons.is_empty() {
        let message = format!("runs {} and {} have no figures in common", first.id, second.id);
        return Err(Refusal::new(message, "facts alone are not compared: vmtax show RUN prints them"));
    }
    if comparisons.iter().all(|comparison| comparison.changes.is_empty()) {
        let message = format!("runs {} and {} have no cell in common", first.id, second.id);
        return Err(Refusal::new(message, "compare two runs of one plan"));
    }
    Ok(comparisons)
}

fn levels(record: &Record, factor: &str) -> Result<Vec<Comparison>, Refusal> {
    let names = |factors: Vec<&Factor>| factors.iter().map(|factor| factor.name).collect::<Vec<_>>().join(", ");
    let Some(known) = Factor::named(factor) else {
        let help = format!("factors are: {}", names(FACTORS.iter().collect()));
        return Err(Refusal::new(format!("no factor named {factor}"), help));
    };
    let comparisons = record.by(known);
    if let Some(mixed) = record.plan.workloads.iter().find_map(|workload| record.mixed(&workload.name)) {
        return Err(Refusal::new(mixed.to_string(), "what each of them measured: vmtax show RUN"));
    }
    if comparisons.is_empty() {
        let varied = names(record.plan.factors.iter().map(|varied| varied.factor).collect());
        let help = format!("factors of this run are: {varied}");
        return Err(Refusal::new(format!("run {} has no two levels of {factor} measured", record.id), help));
    }
    Ok(comparisons)
}
