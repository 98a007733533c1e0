//! `perf bench sched messaging`: hackbench as perf has it.

use super::{GROUPS, LOOPS, PIPE, SENDERS, WHO, open_files, seconds_finding};
use crate::{
    experiment::Finding,
    program::{Needs, Outputs, Program, Script, Site, Unfit, Unreadable, Values, script::words, text::Text},
};

/// Its row.
pub static PROGRAM: Program = Program {
    name: "perf-messaging",
    about: "hackbench as perf has it",
    needs: Needs { program: "perf", package: "linux-perf", version: &["--version"], before_version: "perf version " },
    parameters: &[GROUPS, LOOPS, WHO, PIPE],
    script,
    read,
};

fn script(values: &Values, _: &Site) -> Result<Script, Unfit> {
    let (groups, loops) = (values.count("groups"), values.count("loops"));
    let pipe = if values.is_on("pipe") { "-p" } else { "" };
    let threads = if values.word("tasks") == "threads" { "-t" } else { "" };
    let run = words(&format!("perf bench sched messaging {pipe} {threads} -g {groups} -l {loops}"));
    Ok(Script { run, open_files: open_files(groups), ..Script::default() })
}

fn read(values: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    let text = Text::of("perf bench sched messaging", outputs.run.stdout);
    text.only("# Running 'sched/messaging' benchmark:")?;
    let groups = values.count("groups");
    let tasks = groups * SENDERS * 2;
    let who = if values.word("tasks") == "process" { "processes" } else { "threads" };
    let line = text.lines().find(|line| line.text.contains(" groups == "));
    let line = line.ok_or_else(|| text.missing("`N groups == N processes run`"))?;
    let asked = format!("# {groups} groups == {tasks} {who} run");
    if line.text != asked {
        return Err(line.not_as_asked(asked));
    }
    let line = text.only("Total time:")?;
    if line.word(1) != Some("[sec]") {
        return Err(line.otherwise("a time in [sec]"));
    }
    Ok(seconds_finding(line.positive(0, "")?))
}
