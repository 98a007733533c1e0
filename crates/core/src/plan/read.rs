//! From TOML to a plan, or to everything that is wrong with it.
//!
//! Each section reads what it can and reports the rest, so that one run of vmtax shows all mistakes that do not follow
//! from another. The parser's spans lead every report to its line. [`Reader`] reads what a study published as well
//! ([`crate::published`]).

mod command;
mod factors;
mod partial;
mod replication;
mod workloads;

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Plan, check,
    diagnostic::{Diagnostic, meant},
};
use crate::factor::{Grammar, Level};

/// Where the parts of a plan stand, for what can be said about them only together.
#[derive(Debug, Default)]
pub(super) struct Spans {
    /// The names of the factors, in the order of the plan's.
    pub factors: Vec<Range<usize>>,
    /// What tells the workloads, in the order of the plan's.
    pub workloads: Vec<Range<usize>>,
    /// The headings of the exclusions, in the order of the plan's.
    pub exclusions: Vec<Range<usize>>,
    /// The heading of the baseline.
    pub baseline: Range<usize>,
}

const SECTIONS: [&str; 6] = ["title", "factors", "workload", "exclude", "baseline", "replication"];

/// Reads a plan, or tells what is wrong, in no particular order.
pub(super) fn plan(text: &str) -> Result<Plan, Vec<Diagnostic>> {
    let document = document(text)?;
    let mut reader = Reader { text, errors: Vec::new() };
    let document = document.get_ref();
    reader.refuse_unknown(document, &SECTIONS, "a plan has", |key| match key {
        "seed" | "blocks" | "target" | "budget" => Some("it belongs under [replication]"),
        _ => None,
    });
    let title = reader.string(document, "title").unwrap_or_default();
    let (factors, factor_spans) = reader.factors(document);
    let (workloads, workload_spans) = reader.workloads(document, &factors);
    let (exclusions, exclusion_spans) = reader.exclusions(document, &factors, &workloads);
    let (baseline, baseline_span) = reader.baseline(document, &factors);
    let (replication, seed, retries) = reader.replication(document);
    let plan = Plan { title, factors, workloads, exclusions, baseline, replication, seed, retries };
    let spans = Spans {
        factors: factor_spans,
        workloads: workload_spans,
        exclusions: exclusion_spans,
        baseline: baseline_span,
    };
    if reader.errors.is_empty() {
        reader.errors = check::plan(&plan, &spans);
    }
    if reader.errors.is_empty() { Ok(plan) } else { Err(reader.errors) }
}

/// The text as TOML.
pub(crate) fn document(text: &str) -> Result<Spanned<DeTable<'_>>, Vec<Diagnostic>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    // The parser goes on after a mistake, but what it then reports mostly follows from it.
    match errors.first() {
        None => Ok(document),
        Some(first) => Err(vec![syntax(text, first)]),
    }
}

fn syntax(text: &str, error: &toml::de::Error) -> Diagnostic {
    Diagnostic::new("this is not TOML", error.span().unwrap_or(text.len()..text.len()), error.message())
}

/// What has been found wrong so far.
pub(crate) struct Reader<'t> {
    pub text: &'t str,
    pub errors: Vec<Diagnostic>,
}

/// A key with its value.
pub(crate) struct Entry<'d, 't> {
    /// The key.
    pub key: &'d str,
    /// Where the key stands.
    pub span: Range<usize>,
    /// The value, with its place.
    pub value: &'d Spanned<DeValue<'t>>,
}

/// The entries of a table in the order of the text.
pub(crate) fn entries<'d, 't>(table: &'d DeTable<'t>) -> Vec<Entry<'d, 't>> {
    let mut entries: Vec<Entry> =
        table.iter().map(|(key, value)| Entry { key: key.get_ref(), span: key.span(), value }).collect();
    entries.sort_by_key(|entry| entry.span.start);
    entries
}

impl<'t> Reader<'t> {
    pub fn report(&mut self, message: impl Into<String>, span: Range<usize>, label: impl Into<String>) {
        self.errors.push(Diagnostic::new(message, span, label));
    }

    /// What is written there.
    pub fn source(&self, span: Range<usize>) -> &'t str {
        &self.text[span]
    }

    /// The entry of this key.
    pub fn entry<'d>(&self, table: &'d DeTable<'t>, key: &str) -> Option<Entry<'d, 't>> {
        entries(table).into_iter().find(|entry| entry.key == key)
    }

    /// Reports every key that is none of `known`; `hint` has better advice for some.
    pub fn refuse_unknown(
        &mut self,
        table: &DeTable,
        known: &[&str],
        owner: &str,
        hint: impl Fn(&str) -> Option<&'static str>,
    ) {
        for Entry { key, span, .. } in entries(table) {
            if !known.contains(&key) {
                let advice = hint(key).map_or_else(
                    || format!("{owner}: {}{}", known.join(", "), meant(key, known.iter().copied())),
                    str::to_owned,
                );
                self.report(format!("no key named `{key}` here"), span, advice);
            }
        }
    }

    /// The table of this key; none where there is none, or something else.
    pub fn table<'d>(&mut self, table: &'d DeTable<'t>, key: &str) -> Option<(&'d DeTable<'t>, Range<usize>)> {
        let entry = self.entry(table, key)?;
        match entry.value.get_ref() {
            DeValue::Table(inner) => Some((inner, entry.span)),
            _ => {
                self.report(format!("`{key}` is not a table"), entry.span, format!("write it as [{key}]"));
                None
            }
        }
    }

    /// The tables of this key, each with the span of its heading; empty where there are none.
    pub fn tables<'d>(&mut self, table: &'d DeTable<'t>, key: &str) -> Vec<(&'d DeTable<'t>, Range<usize>)> {
        let Some(entry) = self.entry(table, key) else { return Vec::new() };
        let tables: Option<Vec<_>> = match entry.value.get_ref() {
            DeValue::Array(array) => array
                .iter()
                .map(|element| match element.get_ref() {
                    DeValue::Table(inner) => Some((inner, element.span())),
                    _ => None,
                })
                .collect(),
            _ => None,
        };
        tables.unwrap_or_else(|| {
            self.report(format!("`{key}` is not a list of tables"), entry.span, format!("write it as [[{key}]]"));
            Vec::new()
        })
    }

    /// The string of this key.
    pub fn string(&mut self, table: &DeTable<'t>, key: &str) -> Option<String> {
        let entry = self.entry(table, key)?;
        let text = entry.value.get_ref().as_str();
        if text.is_none() {
            self.report(format!("`{key}` is not a text"), entry.value.span(), "write it in quotation marks");
        }
        text.map(str::to_owned)
    }

    /// The level that `value` writes; `owner` is what it would be a level of.
    pub fn level(&mut self, grammar: Grammar, owner: &str, value: &Spanned<DeValue>) -> Option<Level> {
        let written = spelled(value.get_ref(), grammar);
        match written.as_deref().map_or_else(|| grammar.parse(""), |text| grammar.parse(text)) {
            Ok(level) => Some(level),
            Err(error) => {
                let nearest = meant(written.as_deref().unwrap_or(""), error.names.iter().copied());
                let message = format!("`{owner}` cannot be {}", self.source(value.span()));
                self.report(message, value.span(), format!("{}{nearest}", error.accepted));
                None
            }
        }
    }
}

/// A scalar as its level would be spelled: `"2m"`, `64` and, for a switch, `true`.
fn spelled(value: &DeValue, grammar: Grammar) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            u64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        DeValue::Boolean(on) if grammar == Grammar::Switch => Some(if *on { "on" } else { "off" }.to_owned()),
        DeValue::Boolean(_) | DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}
