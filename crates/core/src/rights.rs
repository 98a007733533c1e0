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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_evidence_under_its_name() {
        let answer =
            Answer { person: "ordinary", way: "mmap", page: PageSize::Large, said: GRANTED.to_owned(), remedy: None };
        assert_eq!(finding(&[answer]).evidence["ordinary.mmap.2m"], "granted");
    }
}
