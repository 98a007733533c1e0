//! `[[workload]]`: what is run, with which parameters.

use std::{ops::Range, sync::Arc};

use toml::de::{DeTable, DeValue};

use super::{Entry, Reader, entries, meant};
use crate::{
    plan::{KINDS, Kind, Parameter, Task, Value, Varied, Workload},
    program::PROGRAMS,
};

/// What a workload may run: exactly one of them.
const RUNS: [&str; 3] = ["probe", "program", "command"];

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
        let told: Vec<Entry> = entries(table).into_iter().filter(|entry| RUNS.contains(&entry.key)).collect();
        let Some(first) = told.first() else {
            let label = format!("add probe = \"…\", program = \"…\" or command = [\"…\"]; probes are: {}", probes());
            self.report("this workload runs nothing", heading, label);
            return None;
        };
        if let Some(second) = told.get(1) {
            let message = format!("this workload has a `{}` and a `{}`", first.key, second.key);
            self.report(message, second.span.clone(), "one of them; the other in a [[workload]] of its own");
            return None;
        }
        let (kind, command) = match first.key {
            "probe" => (self.probe(first)?, None),
            "program" => (self.program(first)?, None),
            _ => (Kind::of_command(), Some(self.command(table, first)?)),
        };
        let own: &[&str] = match kind.task {
            Task::Command => &["metric"],
            Task::Program(program) if program.runs_in_tree() => &["tree"],
            Task::Program(_) | Task::Os | Task::Probe(_) | Task::Touch | Task::Walk => &[],
            Task::Reserve | Task::Rights | Task::Bloat => &[],
        };
        let known = ["name", first.key].into_iter().chain(own.iter().copied());
        let known: Vec<&str> = known.chain(kind.parameters().map(|p| p.name)).collect();
        self.refuse_unknown(table, &known, &format!("`{}` has", kind.name), |_| None);
        let name = self.string(table, "name").unwrap_or_else(|| match &command {
            None => kind.name.to_owned(),
            Some(command) => command.command[0].rsplit('/').next().unwrap_or_default().to_owned(),
        });
        let span = self.entry(table, "name").map_or(first.value.span(), |entry| entry.value.span());
        if !is_word(&name) {
            self.report("this name cannot stand in a table", span.clone(), "one word, without `=`");
        }
        let parameters = kind.parameters().map(|p| (p.name, self.parameter(table, p, factors))).collect();
        Some((Workload { name, kind, parameters, command: command.map(Arc::new), tree: self.tree(table) }, span))
    }

    /// Where a program's sources lie: it is run elsewhere, so from the root.
    fn tree(&mut self, table: &DeTable<'t>) -> Option<String> {
        let tree = self.string(table, "tree")?;
        if !tree.starts_with('/') {
            let span = self.entry(table, "tree")?.value.span();
            self.report(format!("`tree` cannot be `{tree}`"), span, "an absolute path, such as \"/usr/src/linux\"");
        }
        Some(tree)
    }

    fn probe(&mut self, probe: &Entry<'_, 't>) -> Option<&'static Kind> {
        let written = probe.value.get_ref().as_str().unwrap_or("");
        let kind = Kind::named(written);
        if kind.is_none() {
            let label = match Kind::of_program(written) {
                Some(_) => format!("it is a program: program = \"{written}\""),
                None => format!("probes are: {}{}", probes(), meant(written, KINDS.iter().map(|kind| kind.name))),
            };
            self.report(format!("no probe named {}", self.quoted(probe)), probe.value.span(), label);
        }
        kind
    }

    fn program(&mut self, program: &Entry<'_, 't>) -> Option<&'static Kind> {
        let written = program.value.get_ref().as_str().unwrap_or("");
        let kind = Kind::of_program(written);
        if kind.is_none() {
            let names: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
            let label = match Kind::named(written) {
                Some(_) => format!("it is a probe: probe = \"{written}\""),
                None => {
                    let nearest = meant(written, names.iter().copied());
                    format!("programs are: {}{nearest}; any other is a command = [\"…\"]", names.join(", "))
                }
            };
            self.report(format!("no program named {}", self.quoted(program)), program.value.span(), label);
        }
        kind
    }

    /// A value as it is written, with the quotation marks of our texts.
    fn quoted(&self, entry: &Entry<'_, 't>) -> String {
        self.source(entry.value.span()).replace('"', "`")
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

/// One word, as names of cells are put together from words.
pub(super) fn is_word(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '=')
}

fn probes() -> String {
    KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}
