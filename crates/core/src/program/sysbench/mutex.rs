//! `sysbench mutex`: threads that take locks among many. One event a thread: the figure is the time of them all.

use super::{Limit, NEEDS, Report, THREADS, command};
use crate::{
    experiment::{Better, Finding},
    factor::Grammar,
    plan::Parameter,
    program::{Outputs, Program, Script, Site, Unfit, Unreadable, Values, metric},
};

/// Its row.
pub static PROGRAM: Program = Program {
    name: "sysbench-mutex",
    about: "time in which threads take a number of locks each",
    needs: NEEDS,
    parameters: &[
        THREADS,
        Parameter { name: "mutexes", values: Grammar::Count(1, 1 << 20), default: "4096" },
        Parameter { name: "locks", values: Grammar::Count(1, 1 << 32), default: "50000" },
        Parameter { name: "loops", values: Grammar::Count(1, 1 << 32), default: "10000" },
    ],
    script,
    read,
};

fn script(values: &Values, _: &Site) -> Result<Script, Unfit> {
    let option = |name: &str, value: &str| format!("--mutex-{name}={}", values.count(value));
    let options = [option("num", "mutexes"), option("locks", "locks"), option("loops", "loops")];
    // A time limit is looked at between events only, and there is one for each thread.
    Ok(Script { run: command("mutex", values, Limit::Work, &options), ..Script::default() })
}

fn read(values: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    let report = Report::read("sysbench mutex", values, outputs.run.stdout)?;
    if report.events != values.count(THREADS.name) as f64 {
        let contradiction = format!("{} events with {} threads", report.events, values.count(THREADS.name));
        return Err(Unreadable::Contradiction { program: report.program, contradiction });
    }
    let seconds = metric("seconds", report.seconds, "s", Better::Lower);
    Ok(report.finding(vec![seconds]))
}
