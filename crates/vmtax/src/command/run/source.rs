//! Where a plan comes from: a file, or a study that is built in.

use std::{fs, path::Path};

use crate::command::{
    Refusal,
    studies::{STUDIES, Study},
};

/// A plan, as its author wrote it.
#[derive(Debug)]
pub struct Source {
    /// The file's, or the study's.
    pub name: String,
    /// The plan.
    pub text: String,
}

impl Source {
    /// A file of this name, or else the study.
    pub fn of(plan: &str) -> Result<Source, Refusal> {
        let source = |text: String| Source { name: plan.to_owned(), text };
        if let Some(Study { text, .. }) = Study::named(plan)
            && !Path::new(plan).is_file()
        {
            return Ok(source((*text).to_owned()));
        }
        fs::read_to_string(plan).map(source).map_err(|error| {
            let names: Vec<&str> = STUDIES.iter().map(|study| study.name).collect();
            let help = format!("name a file, or a built-in study: {}", names.join(", "));
            Refusal::new(format!("cannot read plan {plan}: {error}"), help)
        })
    }
}
