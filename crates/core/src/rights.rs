//! Which ways lead to huge pages, as facts of a trial: `ordinary.shmget.2m = EPERM (shmget)`.

use std::collections::BTreeMap;

use crate::{
    experiment::{Finding, Record},
    units::PageSize,
};

/// Who tries: whoever runs vmtax, and a user without any right.
pub const PERSONS: [&str; 2] = ["present", "ordinary"];
/// How.
pub const WAYS: [&str; 4] = ["mmap", "shmget", "file", "memfd"];
/// For pages of these sizes.
pub const PAGES: [PageSize; 2] = [PageSize::Large, PageSize::Giant];

/// What is said of a way that was open.
pub const GRANTED: &str = "granted";
/// What begins the answer of a way that was not tried.
const NOT_TESTED: &str = "not tested";

/// One way, tried by one person for one page size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// One of [`PERSONS`].
    pub person: &'static str,
    /// One of [`WAYS`].
    pub way: &'static str,
    /// One of [`PAGES`].
    pub page: PageSize,
    /// [`GRANTED`], `EPERM (shmget)`, `killed by signal 7`, or `not tested: ` and why.
    pub said: String,
    /// The setting that would grant it; none when it was granted.
    pub remedy: Option<String>,
}

impl Answer {
    /// `ordinary.shmget.2m`
    pub fn key(&self) -> String {
        format!("{}.{}.{}", self.person, self.way, self.page.name())
    }

    /// Whether it was tried at all.
    pub fn is_tested(&self) -> bool {
        !self.said.starts_with(NOT_TESTED)
    }
}

/// What a trial found: facts, and no figures.
pub fn finding(answers: &[Answer]) -> Finding {
    let mut evidence = BTreeMap::new();
    for answer in answers {
        evidence.insert(answer.key(), answer.said.clone());
        evidence.extend(answer.remedy.clone().map(|remedy| (format!("{}.remedy", answer.key()), remedy)));
    }
    Finding { evidence, ..Finding::default() }
}

/// The answers of a workload's last good trial; empty before it.
pub fn answers(record: &Record, workload: &str) -> Vec<Answer> {
    let jobs = record.plan.jobs(workload);
    let Some(facts) = jobs.iter().find_map(|(cell, _)| record.evidence(&cell.name())) else { return Vec::new() };
    let all = PAGES.into_iter().flat_map(|page| PERSONS.map(|person| WAYS.map(|way| (person, way, page)))).flatten();
    let answer = |(person, way, page)| {
        let blank = Answer { person, way, page, said: String::new(), remedy: None };
        let key = blank.key();
        Some(Answer { said: facts.get(&key)?.clone(), remedy: facts.get(&format!("{key}.remedy")).cloned(), ..blank })
    };
    all.filter_map(answer).collect()
}

/// The published statement, that an ordinary user gets huge pages by mmap and not by shmget: `confirmed`, `contradicted` or
/// `not tested`, and a sentence.
pub fn verdict(answers: &[Answer]) -> (&'static str, String) {
    let statement = "The study's \"normal users can get huge pages through mmap, not through shmget\"";
    let of = |way| {
        let mut own = answers.iter().filter(|a| (a.person, a.way, a.page) == ("ordinary", way, PageSize::Large));
        own.next().filter(|answer| answer.is_tested()).map(|answer| answer.said == GRANTED)
    };
    match (of("mmap"), of("shmget")) {
        (Some(true), Some(false)) => ("confirmed", format!("{statement}: confirmed here.")),
        (Some(_), Some(_)) => ("contradicted", format!("{statement}: contradicted here.")),
        (None, _) | (_, None) => {
            ("not tested", format!("{statement}: not tested here; as root, --reserve borrows the page that takes."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_takes_a_page_that_is_given_one_way_and_refused_the_other() {
        let answer = |way, said: &str| Answer {
            person: "ordinary",
            way,
            page: PageSize::Large,
            said: said.to_owned(),
            remedy: None,
        };
        let check = |mmap, shmget, word| {
            assert_eq!(verdict(&[answer("mmap", mmap), answer("shmget", shmget)]).0, word);
        };
        check(GRANTED, "EPERM (shmget)", "confirmed");
        check(GRANTED, GRANTED, "contradicted");
        check("ENOMEM (mmap)", "EPERM (shmget)", "contradicted");
        check("not tested: the pool is empty", "not tested: the pool is empty", "not tested");
        assert_eq!(finding(&[answer("mmap", GRANTED)]).evidence["ordinary.mmap.2m"], "granted");
    }
}
