//! What a plan would do: its first block, how much there is of it, what it changes and what it demands.

use std::{collections::BTreeSet, fmt::Write};

use vmtax_core::{
    experiment::Missing,
    factor::FACTORS,
    plan::{Cell, Plan, Replication, Task, schedule},
    setting::Replica,
};

use crate::wrap::item;

/// `vmtax run --dry-run`.
pub fn dry_run(plan: &Plan, seed: u64, missing: &[Missing]) -> String {
    let is_missing = |cell: &Cell| missing.iter().any(|missing| missing.cell == cell.name());
    let cells: Vec<Cell> = plan.cells().into_iter().filter(|cell| !is_missing(cell)).collect();
    let mut text = format!("Block 1 of {}, seed {seed}\n", super::replication(plan.replication));
    for whole in schedule::block(plan, seed, 0) {
        for plot in &whole.plots {
            let _ = writeln!(text, "  on {}", plot.memory);
            for cell in plot.cells.iter().filter(|cell| !is_missing(cell)) {
                let _ = writeln!(text, "    {}", cell.name());
            }
        }
    }
    text.push_str(&super::missing(missing));
    let twins = cells.iter().filter(|cell| cell.replica == Replica::APrime).count();
    let _ = writeln!(text, "\n{}", amount(plan, &cells, twins));
    text.push_str("\nHost settings changed and put back: ");
    text.push_str(&changes(plan));
    text.push_str("\nEvidence demanded of every trial\n");
    for (factor, evidence) in demands(plan, &cells) {
        text.push_str(&item("- ", &format!("{factor}: {evidence}")));
    }
    text
}

fn amount(plan: &Plan, cells: &[Cell], twins: usize) -> String {
    let block: f64 = cells.iter().filter_map(|cell| Some(plan.job(cell).ok()?.expected_seconds())).sum();
    let n = cells.len();
    let trials = format!("{n} trials a block, {twins} of them the baseline's twin");
    match plan.replication {
        Replication::Blocks(blocks) => {
            let total = n * blocks as usize;
            format!("{trials}; {total} in all, some {:.0} s (a guess).", (block * f64::from(blocks)).ceil())
        }
        Replication::Within { blocks, budget } => {
            let total = (block * f64::from(blocks)).ceil();
            format!("{trials}; some {total:.0} s in all (a guess), {} s at most.", budget.as_secs())
        }
        Replication::Target { budget, .. } => {
            format!("{trials}, some {:.0} s (a guess); {} s at most.", block.ceil(), budget.as_secs())
        }
    }
}

/// The knobs of the host among the plan's factors.
fn changes(plan: &Plan) -> String {
    let mut changes: Vec<&str> = plan.factors.iter().filter_map(|varied| varied.factor.changes).collect();
    if plan.workloads.iter().any(|workload| workload.kind.task == Task::Reserve) {
        changes.push("/sys/kernel/mm/hugepages/*/nr_hugepages (reserve, within each trial)");
    }
    if changes.is_empty() { "none\n".to_owned() } else { changes.join(", ") + "\n" }
}

/// The evidence of every factor that some cell has, varied or not.
fn demands(plan: &Plan, cells: &[Cell]) -> Vec<(&'static str, &'static str)> {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for cell in cells {
        names.extend(cell.setting.levels().map(|(factor, _)| factor.name));
        names.extend(plan.memory(cell).levels().map(|(factor, _)| factor.name));
        names.extend(plan.parameters(cell).iter().map(|(name, _)| *name));
    }
    FACTORS.iter().filter(|f| names.contains(f.name)).map(|f| (f.name, f.evidence)).collect()
}
