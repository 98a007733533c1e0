//! `vmtax studies`: the plans that come with vmtax.

use std::process::ExitCode;

use vmtax_core::plan::Plan;

use crate::output;

/// A plan that comes with vmtax.
#[derive(Debug)]
pub struct Study {
    /// What `vmtax run` knows it by.
    pub name: &'static str,
    /// Its plan.
    pub text: &'static str,
}

/// All of them; a new one is a line here and a directory beside the others.
pub static STUDIES: &[Study] =
    &[Study { name: "matrix-quick", text: include_str!("../../../../studies/matrix-quick/plan.toml") }];

/// Prints a line for each.
pub fn run() -> anyhow::Result<ExitCode> {
    let width = STUDIES.iter().map(|study| study.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Study { name, text: plan } in STUDIES {
        text.push_str(&format!("{name:width$}  {}\n", Plan::parse(name, plan)?.title));
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_is_a_plan_with_a_title_that_can_be_run() {
        for Study { name, text } in STUDIES {
            let plan = Plan::parse(name, text).unwrap();
            assert!(!plan.title.is_empty() && plan.not_yet().is_none(), "{name}");
            assert!(plan.cells().iter().all(|cell| plan.job(cell).is_ok()), "{name}");
        }
    }
}
