//! From TOML to what was published, or to everything that is wrong with it.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Bound, Crossing, Fact, Published, Ratio, Selection, Source, Statement, Term, Test, Value, WalkReferences};
use crate::{
    factor::{FACTORS, Factor, Grammar, Level},
    plan::{
        KINDS,
        diagnostic::{Diagnostic, meant},
        read::{Entry, Reader, document, entries},
    },
};

/// What every statement has.
const COMMON: [&str; 5] = ["id", "says", "place", "remark", "judge"];

/// The tests, each with the keys of its own.
const TESTS: [(&str, &[&str]); 5] = [
    ("crossover", &["workload", "metric", "where", "along", "incumbent", "challenger", "names", "at", "within"]),
    ("value", &["workload", "metric", "where", "demands", "below", "above"]),
    ("ratio", &["workload", "metric", "where", "of", "over", "measures", "below", "above"]),
    ("fact", &["workload", "evidence", "is"]),
    ("walk-references", &["guest", "host", "published"]),
];

/// Reads a file, or tells what is wrong, in no particular order.
pub(super) fn published(text: &str) -> Result<Published, Vec<Diagnostic>> {
    let document = document(text)?;
    let document = document.get_ref();
    let mut reader = Reader { text, errors: Vec::new() };
    reader.refuse_unknown(document, &["source", "statement"], "what was published has", |_| None);
    let source = source(&mut reader, document);
    let statements = statements(&mut reader, document);
    match source {
        Some(source) if reader.errors.is_empty() => Ok(Published { source, statements }),
        _ => Err(reader.errors),
    }
}

fn source<'t>(reader: &mut Reader<'t>, document: &DeTable<'t>) -> Option<Source> {
    let Some((table, heading)) = reader.table(document, "source") else {
        reader.report("nobody is named as the source", 0..0, "add [source] with title, place and machine");
        return None;
    };
    reader.refuse_unknown(table, &["title", "place", "machine"], "[source] has", |_| None);
    let mut text = |key| required(reader, table, key, &heading);
    let (title, place, machine) = (text("title"), text("place"), text("machine"));
    Some(Source { title: title?, place: place?, machine: machine? })
}

fn statements<'t>(reader: &mut Reader<'t>, document: &DeTable<'t>) -> Vec<Statement> {
    let mut statements: Vec<Statement> = Vec::new();
    for (table, heading) in reader.tables(document, "statement") {
        let Some(statement) = statement(reader, table, &heading) else { continue };
        if statements.iter().any(|other| other.id == statement.id) {
            reader.report(format!("a second statement `{}`", statement.id), heading, "ids differ");
        } else {
            statements.push(statement);
        }
    }
    statements
}

fn statement<'t>(reader: &mut Reader<'t>, table: &DeTable<'t>, heading: &Range<usize>) -> Option<Statement> {
    let mut text = |key| required(reader, table, key, heading);
    let (id, says, place, judge) = (text("id"), text("says"), text("place"), text("judge"));
    let judge = judge?;
    let names = || TESTS.iter().map(|(name, _)| *name);
    let Some((_, own)) = TESTS.iter().find(|(name, _)| *name == judge) else {
        let span = reader.entry(table, "judge").map_or(heading.clone(), |entry| entry.value.span());
        let label = format!("tests are: {}{}", names().collect::<Vec<_>>().join(", "), meant(&judge, names()));
        reader.report(format!("no test named `{judge}`"), span, label);
        return None;
    };
    let known: Vec<&str> = COMMON.iter().chain(own.iter()).copied().collect();
    reader.refuse_unknown(table, &known, &format!("a statement judged by {judge} has"), |_| None);
    let remark = reader.string(table, "remark");
    let form = Form { table, heading: heading.clone() };
    let test = match judge.as_str() {
        "crossover" => Test::Crossover(form.crossing(reader)?),
        "value" => Test::Value(form.value(reader)?),
        "ratio" => Test::Ratio(form.ratio(reader)?),
        "fact" => Test::Fact(form.fact(reader)?),
        _ => Test::WalkReferences(form.references(reader)?),
    };
    Some(Statement { id: id?, says: says?, place: place?, remark, test })
}

