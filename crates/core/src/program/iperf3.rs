//! iperf3: a TCP stream to the machine under test or back, read from its JSON. A free stand-in for netperf's TCP_STREAM,
//! and never mixed with it in a comparison.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use super::{
    Needs, Outputs, Program, Script, Server, Site, Unfit, Unreadable, Values, metric, script::words, text::shown,
};
use crate::{
    experiment::{Better, Finding},
    factor::Grammar,
    plan::Parameter,
};

/// Its row.
pub static PROGRAM: Program = Program {
    name: "iperf3",
    about: "TCP streams to the machine under test, or back",
    needs: Needs { program: "iperf3", package: "iperf3", version: &["--version"], before_version: "iperf " },
    parameters: &[
        Parameter { name: "seconds", values: Grammar::Count(1, 86_400), default: "10" },
        Parameter { name: "streams", values: Grammar::Count(1, 128), default: "1" },
        Parameter { name: "reverse", values: Grammar::Switch, default: "off" },
    ],
    script,
    read,
};

fn script(values: &Values, site: &Site) -> Result<Script, Unfit> {
    let Site { host, port, .. } = site;
    let (seconds, streams) = (values.count("seconds"), values.count("streams"));
    let reverse = if values.is_on("reverse") { "-R" } else { "" };
    Ok(Script {
        server: Some(Server { command: words(&format!("iperf3 -s -4 -p {port}")), port: *port }),
        run: words(&format!("iperf3 -c {host} -4 -p {port} -t {seconds} -P {streams} {reverse} -J")),
        expected: Some(Duration::from_secs(seconds)),
        ..Script::default()
    })
}

fn read(values: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    let document = json("iperf3", outputs.run.stdout)?;
    if let Some(error) = document.get("error") {
        let line = shown(error.as_str().unwrap_or("an error without words"));
        let help = Some("is iperf3 -s running there, and the port open?");
        return Err(Unreadable::Failed { program: "iperf3", line, help });
    }
    let start = "/start/test_start";
    asked(&document, &format!("{start}/protocol"), "TCP")?;
    asked(&document, &format!("{start}/num_streams"), values.count("streams"))?;
    asked(&document, &format!("{start}/duration"), values.count("seconds"))?;
    asked(&document, &format!("{start}/reverse"), u64::from(values.is_on("reverse")))?;
    let rate = positive(&document, "/end/sum_received/bits_per_second")?;
    // What was sent may still lie in a buffer when the clock stops; what was received has arrived.
    let metrics = vec![metric("mbit_per_second", rate / 1e6, "Mbit/s", Better::Higher)];
    let facts = [
        ("iperf3.version", "/start/version"),
        ("iperf3.retransmits", "/end/sum_sent/retransmits"),
        ("iperf3.congestion", "/end/sender_tcp_congestion"),
    ];
    let fact = |(name, path): (&str, &str)| {
        let value = document.pointer(path)?;
        Some((name.to_owned(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
    };
    let evidence: BTreeMap<String, String> = facts.into_iter().filter_map(fact).collect();
    Ok(Finding { metrics, evidence, caveats: Vec::new() })
}

/// A whole JSON document.
pub(super) fn json(program: &'static str, text: &str) -> Result<Value, Unreadable> {
    serde_json::from_str(text).map_err(|error| Unreadable::Line {
        program,
        expected: format!("JSON ({error})"),
        number: error.line(),
        line: shown(text.lines().nth(error.line().saturating_sub(1)).unwrap_or("")),
    })
}

/// The number above 0 at a path (RFC 6901).
pub(super) fn positive_at(program: &'static str, document: &Value, path: &str) -> Result<f64, Unreadable> {
    let found = document.pointer(path);
    let number = found.and_then(Value::as_f64).filter(|number| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| Unreadable::Contradiction {
        program,
        contradiction: match found {
            Some(value) => format!("`{path}` is no number above 0 but `{}`", shown(&value.to_string())),
            None => format!("its JSON has no `{path}`"),
        },
    })
}

fn positive(document: &Value, path: &str) -> Result<f64, Unreadable> {
    positive_at("iperf3", document, path)
}

fn asked(document: &Value, path: &str, asked: impl Into<Value>) -> Result<(), Unreadable> {
    let asked = asked.into();
    match document.pointer(path) {
        Some(said) if *said == asked => Ok(()),
        said => Err(Unreadable::Otherwise {
            program: "iperf3",
            asked: format!("{path} = {asked}"),
            line: said.map_or("nothing".to_owned(), |said| shown(&said.to_string())),
        }),
    }
}
