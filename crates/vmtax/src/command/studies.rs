//! `vmtax studies`: the plans that come with vmtax, and what was published of them.

use std::process::ExitCode;

use vmtax_core::{
    experiment::Record,
    plan::Plan,
    published::{Judged, Published},
};
use vmtax_report::{listing::item, published};

use super::Refusal;
use crate::{
    cli::{StudiesArgs, StudiesCommand},
    output,
};

/// A plan that comes with vmtax.
#[derive(Debug)]
pub struct Study {
    /// What `vmtax run` knows it by.
    pub name: &'static str,
    /// Its plan.
    pub text: &'static str,
    /// What was published of it, where something was.
    published: Option<&'static str>,
}

/// The text of a file under `studies/`.
macro_rules! study {
    ($file:literal) => {
        include_str!(concat!("../../../../studies/", $file))
    };
}

/// All of them; a new one is a line here and a directory beside the others.
pub static STUDIES: &[Study] = &[
    Study {
        name: "ept-on-off",
        text: study!("ept-on-off/plan.toml"),
        published: Some(study!("ept-on-off/published.toml")),
    },
    Study {
        name: "ept-on-off-quick",
        text: study!("ept-on-off-quick/plan.toml"),
        published: Some(study!("ept-on-off/published.toml")),
    },
    Study { name: "hugepage-2x2", text: study!("hugepage-2x2/plan.toml"), published: None },
    Study { name: "hugepage-2x2-quick", text: study!("hugepage-2x2-quick/plan.toml"), published: None },
    Study { name: "three-venues", text: study!("three-venues/plan.toml"), published: None },
    Study { name: "os-quick", text: study!("os-quick/plan.toml"), published: None },
    Study { name: "matrix-quick", text: study!("matrix-quick/plan.toml"), published: None },
    Study {
        name: "hugepage-walk",
        text: study!("hugepage-walk/plan.toml"),
        published: Some(study!("hugepage-walk/published.toml")),
    },
    Study {
        name: "hugepage-walk-quick",
        text: study!("hugepage-walk-quick/plan.toml"),
        published: Some(study!("hugepage-walk/published.toml")),
    },
];

impl Study {
    /// The study of this name.
    pub fn named(name: &str) -> Option<&'static Study> {
        STUDIES.iter().find(|study| study.name == name)
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        Ok(Plan::parse(self.name, self.text)?)
    }

    /// What was published of it.
    pub fn published(&self) -> Option<Published> {
        let read = |text| Published::parse(self.name, text).expect("a test reads what every study published");
        self.published.map(read)
    }
}

/// The study whose statements runs by hand are held against: `vmtax walk`, `reserve`, `rights` and `bloat` are parts of it.
const BY_HAND: &str = "hugepage-walk";

/// What was published of this run's study, or of what was run by hand, beside what was measured; nothing for other plans.
pub fn judged(record: &Record) -> Vec<Judged> {
    let (study, is_whole) = match Study::named(&record.name) {
        None if record.name.starts_with("vmtax ") => (Study::named(BY_HAND), false),
        study => (study, true),
    };
    let Some(published) = study.and_then(Study::published) else { return Vec::new() };
    let is_run = |name: &str| record.plan.workload(name).is_some();
    let meant = published.statements.iter().filter(|s| is_whole || s.test.workload().is_some_and(is_run));
    meant.map(|statement| statement.judge(record)).collect()
}

/// Prints what was asked for.
pub fn run(args: &StudiesArgs) -> anyhow::Result<ExitCode> {
    let text = match &args.command {
        None => list()?,
        Some(StudiesCommand::Show { study }) => show(study)?,
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A line for each.
fn list() -> anyhow::Result<String> {
    let width = STUDIES.iter().map(|study| study.name.len()).max().unwrap_or(0);
    let line = |study: &Study| Ok(item(&format!("{:width$}  ", study.name), &study.plan()?.title));
    STUDIES.iter().map(line).collect()
}

fn show(name: &str) -> anyhow::Result<String> {
    let Some(study) = Study::named(name) else {
        let names: Vec<&str> = STUDIES.iter().map(|study| study.name).collect();
        let help = format!("built-in studies are: {}", names.join(", "));
        return Err(Refusal::new(format!("no study named {name}"), help).into());
    };
    Ok(published::study(name, &study.plan()?, study.published().as_ref()))
}

#[cfg(test)]
mod tests;