fn required<'t>(reader: &mut Reader<'t>, table: &DeTable<'t>, key: &str, heading: &Range<usize>) -> Option<String> {
    if reader.entry(table, key).is_none() {
        reader.report(format!("`{key}` is missing here"), heading.clone(), format!("add {key} = \"…\""));
    }
    reader.string(table, key)
}

/// A statement with the keys of its test.
struct Form<'d, 't> {
    table: &'d DeTable<'t>,
    heading: Range<usize>,
}

impl<'d, 't> Form<'d, 't> {
    fn crossing(&self, reader: &mut Reader<'t>) -> Option<Crossing> {
        let (workload, metric) = (self.text(reader, "workload"), self.text(reader, "metric"));
        let along = self.along(reader);
        let shared = self.shared(reader);
        let curve = |reader: &mut Reader<'t>, key| {
            let entry = self.demand(reader, key)?;
            Some(shared.and(&selection(reader, entry)))
        };
        let (incumbent, challenger) = (curve(reader, "incumbent"), curve(reader, "challenger"));
        let (names, within) = (self.text(reader, "names"), self.number(reader, "within"));
        let at = self.demand(reader, "at");
        let along = along?;
        let at = reader.level(along.levels, along.name, at?.value)?;
        Some(Crossing {
            workload: workload?,
            metric: metric?,
            along,
            incumbent: incumbent?,
            challenger: challenger?,
            names: names?,
            at: at.size().map(|size| size.0).or(at.count())? as f64,
            within: within?,
        })
    }

    /// The factor whose levels are places: numbers, not words.
    fn along(&self, reader: &mut Reader<'t>) -> Option<&'static Factor> {
        let entry = self.demand(reader, "along")?;
        let name = entry.value.get_ref().as_str().unwrap_or("");
        let is_scale = |factor: &&Factor| matches!(factor.levels, Grammar::Size(_) | Grammar::Count(..));
        let factor = Factor::named(name).filter(|factor| is_scale(factor));
        if factor.is_none() {
            let names = || FACTORS.iter().filter(is_scale).map(|factor| factor.name);
            let label =
                format!("factors with a scale are: {}{}", names().collect::<Vec<_>>().join(", "), meant(name, names()));
            reader.report("no curve goes along this", entry.value.span(), label);
        }
        factor
    }

    fn value(&self, reader: &mut Reader<'t>) -> Option<Value> {
        let (workload, metric) = (self.text(reader, "workload"), self.text(reader, "metric"));
        let of = self.shared(reader);
        let mut demands = Vec::new();
        if let Some((table, _)) = reader.table(self.table, "demands") {
            for entry in entries(table) {
                demands.extend(reader.string(table, entry.key).map(|value| (entry.key.to_owned(), value)));
            }
        }
        let bound = self.bound(reader);
        Some(Value { workload: workload?, metric: metric?, of, demands, bound: bound? })
    }

    fn ratio(&self, reader: &mut Reader<'t>) -> Option<Ratio> {
        let (workload, measures) = (self.text(reader, "workload"), self.text(reader, "measures"));
        let (of, over) = (self.terms(reader, "of"), self.terms(reader, "over"));
        let bound = self.bound(reader);
        Some(Ratio { workload: workload?, measures: measures?, of, over, bound: bound? })
    }

    fn terms(&self, reader: &mut Reader<'t>, key: &str) -> Vec<Term> {
        let shared = self.shared(reader);
        let common = self.table.get("metric").and_then(|value| value.get_ref().as_str());
        let tables = reader.tables(self.table, key);
        if tables.is_empty() {
            reader.report(format!("`{key}` names no cells"), self.heading.clone(), format!("add {key} = [{{ … }}]"));
        }
        let mut terms = Vec::new();
        for (table, span) in tables {
            let metric = reader.string(table, "metric").or(common.map(str::to_owned));
            let Some(metric) = metric else {
                reader.report("no metric is named", span, "add metric = \"…\" here, or to the statement");
                continue;
            };
            terms.push(Term { metric, cells: shared.and(&levels(reader, table)) });
        }
        terms
    }

    fn fact(&self, reader: &mut Reader<'t>) -> Option<Fact> {
        let [workload, evidence, is] = ["workload", "evidence", "is"].map(|key| self.text(reader, key));
        Some(Fact { workload: workload?, evidence: evidence?, is: is? })
    }

    fn references(&self, reader: &mut Reader<'t>) -> Option<WalkReferences> {
        let [guest, host, published] =
            ["guest", "host", "published"].map(|key| self.number(reader, key).map(|number| number as u32));
        Some(WalkReferences { guest: guest?, host: host?, published: published? })
    }

    fn bound(&self, reader: &mut Reader<'t>) -> Option<Bound> {
        match (self.table.contains_key("below"), self.table.contains_key("above")) {
            (true, false) => self.number(reader, "below").map(Bound::Below),
            (false, true) => self.number(reader, "above").map(Bound::Above),
            (true, true) | (false, false) => {
                reader.report("this statement has no bound", self.heading.clone(), "either below = 1.0 or above = 1.0");
                None
            }
        }
    }

    /// The levels of `where`.
    fn shared(&self, reader: &mut Reader<'t>) -> Selection {
        let entry = reader.entry(self.table, "where");
        entry.map(|entry| selection(reader, entry)).unwrap_or_default()
    }

    fn text(&self, reader: &mut Reader<'t>, key: &str) -> Option<String> {
        required(reader, self.table, key, &self.heading)
    }

    fn demand(&self, reader: &mut Reader<'t>, key: &str) -> Option<Entry<'d, 't>> {
        let entry = reader.entry(self.table, key);
        if entry.is_none() {
            reader.report(format!("`{key}` is missing here"), self.heading.clone(), format!("add {key} = …"));
        }
        entry
    }

    /// A positive number.
    fn number(&self, reader: &mut Reader<'t>, key: &str) -> Option<f64> {
        let entry = self.demand(reader, key)?;
        let written = match entry.value.get_ref() {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            DeValue::String(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                ""
            }
        };
        let number = written.parse().ok().filter(|number: &f64| *number > 0.0 && number.is_finite());
        if number.is_none() {
            reader.report(format!("`{key}` is no positive number"), entry.value.span(), "such as 2 or 1.5");
        }
        number
    }
}

