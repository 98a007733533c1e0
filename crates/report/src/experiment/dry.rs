//! What a plan would do: its first block, how much there is of it, what it changes and what it demands.

use std::{collections::BTreeSet, fmt::Write};

use vmtax_core::{
    availability::Reserve,
    experiment::Missing,
    factor::FACTORS,
    plan::{Cell, Plan, Replication, Task, schedule},
    setting::Replica,
    units::PageSize,
};

use crate::wrap::{item, wrapped};

/// What a run would change on a host.
#[derive(Debug, Clone)]
pub struct Changes {
    /// Settings that the plan varies.
    pub turned: Vec<Turned>,
    /// Pages that its memory lacks.
    pub loans: Vec<Loan>,
    /// Whether they would be borrowed (`--reserve`).
    pub reserve: Reserve,
}

/// A setting of the host that a plan varies.
#[derive(Debug, Clone)]
pub struct Turned {
    /// The factor, or the level that asks for it.
    pub factor: String,
    /// Its file.
    pub file: String,
    /// What it is now, as the kernel spells it.
    pub now: String,
    /// What it would be.
    pub levels: Vec<String>,
}

/// Pages that a pool lacks.
#[derive(Debug, Clone, Copy)]
pub struct Loan {
    /// Their size.
    pub page: PageSize,
    /// How many the largest cell needs.
    pub pages: u64,
    /// How many are free now.
    pub free: u64,
}

/// `vmtax run --dry-run`.
pub fn dry_run(plan: &Plan, seed: u64, missing: &[Missing], changes: &Changes) -> String {
    let is_missing = |cell: &Cell| missing.iter().any(|missing| missing.cell == cell.name());
    let cells: Vec<Cell> = plan.cells().into_iter().filter(|cell| !is_missing(cell)).collect();
    let mut text = format!("{}, seed {seed}\n", super::replication(plan.replication));
    let told = match plan.replication {
        Replication::Blocks(n) | Replication::Within { blocks: n, .. } => n,
        Replication::Target { .. } => 1,
    };
    for number in 0..told {
        text.push_str(&block(plan, seed, number, &is_missing));
    }
    if let Replication::Target { .. } = plan.replication {
        text.push_str("Further blocks hold the same in an order of their own, which follows from the seed.\n");
    }
    text.push_str(&super::missing(missing));
    let twins = cells.iter().filter(|cell| cell.replica == Replica::APrime).count();
    let _ = writeln!(text, "\n{}", amount(plan, &cells, twins));
    text.push_str(&guess(plan, &cells));
    text.push_str(&changed(changes));
    text.push_str("\nEvidence demanded of every trial\n");
    for (factor, evidence) in demands(plan, &cells) {
        text.push_str(&item("- ", &format!("{factor}: {evidence}")));
    }
    for workload in plan.workloads.iter().filter(|w| cells.iter().any(|cell| cell.workload == w.name)) {
        if let Some(evidence) = demanded(workload.kind.task) {
            text.push_str(&item("- ", &format!("{}: {evidence}", workload.name)));
        }
    }
    text
}

/// One block in the order in which it would be measured.
fn block(plan: &Plan, seed: u64, number: u32, is_missing: &impl Fn(&Cell) -> bool) -> String {
    let mut text = format!("Block {}\n", number + 1);
    for whole in schedule::block(plan, seed, number) {
        if whole.cells().all(is_missing) {
            continue;
        }
        let has_knobs = whole.knobs.levels().next().is_some();
        if has_knobs {
            let _ = writeln!(text, "  with {}", whole.knobs);
        }
        for plot in whole.plots.iter().filter(|plot| !plot.cells.iter().all(is_missing)) {
            let indent = if has_knobs { "  " } else { "" };
            let memory = plot.memory.to_string();
            let memory = if memory.is_empty() { "the host itself" } else { &memory };
            let _ = writeln!(text, "  {indent}on {memory}");
            for cell in plot.cells.iter().filter(|cell| !is_missing(cell)) {
                let _ = writeln!(text, "    {indent}{}", cell.name());
            }
        }
    }
    text
}

