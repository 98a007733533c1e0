//! `sysbench threads`: threads that yield while they hold locks: the scheduler.

use super::{Limit, NEEDS, THREADS, TIME, command, events_rate, timed};
use crate::{
    experiment::Finding,
    factor::Grammar,
    plan::Parameter,
    program::{Outputs, Program, Script, Site, Unfit, Unreadable, Values},
};

/// Its row.
pub static PROGRAM: Program = Program {
    name: "sysbench-threads",
    about: "rounds of locking and yielding a second: the scheduler",
    needs: NEEDS,
    parameters: &[
        THREADS,
        TIME,
        Parameter { name: "yields", values: Grammar::Count(1, 1 << 32), default: "1000" },
        Parameter { name: "locks", values: Grammar::Count(1, 1 << 20), default: "8" },
    ],
    script,
    read,
};

fn script(values: &Values, _: &Site) -> Result<Script, Unfit> {
    let option = |name: &str| format!("--thread-{name}={}", values.count(name));
    Ok(timed(values, command("threads", values, Limit::Seconds, &[option("yields"), option("locks")])))
}

fn read(values: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    events_rate("sysbench threads", values, outputs)
}
