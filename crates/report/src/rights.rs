//! Which ways lead to huge pages: a table of facts, and what would open the others.

use serde::Serialize;
use vmtax_core::{
    experiment::Record,
    plan::Task,
    published::Judged,
    rights::{Answer, GRANTED, PAGES, PERSONS, WAYS, answers},
};

use crate::{
    export::SCHEMA,
    listing::{Align, table},
    row::{self, workloads},
    wrap::item,
};

const HEAD: [(&str, Align); 4] =
    [("way", Align::Left), ("page", Align::Left), ("present user", Align::Left), ("ordinary user", Align::Left)];

/// The answers of every workload of this kind.
pub(crate) fn body(record: &Record) -> String {
    let of = |workload: &str| {
        let answers = answers(record, workload);
        match answers.is_empty() {
            true => String::new(),
            false => facts(&answers) + &ways_out(&answers),
        }
    };
    workloads(record, Task::Rights).into_iter().map(of).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn facts(answers: &[Answer]) -> String {
    let said = |person, way, page| {
        let answer = answers.iter().find(|a| (a.person, a.way, a.page) == (person, way, page));
        // The reason stands below, with what would help.
        answer.map_or(String::new(), |a| if a.is_tested() { a.said.clone() } else { "not tested".to_owned() })
    };
    let row = |page, way: &'static str| {
        let mut row = vec![way.to_owned(), format!("{page}")];
        row.extend(PERSONS.map(|person| said(person, way, page)));
        row
    };
    let rows: Vec<Vec<String>> = PAGES.into_iter().flat_map(|page| WAYS.map(|way| row(page, way))).collect();
    table(&HEAD, &rows)
}

/// What would open the ways that are shut, each remedy once.
fn ways_out(answers: &[Answer]) -> String {
    let mut text = String::new();
    let mut told: Vec<&str> = Vec::new();
    for answer in answers {
        let Some(remedy) = answer.remedy.as_deref().filter(|remedy| !told.contains(remedy)) else { continue };
        let Answer { person, way, page, said, .. } = answer;
        text += &item("- ", &format!("{way} of {}, {person} user: {said}", page.prose()));
        text += &item("  -> ", remedy);
        told.push(remedy);
    }
    if text.is_empty() { text } else { format!("\nWhat would grant the others\n{text}") }
}

/// One JSON object (schema 1).
pub fn json(record: &Record, published: &[Judged]) -> String {
    #[derive(Serialize)]
    struct Attempt {
        way: &'static str,
        page: &'static str,
        person: &'static str,
        outcome: &'static str,
        said: String,
        remedy: Option<String>,
    }
    #[derive(Serialize)]
    struct Whole<'r> {
        schema: u32,
        run: &'r str,
        attempts: Vec<Attempt>,
        published: &'r [Judged],
    }
    let all: Vec<Answer> =
        workloads(record, Task::Rights).into_iter().flat_map(|workload| answers(record, workload)).collect();
    let attempt = |answer: Answer| Attempt {
        way: answer.way,
        page: answer.page.name(),
        person: answer.person,
        outcome: match answer.said.as_str() {
            GRANTED => "granted",
            said if said.starts_with("killed") => "killed",
            _ if answer.is_tested() => "refused",
            _ => "not_tested",
        },
        said: answer.said,
        remedy: answer.remedy,
    };
    let attempts = all.into_iter().map(attempt).collect();
    row::json(&Whole { schema: SCHEMA, run: &record.id, attempts, published })
}

#[cfg(test)]
mod tests;
