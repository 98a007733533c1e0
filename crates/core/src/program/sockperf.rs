//! sockperf: round trips over TCP, one at a time. A free stand-in for netperf's TCP_RR, and never mixed with it: sockperf
//! prints half the round trip as its latency.

use std::{collections::BTreeMap, time::Duration};

use super::{
    Needs, Outputs, Program, Script, Server, Site, Unfit, Unreadable, Values, metric,
    script::words,
    text::{Text, number},
};
use crate::{
    experiment::{Better, Finding},
    factor::Grammar,
    plan::Parameter,
    units::Bytes,
};

/// Its row.
pub static PROGRAM: Program = Program {
    name: "sockperf",
    about: "latency of messages over TCP: half a round trip",
    needs: Needs {
        program: "sockperf",
        package: "sockperf",
        version: &["--version"],
        before_version: "sockperf, version ",
    },
    parameters: &[
        Parameter { name: "seconds", values: Grammar::Count(1, 86_400), default: "10" },
        Parameter { name: "message", values: Grammar::Size(Bytes(14)), default: "14" },
    ],
    script,
    read,
};

fn script(values: &Values, site: &Site) -> Result<Script, Unfit> {
    let Site { host, port, .. } = site;
    let (seconds, message) = (values.count("seconds"), values.size("message").0);
    Ok(Script {
        server: Some(Server { command: words(&format!("sockperf server --tcp -p {port}")), port: *port }),
        run: words(&format!("sockperf ping-pong --tcp -i {host} -p {port} -t {seconds} --msg-size {message}")),
        expected: Some(Duration::from_secs(seconds)),
        ..Script::default()
    })
}

fn read(_: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    let plain = without_colours(outputs.run.stdout);
    let text = Text::of("sockperf", &plain);
    // It exits with 0 also after an error.
    let errors = without_colours(outputs.run.stderr);
    for text in [text, Text::of("sockperf", &errors)] {
        if let Some(line) = text.first("sockperf: ERROR:") {
            return Err(line.failure(Some("is sockperf server --tcp running there, and the port open?")));
        }
    }
    let summary = text.only("sockperf: Summary: Latency is")?;
    if summary.word(1) != Some("usec") {
        return Err(summary.otherwise("a latency in usec"));
    }
    let mut metrics = vec![metric("latency_avg_us", summary.positive(0, "")?, "us", Better::Lower)];
    for (rank, name) in [("50.000", "latency_p50_us"), ("99.000", "latency_p99_us"), ("99.900", "latency_p99_9_us")] {
        let value = text.number(&format!("sockperf: ---> percentile {rank} ="), "")?;
        metrics.push(metric(name, value, "us", Better::Lower));
    }
    text.only("sockperf: ---> <MIN> observation =")?;
    let drops = text.only("sockperf: # dropped messages =")?;
    let dropped = drops.word(0).and_then(|word| number(word.trim_end_matches(';')));
    let dropped = dropped.ok_or_else(|| drops.otherwise("the number of dropped messages"))?;
    let caveats = if dropped > 0.0 { vec![format!("{dropped} messages were dropped")] } else { Vec::new() };
    let version = text.lines().find_map(|line| line.text.split_once("== version #")?.1.split_whitespace().next());
    let evidence: BTreeMap<_, _> =
        version.map(|version| ("sockperf.version".to_owned(), version.to_owned())).into_iter().collect();
    Ok(Finding { metrics, evidence, caveats })
}

/// Without the escape sequences `ESC [ … letter` that it prints also into files.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        let mut characters = rest.chars();
        if characters.next().is_some_and(|c| c.is_ascii_alphabetic()) {
            rest = characters.as_str();
        }
    }
    plain + rest
}
