//! UnixBench, from a tree that the user has built: its report is read, and its index recomputed and checked.

pub mod index;
mod report;

use super::{Needs, Outputs, Program, Script, Site, Unfit, Unreadable, Values, metric, script::words};
use crate::{
    experiment::{Better, Finding},
    factor::Grammar,
    plan::Parameter,
    units::{Bytes, MIB},
};

pub use index::{BASELINES, Baseline};
pub use report::{Report, Score};

/// Its row.
pub static PROGRAM: Program = Program {
    name: "unixbench",
    about: "UnixBench's index, and the rates it is made of",
    needs: Needs { program: "perl", package: "perl", version: &["-v"], before_version: "(v" },
    parameters: &[
        Parameter { name: "copies", values: Grammar::Count(1, 4096), default: "1" },
        Parameter { name: "tests", values: Grammar::Words(&["index", "oldsystem"]), default: "index" },
        Parameter { name: "iterations", values: Grammar::Count(1, 100), default: "10" },
    ],
    script,
    read,
};

/// Versions before 6.0 run no more copies than this, and do not say so.
const COPIES_BEFORE_6: u64 = 16;

fn script(values: &Values, site: &Site) -> Result<Script, Unfit> {
    let tree = site.tree.as_deref().ok_or_else(|| {
        Unfit(
            "UnixBench runs in its tree and was given none; get byte-unixbench, and run make in its UnixBench"
                .to_owned(),
        )
    })?;
    // Its file copies and results go where they are removed, not into the tree.
    let mut run = vec!["env".to_owned()];
    run.extend(["UB_TMPDIR", "UB_RESULTDIR"].map(|variable| format!("{variable}={}", site.directory)));
    run.push(format!("{tree}/Run"));
    let (copies, iterations, tests) = (values.count("copies"), values.count("iterations"), values.word("tests"));
    run.extend(words(&format!("-c {copies} -i {iterations} {tests}")));
    Ok(Script { run, disk: Bytes(128 * MIB), ..Script::default() })
}

fn read(values: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    let report = Report::read(outputs.run.stdout)?;
    let copies = values.count("copies");
    if report.copies != copies {
        let help = if copies > COPIES_BEFORE_6 { "; versions before 6.0 run 16 at most" } else { "" };
        return Err(Unreadable::Otherwise {
            program: report::PROGRAM,
            asked: format!("{copies} copies{help}"),
            line: format!("running {} parallel copies of tests", report.copies),
        });
    }
    let mut metrics = vec![metric("index", report.index, "index", Better::Higher)];
    for Score { baseline, rate } in &report.scores {
        let name = format!("{}_{}", baseline.key.replace('-', "_"), baseline.unit.to_lowercase());
        metrics.push(metric(&name, *rate, baseline.unit, Better::Higher));
    }
    let mut caveats = vec!["comparable only with the same compiler, C library and file system".to_owned()];
    if report.scores.len() < BASELINES.len() {
        let (run, all) = (report.scores.len(), BASELINES.len());
        caveats.push(format!("a partial index, of {run} of the {all} tests"));
    }
    Ok(Finding { metrics, caveats, ..Finding::default() })
}
