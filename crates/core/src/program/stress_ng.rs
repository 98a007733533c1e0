//! stress-ng: one of its stressors, in bogus operations a second. What an operation is differs between stressors, and for
//! some between versions.

use std::time::Duration;

use super::{
    Needs, Outputs, Program, Script, Site, Unfit, Unreadable, Values, metric,
    script::words,
    text::{Line, Text, number},
};
use crate::{
    experiment::{Better, Finding},
    factor::Grammar,
    plan::Parameter,
    units::{Bytes, MIB},
};

/// Its row.
pub static PROGRAM: Program = Program {
    name: "stress-ng",
    about: "bogus operations a second of one of its stressors",
    needs: Needs {
        program: "stress-ng",
        package: "stress-ng",
        version: &["--version"],
        before_version: "stress-ng, version ",
    },
    parameters: &[
        Parameter { name: "stressor", values: Grammar::Words(STRESSORS), default: "vm" },
        Parameter { name: "instances", values: Grammar::Count(1, 4096), default: "1" },
        Parameter { name: "seconds", values: Grammar::Count(1, 86_400), default: "10" },
        Parameter { name: "vm_bytes", values: Grammar::Size(Bytes(MIB)), default: "256M" },
    ],
    script,
    read,
};

const STRESSORS: &[&str] = &[
    "vm",
    "cpu",
    "cache",
    "context",
    "fault",
    "fork",
    "malloc",
    "matrix",
    "memcpy",
    "memrate",
    "mmap",
    "pipe",
    "stream",
    "switch",
    "syscall",
    "tlb-shootdown",
];

fn script(values: &Values, _: &Site) -> Result<Script, Unfit> {
    let (stressor, instances, seconds) = (values.word("stressor"), values.count("instances"), values.count("seconds"));
    let memory = match stressor {
        "vm" => format!("--vm-bytes {}", values.size("vm_bytes").0),
        _ => String::new(),
    };
    let run = words(&format!("stress-ng --{stressor} {instances} {memory} --timeout {seconds}s --metrics-brief"));
    Ok(Script { run, expected: Some(Duration::from_secs(seconds)), ..Script::default() })
}

fn read(values: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    // Version 0.15 writes all of it to the standard error, later ones the metrics to the standard output.
    let both = format!("{}{}", outputs.run.stdout, outputs.run.stderr);
    let text = Text::of("stress-ng", &both);
    let failed = |line: &Line<'_>| {
        line.text.starts_with("stress-ng: fail:")
            || line.text.starts_with("stress-ng: error:")
            || line.text.starts_with("stress-ng: unrecognized")
    };
    if let Some(line) = text.lines().find(failed) {
        return Err(line.failure(None));
    }
    let stressor = values.word("stressor");
    let mut rows = text.lines().filter(|line| row(line, stressor).is_some());
    let line = rows.next().ok_or_else(|| text.missing(&format!("the metrics of `{stressor}`")))?;
    if let Some(second) = rows.next() {
        return Err(second.otherwise(format!("one row for `{stressor}`, in the output of one run")));
    }
    let figures = row(&line, stressor).expect("it was found by being one");
    let Some([real, _cpu]) = figures.rates() else {
        return Err(line.otherwise("operations, three times, and two rates above 0"));
    };
    if !text.lines().any(|line| line.text.contains("successful run completed")) {
        return Err(text.missing("`successful run completed`"));
    }
    let metrics = vec![metric("bogo_ops_per_second", real, "ops/s", Better::Higher)];
    let caveat = "bogus operations compare only with the same stressor of the same version".to_owned();
    Ok(Finding { metrics, caveats: vec![caveat], ..Finding::default() })
}

struct Row<'t>(Vec<&'t str>);

/// `stress-ng: metrc: [PID] STRESSOR OPS REAL USR SYS RATE RATE …`; `info:` in place of `metrc:` before 0.14.
fn row<'t>(line: &Line<'t>, stressor: &str) -> Option<Row<'t>> {
    let mut words = line.text.split_whitespace();
    let is_head = words.next()? == "stress-ng:" && matches!(words.next()?, "metrc:" | "info:");
    let is_row = is_head && words.next()?.starts_with('[') && words.next()? == stressor;
    let figures: Vec<&str> = words.collect();
    (is_row && figures.len() >= 6 && number(figures[1]).is_some()).then_some(Row(figures))
}

impl Row<'_> {
    /// Operations a second of elapsed time, and of CPU time.
    fn rates(&self) -> Option<[f64; 2]> {
        let figures: Option<Vec<f64>> = self.0[..6].iter().map(|word| number(word)).collect();
        let figures = figures?;
        let rates = [figures[4], figures[5]];
        (figures[0] > 0.0 && rates[0] > 0.0).then_some(rates)
    }
}