fn selection<'t>(reader: &mut Reader<'t>, entry: Entry<'_, 't>) -> Selection {
    match entry.value.get_ref() {
        DeValue::Table(table) => levels(reader, table),
        _ => {
            let message = format!("`{}` does not tell cells", entry.key);
            reader.report(message, entry.value.span(), "levels of factors: { host = \"2m\" }");
            Selection::default()
        }
    }
}

/// The levels of factors and parameters; `metric` is none.
fn levels<'t>(reader: &mut Reader<'t>, table: &DeTable<'t>) -> Selection {
    let mut selection = Selection::default();
    for entry in entries(table).into_iter().filter(|entry| entry.key != "metric") {
        let Some(grammar) = grammar(entry.key) else {
            let names: Vec<&str> = FACTORS.iter().map(|factor| factor.name).collect();
            let nearest = meant(entry.key, names.iter().copied());
            let label = format!("factors are: {}; parameters of workloads do as well{nearest}", names.join(", "));
            reader.report(format!("no factor or parameter named `{}`", entry.key), entry.span, label);
            continue;
        };
        let values: Vec<&Spanned<DeValue>> = match entry.value.get_ref() {
            DeValue::Array(array) => array.iter().collect(),
            _ => vec![entry.value],
        };
        let levels: Vec<Level> =
            values.into_iter().filter_map(|value| reader.level(grammar, entry.key, value)).collect();
        selection.0.push((entry.key.to_owned(), levels));
    }
    selection
}

/// How the levels of a factor, or the values of a parameter of some workload, are written.
fn grammar(name: &str) -> Option<Grammar> {
    let own = || KINDS.iter().flat_map(|kind| kind.own).find(|parameter| parameter.name == name);
    Factor::named(name).map(|factor| factor.levels).or_else(|| own().map(|parameter| parameter.values))
}
