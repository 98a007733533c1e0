//! netperf: TCP_STREAM and TCP_RR from the host to the machine under test.
//!
//! Output by key and value is asked for; the tables that it prints otherwise are read too, for logs. netperf caps the
//! iterations of its confidence search at 30 and prints a figure also where the confidence was not reached: that is said.

use std::time::Duration;

use super::{
    Needs, Outputs, Program, Script, Server, Site, Unfit, Unreadable, Values, metric,
    script::words,
    text::{Text, number},
};
use crate::{
    experiment::{Better, Finding, Metric},
    factor::Grammar,
    plan::Parameter,
    units::Bytes,
};

/// Its row.
pub static PROGRAM: Program = Program {
    name: "netperf",
    about: "a TCP stream, or requests and responses, to the machine under test",
    needs: Needs {
        program: "netperf",
        package: "netperf (in non-free; iperf3 and sockperf are free stand-ins)",
        version: &["-V"],
        before_version: "Netperf version ",
    },
    parameters: &[
        Parameter { name: "test", values: Grammar::Words(&["tcp_stream", "tcp_rr"]), default: "tcp_stream" },
        Parameter { name: "seconds", values: Grammar::Count(1, 86_400), default: "10" },
        Parameter { name: "message", values: Grammar::Size(Bytes(1)), default: "16K" },
        Parameter { name: "request", values: Grammar::Size(Bytes(1)), default: "1" },
        Parameter { name: "response", values: Grammar::Size(Bytes(1)), default: "1" },
        Parameter { name: "confidence", values: Grammar::Switch, default: "off" },
    ],
    script,
    read,
};

/// Runs of a confidence search: as many as netperf allows, and as few.
const ITERATIONS: (u64, u64) = (30, 3);

const KEYS: &str =
    "THROUGHPUT,THROUGHPUT_UNITS,MEAN_LATENCY,P99_LATENCY,CONFIDENCE_ITERATION,THROUGHPUT_CONFID,ELAPSED_TIME";

fn is_stream(values: &Values) -> bool {
    values.word("test") == "tcp_stream"
}

fn script(values: &Values, site: &Site) -> Result<Script, Unfit> {
    let Site { host, port, .. } = site;
    let seconds = values.count("seconds");
    let (most, least) = ITERATIONS;
    let (search, runs) = match values.is_on("confidence") {
        true => (format!("-i {most},{least} -I 95,5"), most),
        false => (String::new(), 1),
    };
    let sizes = match is_stream(values) {
        true => format!("-m {}", values.size("message").0),
        false => format!("-r {},{}", values.size("request").0, values.size("response").0),
    };
    let test = values.word("test").to_uppercase();
    let run = words(&format!("netperf -H {host} -p {port} -t {test} -l {seconds} -j {search} -- {sizes} -k {KEYS}"));
    let server = Server { command: words(&format!("netserver -D -4 -p {port}")), port: *port };
    Ok(Script { server: Some(server), run, expected: Some(Duration::from_secs(seconds * runs)), ..Script::default() })
}

fn read(values: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    let text = Text::of("netperf", outputs.run.stdout);
    let errors = Text::of("netperf", outputs.run.stderr);
    for text in [text, errors] {
        let refused = text.lines().find(|line| line.text.starts_with("establish control"));
        if let Some(line) = refused {
            return Err(line.failure(Some("is netserver running there, and the port open?")));
        }
    }
    if let Some(line) = text.first("MIGRATED ") {
        let asked = if is_stream(values) { "TCP STREAM TEST" } else { "TCP REQUEST/RESPONSE TEST" };
        if !line.rest.starts_with(asked) {
            return Err(line.not_as_asked(asked));
        }
    }
    let metrics = if text.first("THROUGHPUT=").is_some() { keyed(values, text)? } else { tabled(values, text)? };
    let caveats = confidence(values, text);
    Ok(Finding { metrics, caveats, ..Finding::default() })
}

fn throughput(values: &Values, value: f64) -> Metric {
    match is_stream(values) {
        true => metric("mbit_per_second", value, "Mbit/s", Better::Higher),
        false => metric("transactions_per_second", value, "trans/s", Better::Higher),
    }
}

fn keyed(values: &Values, text: Text<'_>) -> Result<Vec<Metric>, Unreadable> {
    let unit = text.only("THROUGHPUT_UNITS=")?;
    let asked = if is_stream(values) { "10^6bits/s" } else { "Trans/s" };
    if unit.rest != asked {
        return Err(unit.not_as_asked(asked));
    }
    let mut metrics = vec![throughput(values, text.number("THROUGHPUT=", "")?)];
    // Of single sends in a stream, of whole transactions in TCP_RR; in microseconds, and -1 where not measured.
    if !is_stream(values) {
        for (key, name) in [("MEAN_LATENCY=", "latency_avg_us"), ("P99_LATENCY=", "latency_p99_us")] {
            let value = text.first(key).and_then(|line| number(line.rest)).filter(|value| *value > 0.0);
            metrics.extend(value.map(|value| metric(name, value, "us", Better::Lower)));
        }
    }
    text.only("ELAPSED_TIME=")?.positive(0, "")?;
    Ok(metrics)
}

/// The figure stands in the fifth column of a stream's only row, and in the sixth of the first of two rows of TCP_RR.
fn tabled(values: &Values, text: Text<'_>) -> Result<Vec<Metric>, Unreadable> {
    let (columns, index, rows) = if is_stream(values) { (5, 4, 1) } else { (6, 5, 2) };
    let is_row = |line: &super::text::Line<'_>| {
        !line.text.is_empty() && line.text.split_whitespace().all(|word| number(word).is_some())
    };
    let found: Vec<_> = text.lines().filter(is_row).collect();
    let row = found.first().filter(|row| row.text.split_whitespace().count() == columns);
    let row = row.ok_or_else(|| text.missing(&format!("{columns} figures")))?;
    match found.get(rows) {
        Some(more) => return Err(more.otherwise("the end of the table")),
        None if found.len() < rows => return Err(text.missing("the remote socket sizes")),
        None => {}
    }
    Ok(vec![throughput(values, row.positive(index, "")?)])
}

fn confidence(values: &Values, text: Text<'_>) -> Vec<String> {
    let warned = text.first("!!! Desired confidence was not achieved").is_some();
    let width = text
        .lines()
        .find_map(|line| line.text.strip_prefix("!!! Confidence intervals: Throughput")?.trim().strip_prefix(':'))
        .or_else(|| text.first("THROUGHPUT_CONFID=").map(|line| line.rest));
    let width = width.and_then(|width| number(width.trim().trim_end_matches('%')));
    let missed = warned || (values.is_on("confidence") && width.is_some_and(|width| width > 5.0));
    if !missed {
        return Vec::new();
    }
    let width = width.map_or("unknown".to_owned(), |width| format!("{width} %"));
    vec![format!("netperf did not reach the confidence asked for: the interval of its throughput is {width} wide")]
}
