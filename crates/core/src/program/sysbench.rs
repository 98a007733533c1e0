//! sysbench 1.0: what its five tests share. Versions before 1.0 measure other loops under the same names and are refused.

pub mod cpu;
pub mod fileio;
pub mod memory;
pub mod mutex;
pub mod threads;

use std::{collections::BTreeMap, time::Duration};

use super::{
    Needs, Outputs, Script, Unreadable, Values, metric,
    script::words,
    text::{Text, number},
};
use crate::{
    experiment::{Better, Finding, Metric},
    factor::Grammar,
    plan::Parameter,
};

const NEEDS: Needs =
    Needs { program: "sysbench", package: "sysbench", version: &["--version"], before_version: "sysbench " };

const THREADS: Parameter = Parameter { name: "threads", values: Grammar::Count(1, 4096), default: "1" };
const TIME: Parameter = Parameter { name: "seconds", values: Grammar::Count(1, 86_400), default: "10" };

/// How far a rate may lie from events over time before a reader is told, as a share.
const DISAGREEMENT: f64 = 0.02;

/// `sysbench TEST …`: what every run is told. Random numbers follow from a fixed seed.
fn command(test: &str, values: &Values, time: Limit, options: &[String]) -> Vec<String> {
    let seconds = match time {
        Limit::Seconds => values.count(TIME.name),
        Limit::Work => 0,
    };
    let threads = values.count(THREADS.name);
    let mut command = words(&format!("sysbench {test} --threads={threads} --time={seconds} --events=0 --rand-seed=1"));
    command.extend_from_slice(options);
    command.push("run".to_owned());
    command
}

/// What ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// The parameter [`TIME`].
    Seconds,
    /// All work is done.
    Work,
}

fn timed(values: &Values, run: Vec<String>) -> Script {
    Script { run, expected: Some(Duration::from_secs(values.count(TIME.name))), ..Script::default() }
}

/// What every test prints.
#[derive(Debug)]
struct Report<'t> {
    program: &'static str,
    text: Text<'t>,
    seconds: f64,
    events: f64,
    latency: Vec<Metric>,
    evidence: BTreeMap<String, String>,
    caveats: Vec<String>,
}

impl<'t> Report<'t> {
    fn read(program: &'static str, values: &Values, stdout: &'t str) -> Result<Report<'t>, Unreadable> {
        let text = Text::of(program, stdout);
        if let Some(line) = text.first("FATAL:") {
            return Err(line.failure(help(line.text)));
        }
        let banner = text.only("sysbench ")?;
        let version = banner.word(0).unwrap_or_default().trim_end_matches(':');
        if !version.starts_with("1.") {
            return Err(banner.otherwise("sysbench 1.0 or later, since older ones measure otherwise"));
        }
        let threads = text.only("Number of threads:")?;
        if threads.rest != values.count(THREADS.name).to_string() {
            return Err(threads.not_as_asked(format!("{} threads", values.count(THREADS.name))));
        }
        let seconds = text.number("total time:", "s")?;
        let events = text.number("total number of events:", "")?;
        let evidence =
            [("version", version.to_owned()), ("events", events.to_string()), ("seconds", seconds.to_string())];
        let report = Report {
            program,
            text,
            seconds,
            events,
            latency: latency(text)?,
            evidence: evidence.map(|(name, value)| (format!("sysbench.{name}"), value)).into(),
            caveats: Vec::new(),
        };
        text.only("execution time (avg/stddev):")?;
        Ok(report)
    }

    /// Notes a rate that is not events over total time: its clock starts elsewhere, which shows in short runs.
    fn check_rate(&mut self, rate: f64, per_event: f64) {
        let counted = self.events * per_event / self.seconds;
        let off = rate / counted - 1.0;
        if off.abs() > DISAGREEMENT {
            let seconds = self.seconds;
            self.caveats.push(format!(
                "sysbench's rate is {:.0} % {} its events over its total time of {seconds} s: the run is too short for it",
                off.abs() * 100.0,
                if off > 0.0 { "above" } else { "below" }
            ));
        }
    }

    fn finding(self, mut metrics: Vec<Metric>) -> Finding {
        metrics.extend(self.latency);
        Finding { metrics, evidence: self.evidence, caveats: self.caveats }
    }
}

/// Latencies are printed in hundredths of a millisecond: what rounds to nothing is left out.
fn latency(text: Text<'_>) -> Result<Vec<Metric>, Unreadable> {
    text.only("Latency (ms):")?;
    let mut metrics = Vec::new();
    for (label, name) in [("avg:", "latency_avg_ms"), ("max:", "latency_max_ms")] {
        metrics.push((name.to_owned(), text.only(label)?.not_negative(0, "")?));
    }
    // `95th percentile:`, or `percentile stats: disabled`.
    let percentile = text.lines().find_map(|line| Some((line, line.text.split_once("th percentile:")?)));
    if let Some((line, (rank, value))) = percentile {
        let value = number(value.trim()).ok_or_else(|| line.otherwise("a number"))?;
        metrics.push((format!("latency_p{rank}_ms"), value));
    }
    metrics.retain(|(_, value)| *value > 0.0);
    Ok(metrics.into_iter().map(|(name, value)| metric(&name, value, "ms", Better::Lower)).collect())
}

fn help(line: &str) -> Option<&'static str> {
    let known = [
        ("from HugeTLB memory", "reserve pages for every buffer, and join the group in vm.hugetlb_shm_group"),
        ("Cannot open file", "prepare the files first, in the directory of the run"),
        ("memory-block-size", "block_size is a power of two"),
        ("errno = 28", "the disk is full: a smaller total_size, or TMPDIR on a larger disk"),
    ];
    known.into_iter().find(|(words, _)| line.contains(words)).map(|(_, help)| help)
}

/// The rate of events of a test that prints none.
fn events_rate(program: &'static str, values: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    let report = Report::read(program, values, outputs.run.stdout)?;
    let rate = metric("events_per_second", report.events / report.seconds, "events/s", Better::Higher);
    Ok(report.finding(vec![rate]))
}
