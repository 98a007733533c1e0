//! `command = […]` of a workload, with the metrics that are read from what it prints.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::{Entry, Reader, meant, workloads::is_word};
use crate::{
    experiment::Better,
    program::{
        Unfit,
        command::{Command, Measure, Place},
    },
};

const EXAMPLE: &str = r#"metric = [{ name = "rate", unit = "ops/s", better = "higher", regex = 'rate: ([0-9.]+)' }]"#;
const KEYS: [&str; 5] = ["name", "unit", "better", "regex", "json"];
const DIRECTIONS: [(&str, Better); 2] = [("lower", Better::Lower), ("higher", Better::Higher)];

impl<'t> Reader<'t> {
    /// The command of a workload; none where that is reported to be wrong.
    pub(super) fn command(&mut self, table: &DeTable<'t>, command: &Entry<'_, 't>) -> Option<Command> {
        let words = self.words(command);
        let Some(metric) = self.entry(table, "metric") else {
            self.report("this command has no metric", command.span.clone(), format!("add {EXAMPLE}"));
            return None;
        };
        let before = self.errors.len();
        let tables = self.tables(table, "metric");
        let metrics: Vec<Option<Measure>> = tables.into_iter().map(|(inner, at)| self.measure(inner, at)).collect();
        let metrics: Vec<Measure> = metrics.into_iter().collect::<Option<_>>()?;
        if self.errors.len() > before {
            return None;
        }
        self.fits(Command::new(words?, metrics), metric.span)
    }

    fn words(&mut self, command: &Entry<'_, 't>) -> Option<Vec<String>> {
        let words: Option<Vec<String>> = match command.value.get_ref() {
            DeValue::Array(array) => array.iter().map(|word| Some(word.get_ref().as_str()?.to_owned())).collect(),
            _ => None,
        };
        let words = words.filter(|words| words.first().is_some_and(|program| !program.is_empty()));
        if words.is_none() {
            let label = "the program and its arguments, each in quotation marks: [\"redis-benchmark\", \"-q\"]; no \
                         shell is involved";
            self.report("`command` is not a list of words", command.value.span(), label);
        }
        words
    }

    fn measure(&mut self, table: &DeTable<'t>, at: Range<usize>) -> Option<Measure> {
        self.refuse_unknown(table, &KEYS, "a metric has", |_| None);
        let name = self.demanded(table, "name", &at, "name = \"rate\"")?;
        if !is_word(&name) {
            let span = self.entry(table, "name")?.value.span();
            self.report("this name cannot stand in a table", span, "one word, without `=`");
        }
        let unit = self.demanded(table, "unit", &at, "unit = \"ops/s\"");
        let better = self.better(table, &at);
        let place = match (self.entry(table, "regex"), self.entry(table, "json")) {
            (Some(entry), None) => {
                let text = self.string(table, "regex")?;
                self.fits(Place::pattern(&text), entry.value.span())
            }
            (None, Some(entry)) => {
                let text = self.string(table, "json")?;
                self.fits(Place::path(&text), entry.value.span())
            }
            (None, None) => {
                let label = "add regex = 'rate: ([0-9.]+)', or json = \"/end/rate\"";
                self.report(format!("nothing says where `{name}` is printed"), at, label);
                None
            }
            (Some(_), Some(json)) => {
                let label = "one of them: a command prints text or one JSON document";
                self.report(format!("`{name}` has a `regex` and a `json`"), json.span, label);
                None
            }
        };
        Some(Measure { name, place: place?, unit: unit?, better: better? })
    }

    fn better(&mut self, table: &DeTable<'t>, at: &Range<usize>) -> Option<Better> {
        let written = self.demanded(table, "better", at, "better = \"lower\" or \"higher\"")?;
        let known = DIRECTIONS.into_iter().find(|(word, _)| *word == written);
        if known.is_none() {
            let span = self.entry(table, "better")?.value.span();
            let nearest = meant(&written, DIRECTIONS.map(|(word, _)| word));
            self.report(format!("`better` cannot be `{written}`"), span, format!("lower or higher{nearest}"));
        }
        known.map(|(_, better)| better)
    }

    /// The string of a key that a metric must have.
    fn demanded(&mut self, table: &DeTable<'t>, key: &str, at: &Range<usize>, example: &str) -> Option<String> {
        if self.entry(table, key).is_none() {
            self.report(format!("this metric has no `{key}`"), at.clone(), format!("add {example}"));
        }
        self.string(table, key)
    }

    fn fits<T>(&mut self, result: Result<T, Unfit>, at: Range<usize>) -> Option<T> {
        result.map_err(|unfit| self.report(unfit.to_string(), at, EXAMPLE)).ok()
    }
}
