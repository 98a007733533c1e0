//! hackbench: groups of senders and receivers that pass messages: the scheduler, and what it costs to wake somebody.
//!
//! Of rt-tests, or as it was before (`hackbench 50 process 50`, without a version). [`perf`] is the copy in perf. Their
//! times are not comparable with one another.

pub mod perf;

use super::{Needs, Outputs, Program, Script, Site, Unfit, Unreadable, Values, metric, script::words, text::Text};
use crate::{
    experiment::{Better, Finding},
    factor::Grammar,
    plan::Parameter,
    units::Bytes,
};

/// Its row.
pub static PROGRAM: Program = Program {
    name: "hackbench",
    about: "time in which groups of 20 senders and receivers pass messages",
    needs: Needs {
        program: "hackbench",
        package: "rt-tests",
        // There is no option for it; the help begins with it.
        version: &["--help"],
        before_version: "hackbench V ",
    },
    parameters: &[
        GROUPS,
        LOOPS,
        WHO,
        PIPE,
        Parameter { name: "message", values: Grammar::Size(Bytes(1)), default: "100" },
        Parameter { name: "form", values: Grammar::Words(&["rt-tests", "old"]), default: "rt-tests" },
    ],
    script,
    read,
};

const GROUPS: Parameter = Parameter { name: "groups", values: Grammar::Count(1, 10_000), default: "10" };
const LOOPS: Parameter = Parameter { name: "loops", values: Grammar::Count(1, 1 << 32), default: "100" };
const WHO: Parameter = Parameter { name: "tasks", values: Grammar::Words(&["process", "threads"]), default: "process" };
const PIPE: Parameter = Parameter { name: "pipe", values: Grammar::Switch, default: "off" };

/// Senders of a group; as many receive.
const SENDERS: u64 = 20;

/// Files open at once: both ends of a pair for each task, and some for the rest. Processes close most of them, threads
/// share them all.
pub fn open_files(groups: u64) -> u64 {
    groups * SENDERS * 2 * 2 + 64
}

fn script(values: &Values, _: &Site) -> Result<Script, Unfit> {
    let (groups, loops, bytes) = (values.count("groups"), values.count("loops"), values.size("message").0);
    let (is_process, is_pipe) = (values.word("tasks") == "process", values.is_on("pipe"));
    let run = if values.word("form") == "old" {
        let pipe = if is_pipe { "-pipe" } else { "" };
        let who = if is_process { "process" } else { "thread" };
        if bytes != 100 {
            return Err(Unfit("`message` is 100 in the old hackbench".to_owned()));
        }
        words(&format!("hackbench {pipe} {groups} {who} {loops}"))
    } else {
        let (who, pipe) = (if is_process { "-P" } else { "-T" }, if is_pipe { "-p" } else { "" });
        words(&format!("hackbench -g {groups} -l {loops} -s {bytes} {who} {pipe}"))
    };
    Ok(Script { run, open_files: open_files(groups), ..Script::default() })
}

fn read(values: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    let text = Text::of("hackbench", outputs.run.stdout);
    let errors = Text::of("hackbench", outputs.run.stderr);
    if let Some(line) = errors.lines().find(|line| line.text.contains("error:")) {
        let help = line.text.contains("Too many open files").then_some("fewer groups, or a higher ulimit -n");
        return Err(line.failure(help));
    }
    let groups = values.count("groups");
    let tasks = groups * SENDERS * 2;
    let line = text.only("Running ")?;
    let asked = if values.word("form") == "old" {
        format!("with {groups}*40 (== {tasks}) tasks")
    } else {
        let mode = if values.word("tasks") == "process" { "process" } else { "threaded" };
        format!("in {mode} mode with {groups} groups using 40 file descriptors each (== {tasks} tasks)")
    };
    if line.rest.trim_end_matches('.') != asked {
        return Err(line.not_as_asked(asked));
    }
    let seconds = text.number("Time:", "")?;
    let mut finding = seconds_finding(seconds);
    finding.evidence.insert("hackbench.tasks".to_owned(), tasks.to_string());
    Ok(finding)
}

fn seconds_finding(seconds: f64) -> Finding {
    Finding { metrics: vec![metric("seconds", seconds, "s", Better::Lower)], ..Finding::default() }
}
