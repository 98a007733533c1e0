//! `[[workload]]`: what is run, with which parameters.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::{Entry, Reader, entries, meant};
use crate::plan::{KINDS, Kind, Parameter, Value, Varied, Workload};

impl<'t> Reader<'t> {
    /// The workloads, and where their names stand.
    pub(super) fn workloads(
        &mut self,
        document: &DeTable<'t>,
        factors: &[Varied],
    ) -> (Vec<Workload>, Vec<Range<usize>>) {
        if self.entry(document, "workload").is_none() {
            let end = self.text.trim_end().len();
            self.report("this plan runs nothing", end..end, "add [[workload]] with a probe, such as probe = \"chase\"");
        }
        let mut workloads: Vec<(Workload, Range<usize>)> = Vec::new();
        for (table, heading) in self.tables(document, "workload") {
            let Some((workload, span)) = self.workload(table, heading, factors) else { continue };
            if workloads.iter().any(|(other, _)| other.name == workload.name) {
                let message = format!("a second workload named `{}`", workload.name);
                self.report(message, span, "give it a name of its own: name = \"…\"");
            } else {
                workloads.push((workload, span));
            }
        }
        workloads.into_iter().unzip()
    }

    fn workload(
        &mut self,
        table: &DeTable<'t>,
        heading: Range<usize>,
        factors: &[Varied],
    ) -> Option<(Workload, Range<usize>)> {
        let Some(probe) = self.entry(table, "probe") else {
            self.report("this workload has no probe", heading, format!("probes are: {}", kinds()));
            return None;
        };
        let kind = self.kind(&probe)?;
        let known: Vec<&str> = ["name", "probe"].into_iter().chain(kind.parameters().map(|p| p.name)).collect();
        self.refuse_unknown(table, &known, &format!("`{}` has", kind.name), |_| None);
        let name = self.string(table, "name").unwrap_or_else(|| kind.name.to_owned());
        let span = self.entry(table, "name").map_or(probe.value.span(), |entry| entry.value.span());
        let is_word = |name: &str| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '=');
        if !is_word(&name) {
            self.report("this name cannot stand in a table", span.clone(), "one word, without `=`");
        }
        let parameters = kind.parameters().map(|p| (p.name, self.parameter(table, p, factors))).collect();
        Some((Workload { name, kind, parameters }, span))
    }

    fn kind(&mut self, probe: &Entry<'_, 't>) -> Option<&'static Kind> {
        let written = probe.value.get_ref().as_str().unwrap_or("");
        let kind = Kind::named(written);
        if kind.is_none() {
            let message = format!("no probe named {}", self.source(probe.value.span()).replace('"', "`"));
            let nearest = meant(written, KINDS.iter().map(|kind| kind.name));
            self.report(message, probe.value.span(), format!("probes are: {}{nearest}", kinds()));
        }
        kind
    }

    /// What a parameter is set to; its default where that is reported to be wrong.
    fn parameter(&mut self, table: &DeTable<'t>, parameter: Parameter, factors: &[Varied]) -> Value {
        let by_name = factors.iter().find(|varied| varied.factor.name == parameter.name);
        let Some(entry) = entries(table).into_iter().find(|entry| entry.key == parameter.name) else {
            return by_name.map_or(Value::Literal(parameter.default_value()), |varied| Value::Factor(varied.factor));
        };
        let value = match entry.value.get_ref() {
            DeValue::String(text) if text.starts_with('$') => self.reference(&text[1..], &entry, parameter, factors),
            _ => self.level(parameter.values, parameter.name, entry.value).map(Value::Literal),
        };
        value.unwrap_or(Value::Literal(parameter.default_value()))
    }

    fn reference(
        &mut self,
        name: &str,
        entry: &Entry<'_, 't>,
        parameter: Parameter,
        factors: &[Varied],
    ) -> Option<Value> {
        let varied = self.factor_in(factors, name, entry.value.span())?;
        match varied.levels.iter().find(|level| !parameter.values.admits(**level)) {
            None => Some(Value::Factor(varied.factor)),
            Some(level) => {
                let message = format!("`{}` cannot be {level}, a level of `{name}`", parameter.name);
                self.report(message, entry.value.span(), parameter.values.accepted());
                None
            }
        }
    }
}

fn kinds() -> String {
    KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}
