//! The user's own program: which numbers of its output count is told by the plan.

use regex_lite::Regex;

use super::{
    Outputs, Unfit, Unreadable,
    iperf3::{json, positive_at},
    metric,
    text::{number, shown},
};
use crate::experiment::{Better, Finding};

/// A command with the metrics it prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments; no shell is involved.
    pub command: Vec<String>,
    /// At least one, names differ.
    pub metrics: Vec<Measure>,
}

/// A number in the output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// Its name in results.
    pub name: String,
    /// Where it stands.
    pub place: Place,
    /// Its unit.
    pub unit: String,
    /// Which way it improves.
    pub better: Better,
}

/// Where a number stands in an output.
#[derive(Debug, Clone)]
pub enum Place {
    /// In the first group of this expression, which fits in one place of the output.
    Pattern(Regex),
    /// At this path (RFC 6901, such as `/end/rate` or `/runs/0/time`) of the output, one JSON document.
    Path(String),
}

/// Expressions are the same when they are written alike.
impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Pattern(one), Place::Pattern(other)) => one.as_str() == other.as_str(),
            (Place::Path(one), Place::Path(other)) => one == other,
            (Place::Pattern(_), Place::Path(_)) | (Place::Path(_), Place::Pattern(_)) => false,
        }
    }
}

impl Eq for Place {}

impl Place {
    /// A regular expression with one group.
    pub fn pattern(text: &str) -> Result<Place, Unfit> {
        let pattern = Regex::new(text).map_err(|error| Unfit(format!("`{text}` is no regular expression: {error}")))?;
        match pattern.captures_len() {
            2 => Ok(Place::Pattern(pattern)),
            groups => {
                let groups = groups - 1;
                Err(Unfit(format!("`{text}` has {groups} groups, and needs one, around the number: `rate: ([0-9.]+)`")))
            }
        }
    }

    /// A path into JSON.
    pub fn path(text: &str) -> Result<Place, Unfit> {
        match text.starts_with('/') {
            true => Ok(Place::Path(text.to_owned())),
            false => Err(Unfit(format!("`{text}` is no path; write it as in `/end/rate` or `/runs/0/time`"))),
        }
    }
}

impl Command {
    /// A command that can be run and read.
    pub fn new(command: Vec<String>, metrics: Vec<Measure>) -> Result<Command, Unfit> {
        if command.first().is_none_or(String::is_empty) {
            return Err(Unfit("a command needs a program: command = [\"redis-benchmark\", \"-q\"]".to_owned()));
        }
        if metrics.is_empty() {
            return Err(Unfit("a command needs a metric, or nothing is measured".to_owned()));
        }
        let twice =
            metrics.iter().enumerate().find(|(at, metric)| metrics[..*at].iter().any(|m| m.name == metric.name));
        match twice {
            Some((_, metric)) => Err(Unfit(format!("two metrics named `{}`", metric.name))),
            None => Ok(Command { command, metrics }),
        }
    }

    /// The metrics in what it printed to its standard output.
    pub fn read(&self, outputs: &Outputs) -> Result<Finding, Unreadable> {
        let text = outputs.run.stdout;
        let mut metrics = Vec::new();
        for Measure { name, place, unit, better } in &self.metrics {
            let value = match place {
                Place::Pattern(pattern) => matched(pattern, text)?,
                Place::Path(path) => positive_at(PROGRAM, &json(PROGRAM, text)?, path)?,
            };
            metrics.push(metric(name, value, unit, *better));
        }
        Ok(Finding { metrics, ..Finding::default() })
    }
}

const PROGRAM: &str = "command";

fn matched(pattern: &Regex, text: &str) -> Result<f64, Unreadable> {
    let mut found = pattern.captures_iter(text).filter_map(|captures| captures.get(1));
    let place = found.next().ok_or_else(|| Unreadable::Missing {
        program: PROGRAM,
        expected: format!("`{pattern}`"),
        last: shown(text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("")),
    })?;
    let line_of = |at: usize| {
        let before = &text[..at];
        let begin = before.rfind('\n').map_or(0, |end| end + 1);
        (before.matches('\n').count() + 1, shown(text[begin..].lines().next().unwrap_or("")))
    };
    let expected = format!("`{pattern}`");
    if let Some(second) = found.next() {
        let (number, line) = line_of(second.start());
        return Err(Unreadable::Twice { program: PROGRAM, expected, number, line });
    }
    number(place.as_str()).filter(|value| *value > 0.0).ok_or_else(|| {
        let (number, line) = line_of(place.start());
        Unreadable::Line { program: PROGRAM, expected: format!("a number above 0 for {expected}"), number, line }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(place: Place) -> Command {
        let measure = Measure { name: "rate".into(), place, unit: "ops/s".into(), better: Better::Higher };
        Command::new(vec!["bench".into()], vec![measure]).unwrap()
    }

    #[track_caller]
    fn check(place: Place, text: &str, expected: Result<f64, &str>) {
        let got = command(place).read(&Outputs::printed(text)).map(|finding| finding.metrics[0].value);
        assert_eq!(got.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn a_number_is_found_by_an_expression() {
        let rate = || Place::pattern(r"(?m)^rate:\s+(\S+)").unwrap();
        check(rate(), "head\nrate:  41.5 ops\n", Ok(41.5));
        check(
            rate(),
            "head\nspeed: 3\n",
            Err("command: no complete line with `(?m)^rate:\\s+(\\S+)`; the output ends with `speed: 3`"),
        );
        check(
            rate(),
            "head\nrate: fast\n",
            Err("command: expected a number above 0 for `(?m)^rate:\\s+(\\S+)` in line 2, found `rate: fast`"),
        );
        check(
            rate(),
            "rate: 1\nrate: 2\n",
            Err(
                "command: a second `(?m)^rate:\\s+(\\S+)` in line 2, `rate: 2`: this is the output of more than one run",
            ),
        );
    }

    #[test]
    fn a_number_is_found_by_a_path() {
        let rate = || Place::path("/runs/1/rate").unwrap();
        check(rate(), r#"{"runs": [{"rate": 1}, {"rate": 2.5}]}"#, Ok(2.5));
        check(rate(), r#"{"runs": []}"#, Err("command: its JSON has no `/runs/1/rate`"));
        check(rate(), r#"{"runs": [1, {"rate": 0}]}"#, Err("command: `/runs/1/rate` is no number above 0 but `0`"));
        check(
            rate(),
            "oops",
            Err("command: expected JSON (expected value at line 1 column 1) in line 1, found `oops`"),
        );
    }

    #[test]
    fn a_wrong_command_is_answered_with_what_to_write() {
        let refusal = |result: Result<Place, Unfit>| result.unwrap_err().to_string();
        assert_eq!(
            refusal(Place::pattern("rate: .*")),
            "`rate: .*` has 0 groups, and needs one, around the number: `rate: ([0-9.]+)`"
        );
        assert!(refusal(Place::pattern("(")).starts_with("`(` is no regular expression: "));
        assert_eq!(
            refusal(Place::path("end.rate")),
            "`end.rate` is no path; write it as in `/end/rate` or `/runs/0/time`"
        );
        let none = Command::new(vec!["bench".into()], vec![]).unwrap_err();
        assert_eq!(none.to_string(), "a command needs a metric, or nothing is measured");
    }
}
