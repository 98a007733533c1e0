//! `sysbench cpu`: primes by trial division, in registers. Virtualization should cost it nothing: a negative control.

use super::{Limit, NEEDS, Report, THREADS, TIME, command, timed};
use crate::{
    experiment::{Better, Finding},
    factor::Grammar,
    plan::Parameter,
    program::{Outputs, Program, Script, Site, Unfit, Unreadable, Values, metric},
};

/// Its row.
pub static PROGRAM: Program = Program {
    name: "sysbench-cpu",
    about: "primes found a second: arithmetic without memory, a control",
    needs: NEEDS,
    parameters: &[
        THREADS,
        TIME,
        Parameter { name: "max_prime", values: Grammar::Count(3, 100_000_000), default: "10000" },
    ],
    script,
    read,
};

fn script(values: &Values, _: &Site) -> Result<Script, Unfit> {
    let prime = format!("--cpu-max-prime={}", values.count("max_prime"));
    Ok(timed(values, command("cpu", values, Limit::Seconds, &[prime])))
}

fn read(values: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    let mut report = Report::read("sysbench cpu", values, outputs.run.stdout)?;
    let limit = report.text.only("Prime numbers limit:")?;
    if limit.rest != values.count("max_prime").to_string() {
        return Err(limit.not_as_asked(format!("max_prime = {}", values.count("max_prime"))));
    }
    let rate = report.text.number("events per second:", "")?;
    report.check_rate(rate, 1.0);
    Ok(report.finding(vec![metric("events_per_second", rate, "events/s", Better::Higher)]))
}