fn amount(plan: &Plan, cells: &[Cell], twins: usize) -> String {
    let block: f64 = cells.iter().filter_map(|cell| plan.expected_seconds(cell)).sum();
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

/// How the time comes about: a line for each workload.
fn guess(plan: &Plan, cells: &[Cell]) -> String {
    let text = "The guess takes a typical cost for every access, for laying the memory and for booting a guest; it can be wrong by a factor of \
                three. It counts, for a block:";
    let mut text = wrapped("", "", text);
    for workload in &plan.workloads {
        let own = || cells.iter().filter(|cell| cell.workload == workload.name);
        let seconds: f64 = own().filter_map(|cell| plan.expected_seconds(cell)).sum();
        let n = own().count();
        if n == 0 {
            continue;
        }
        text.push_str(&item("- ", &format!("{}: {n} trials, {seconds:.1} s", workload.name)));
    }
    text
}

/// Every setting of the host that would be changed, with what it is now.
fn changed(changes: &Changes) -> String {
    let Changes { turned, loans, reserve } = changes;
    let mut lines: Vec<String> = Vec::new();
    for Turned { factor, file, now, levels } in turned {
        lines.push(item("- ", &format!("{factor}: {}; now {now} ({file})", levels.join(", "))));
    }
    for Loan { page, pages, free } in loans.iter().filter(|_| *reserve == Reserve::Yes) {
        let more = pages - free;
        let text = format!("pool of {} pages: {more} more borrowed, for the {pages} the plan needs", page.prose());
        lines.push(item("- ", &text));
    }
    let mut text = match lines.is_empty() {
        true => "\nHost settings changed and put back: none\n".to_owned(),
        false => format!("\nHost settings changed and put back\n{}", lines.concat()),
    };
    for Loan { page, pages, free } in loans.iter().filter(|_| *reserve == Reserve::No) {
        let page = page.prose();
        let note = format!("({pages} pages of {page} needed, {free} free; --reserve would borrow the rest.)");
        text.push_str(&wrapped("", " ", &note));
    }
    text
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

/// The evidence of a process of its own.
fn demanded(task: Task) -> Option<&'static str> {
    match task {
        Task::Os => Some("operations counted, the time they took, and the CPUs it could use"),
        Task::Program(_) => Some("the program's version, the settings that it prints, and its CPU time"),
        Task::Command => Some("an exit code of 0, and each metric in one place of the output"),
        Task::Probe(_) | Task::Touch | Task::Walk | Task::Reserve | Task::Rights | Task::Bloat => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "[factors]\nhost = [\"4k\", \"2m\"]\nthp = [\"always\", \"never\"]\n\
                        [[workload]]\nprobe = \"chase\"\nsize = \"8M\"\n[replication]\nblocks = 2\n";

    fn changes(reserve: Reserve) -> Changes {
        let turned = Turned {
            factor: "thp".to_owned(),
            file: "/sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
            now: "madvise".to_owned(),
            levels: vec!["always".to_owned(), "never".to_owned()],
        };
        let loan = Loan { page: PageSize::Large, pages: 4, free: 1 };
        Changes { turned: vec![turned], loans: vec![loan], reserve }
    }

    #[test]
    fn a_dry_run_tells_every_setting_with_what_it_is_now_and_what_it_would_be() {
        let plan = Plan::parse("plan.toml", PLAN).unwrap();
        let text = dry_run(&plan, 7, &[], &changes(Reserve::Yes));
        let expected = "\nHost settings changed and put back\n\
             - thp: always, never; now madvise (/sys/kernel/mm/transparent_hugepage/enabled)\n\
             - pool of 2 MiB pages: 3 more borrowed, for the 4 the plan needs\n\n";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("\n  with thp=never\n    on host=2m size=8M\n      chase host=2m thp=never\n"), "{text}");
        assert!(text.contains("\n- chase: 5 trials, "), "{text}");
        assert!(text.contains("\n- thp: the setting read back, before and after each trial\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let text = dry_run(&plan, 7, &[], &changes(Reserve::No));
        let note = "(4 pages of 2 MiB needed, 1 free; --reserve would borrow the rest.)\n";
        assert!(text.contains(note) && !text.contains("more borrowed"), "{text}");
    }

    #[test]
    fn what_programs_would_do_is_told_with_what_proves_it() {
        let text = "[[workload]]\nprogram = \"sysbench-cpu\"\n[[workload]]\nprobe = \"spawn\"\n";
        let plan = Plan::parse("plan.toml", text).unwrap();
        let gone = |cell: &str| Missing { cell: cell.to_owned(), reason: "no".to_owned(), remedy: "none".to_owned() };
        let missing = ["sysbench-cpu", "sysbench-cpu A'"].map(gone);
        let all = dry_run(&plan, 7, &[], &changes(Reserve::No));
        assert!(all.contains("\n  on the host itself\n"), "{all}");
        assert!(all.contains("\n- sysbench-cpu: 2 trials, 20.0 s\n- spawn: 2 trials, 20.0 s\n"), "{all}");
        assert!(all.contains("\n- sysbench-cpu: the program's version, "), "{all}");
        assert!(!dry_run(&plan, 7, &missing, &changes(Reserve::No)).contains("- sysbench-cpu: "), "{all}");
    }

    #[test]
    fn whole_plots_of_missing_cells_alone_are_not_in_the_order() {
        let plan = Plan::parse("plan.toml", PLAN).unwrap();
        let cells = plan.cells().into_iter().filter(|cell| cell.name().contains("thp=never"));
        let gone = |cell: Cell| Missing { cell: cell.name(), reason: "no".to_owned(), remedy: "none".to_owned() };
        let text = dry_run(&plan, 7, &cells.map(gone).collect::<Vec<_>>(), &changes(Reserve::No));
        assert!(text.contains("  with thp=always\n") && !text.contains("  with thp=never\n"), "{text}");
    }
}
