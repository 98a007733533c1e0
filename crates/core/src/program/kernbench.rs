//! kernbench: the time of a kernel build, in kernbench's terms, without kernbench.
//!
//! The build runs under `wait4`, which gives what kernbench takes from GNU time: elapsed, user and system time, percent
//! CPU, context switches (involuntary) and sleeps (voluntary). Runs are not pooled here: a trial is one build, and the
//! schedule repeats it. [`log`] reads logs that kernbench wrote.

pub mod log;

use super::{
    Needs, Outputs, Program, Script, Site, Unfit, Unreadable, Usage, Values, metric, script::words, text::Text,
};
use crate::{
    experiment::{Better, Finding, Metric},
    factor::Grammar,
    plan::Parameter,
    units::{Bytes, GIB},
};

/// Its row.
pub static PROGRAM: Program = Program {
    name: "kernbench",
    about: "time of a kernel build, with CPU time, context switches and sleeps",
    needs: Needs {
        program: "make",
        package: "make gcc flex bison bc",
        version: &["--version"],
        before_version: "GNU Make ",
    },
    parameters: &[
        Parameter { name: "jobs", values: Grammar::Count(1, 4096), default: "4" },
        Parameter { name: "config", values: Grammar::Words(CONFIGS), default: "tinyconfig" },
        Parameter { name: "target", values: Grammar::Words(TARGETS), default: "lib/" },
    ],
    script,
    read,
};

const CONFIGS: &[&str] = &["tinyconfig", "allnoconfig", "defconfig", "allmodconfig"];
const TARGETS: &[&str] = &["lib/", "kernel/", "mm/", "fs/", "vmlinux", "bzImage", "all"];

fn script(values: &Values, site: &Site) -> Result<Script, Unfit> {
    let tree = site.tree.as_deref().ok_or_else(|| {
        Unfit("kernbench builds a kernel and was given no tree; apt-get install linux-source, and unpack it".to_owned())
    })?;
    let make = |goal: &str| {
        let mut command = words("make -s -C");
        command.extend([tree.to_owned(), format!("O={}", site.directory)]);
        command.extend(words(goal));
        command
    };
    let (jobs, target) = (values.count("jobs"), values.word("target"));
    // A first build leaves the tree in the page cache and the configuration's own programs built; `clean` keeps these.
    let warm = make(&format!("-j{jobs} {target}"));
    Ok(Script {
        prepare: vec![make(values.word("config")), warm.clone(), make("clean")],
        run: warm,
        disk: Bytes(2 * GIB),
        ..Script::default()
    })
}

fn read(_: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    let errors = Text::of("kernbench", outputs.run.stderr);
    if let Some(line) = errors.lines().find(|line| line.text.starts_with("make: ***") || line.text.contains(": *** ")) {
        let help = line.text.contains("No space left").then_some("TMPDIR on a larger disk");
        return Err(line.failure(help));
    }
    let caveat = "comparable only with the same tree, configuration and compiler".to_owned();
    Ok(Finding { metrics: metrics(outputs.run.usage)?, caveats: vec![caveat], ..Finding::default() })
}

/// A build in kernbench's terms. Counts of 0 are no figures, and left out.
pub fn metrics(usage: Usage) -> Result<Vec<Metric>, Unreadable> {
    let [elapsed, user, system] = [usage.elapsed, usage.user, usage.system].map(|time| time.as_secs_f64());
    if elapsed == 0.0 || user + system == 0.0 {
        let contradiction = format!("a build of {elapsed} s with {user} s of user and {system} s of system time");
        return Err(Unreadable::Contradiction { program: "kernbench", contradiction });
    }
    let metrics = [
        metric("elapsed_s", elapsed, "s", Better::Lower),
        metric("user_s", user, "s", Better::Lower),
        metric("system_s", system, "s", Better::Lower),
        metric("percent_cpu", (user + system) / elapsed * 100.0, "%", Better::Higher),
        metric("context_switches", usage.involuntary_switches as f64, "switches", Better::Lower),
        metric("sleeps", usage.voluntary_switches as f64, "sleeps", Better::Lower),
    ];
    Ok(metrics.into_iter().filter(|metric| metric.value > 0.0).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_build_is_told_in_kernbenchs_terms() {
        let usage = Usage {
            elapsed: Duration::from_millis(20_000),
            user: Duration::from_millis(30_000),
            system: Duration::from_millis(5_000),
            voluntary_switches: 1234,
            involuntary_switches: 567,
        };
        let got = metrics(usage).unwrap();
        let got: Vec<(&str, f64)> = got.iter().map(|metric| (metric.name.as_str(), metric.value)).collect();
        let expected = [
            ("elapsed_s", 20.0),
            ("user_s", 30.0),
            ("system_s", 5.0),
            ("percent_cpu", 175.0),
            ("context_switches", 567.0),
            ("sleeps", 1234.0),
        ];
        assert_eq!(got, expected);
        assert_eq!(
            metrics(Usage::default()).unwrap_err().to_string(),
            "kernbench: a build of 0 s with 0 s of user and 0 s of system time"
        );
    }
}
