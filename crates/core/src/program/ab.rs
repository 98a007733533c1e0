//! ab, ApacheBench: requests to the web server of the machine under test.
//!
//! Its rate counts failed requests too: one that failed, or was answered with anything but success, voids the run. That
//! a page has another length than the first one counts as failed.

use super::{Needs, Outputs, Program, Script, Site, Unfit, Unreadable, Values, metric, script::words, text::Text};
use crate::{
    experiment::{Better, Finding},
    factor::Grammar,
    plan::Parameter,
};

/// Its row.
pub static PROGRAM: Program = Program {
    name: "ab",
    about: "web pages served a second",
    needs: Needs { program: "ab", package: "apache2-utils", version: &["-V"], before_version: "Version " },
    parameters: &[
        Parameter { name: "requests", values: Grammar::Count(1, 1 << 31), default: "100000" },
        Parameter { name: "concurrency", values: Grammar::Count(1, 20_000), default: "100" },
        Parameter { name: "keep_alive", values: Grammar::Switch, default: "off" },
    ],
    script,
    read,
};

fn script(values: &Values, site: &Site) -> Result<Script, Unfit> {
    let (requests, concurrency) = (values.count("requests"), values.count("concurrency"));
    if concurrency > requests {
        return Err(Unfit(format!("{concurrency} requests at once of {requests} in all: more requests")));
    }
    let keep = if values.is_on("keep_alive") { "-k" } else { "" };
    let Site { host, port, .. } = site;
    let run = words(&format!("ab -q -n {requests} -c {concurrency} {keep} http://{host}:{port}/index.html"));
    // The web server is a service of the machine under test, which starts it by its own means.
    Ok(Script { run, open_files: concurrency + 64, ..Script::default() })
}

fn read(values: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    let text = Text::of("ab", outputs.run.stdout);
    if let Some(line) = Text::of("ab", outputs.run.stderr).first("apr_") {
        return Err(line.failure(Some("is the web server running there, and the port open?")));
    }
    for (label, name) in [("Concurrency Level:", "concurrency"), ("Complete requests:", "requests")] {
        let line = text.only(label)?;
        if line.rest != values.count(name).to_string() {
            return Err(line.not_as_asked(format!("{name} = {}", values.count(name))));
        }
    }
    let failed = text.only("Failed requests:")?;
    if failed.not_negative(0, "")? > 0.0 {
        return Err(failed.failure(Some("a page of one fixed length, and a server that can take so many at once")));
    }
    for label in ["Non-2xx responses:", "Write errors:"] {
        if let Some(line) = text.first(label)
            && line.not_negative(0, "")? > 0.0
        {
            return Err(line.failure(Some("the server must have /index.html")));
        }
    }
    let rate = text.only("Requests per second:")?;
    if rate.word(1) != Some("[#/sec]") {
        return Err(rate.otherwise("a rate in [#/sec]"));
    }
    let mut metrics = vec![metric("requests_per_second", rate.positive(0, "")?, "requests/s", Better::Higher)];
    let time = text.labelled("Time per request:").next().ok_or_else(|| text.missing("`Time per request:`"))?;
    metrics.push(metric("request_ms", time.positive(0, "")?, "ms", Better::Lower));
    text.only("100%")?;
    Ok(Finding { metrics, caveats: caveats(values, text), ..Finding::default() })
}

fn caveats(values: &Values, text: Text<'_>) -> Vec<String> {
    let mut caveats = Vec::new();
    let doubt = |line: &super::text::Line<'_>| line.text.starts_with("WARNING:") || line.text.starts_with("ERROR:");
    if text.lines().any(|line| doubt(&line)) {
        caveats.push("ab finds median and mean of its times too far apart: they are not reliable".to_owned());
    }
    if values.is_on("keep_alive") && text.first("Keep-Alive requests:").is_some_and(|line| line.rest == "0") {
        caveats.push("the server kept no connection alive: every request opened one".to_owned());
    }
    caveats
}
