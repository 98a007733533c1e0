//! What comes with vmtax is well formed, and what was published of a study can be found in its plan.

use std::collections::BTreeSet;

use vmtax_core::published::{Ratio, Selection, Test};

use super::*;

#[test]
fn every_study_is_a_plan_with_a_title_that_can_be_run() {
    for study in STUDIES {
        let plan = study.plan().unwrap();
        assert!(!plan.title.is_empty(), "{}", study.name);
        for cell in plan.cells() {
            assert!(plan.job(&cell).is_ok(), "{}: {}", study.name, cell.name());
        }
    }
}

/// What a test takes: cells, and metrics of them.
fn taken(test: &Test) -> (&str, Vec<(&Selection, &str)>) {
    match test {
        Test::Crossover(c) => (&c.workload, vec![(&c.incumbent, &c.metric), (&c.challenger, &c.metric)]),
        Test::Value(value) => (&value.workload, vec![(&value.of, &value.metric)]),
        Test::Ratio(Ratio { workload, of, over, .. }) => {
            (workload, of.iter().chain(over).map(|term| (&term.cells, term.metric.as_str())).collect())
        }
        Test::Fact(fact) => (&fact.workload, Vec::new()),
        Test::WalkReferences(_) => ("", Vec::new()),
    }
}

/// The metrics of the kinds of workloads that statements are about.
fn metrics(kind: &str) -> &'static [&'static str] {
    match kind {
        "walk" => &["ns_per_reference", "ns_per_reference_1"],
        "reserve" => &["seconds", "pages_per_second"],
        "bloat" => &["bytes_used"],
        "touch" => &["ns_per_page", "real_seconds", "user_seconds", "system_seconds"],
        _ => &[],
    }
}

#[test]
fn every_statement_is_about_cells_and_metrics_of_its_study() {
    let mut judged = BTreeSet::new();
    for study in STUDIES {
        let Some(published) = study.published() else { continue };
        let plan = study.plan().unwrap();
        for statement in &published.statements {
            let (workload, taken) = taken(&statement.test);
            let Some(kind) = plan.workload(workload).map(|workload| workload.kind.name) else {
                assert_eq!(workload, "", "{}: {}", study.name, statement.id);
                continue;
            };
            for (selection, metric) in taken {
                assert!(metrics(kind).contains(&metric), "{}: {} has no {metric}", study.name, statement.id);
                // A quick form leaves out some of it.
                match selection.cells(&plan, workload) {
                    Ok(_) => judged.insert((statement.id.clone(), study.name)),
                    Err(reason) => {
                        assert!(study.name.ends_with("-quick"), "{}: {}: {reason}", study.name, statement.id);
                        false
                    }
                };
            }
        }
    }
    assert!(judged.contains(&("crossover-32k".to_owned(), "hugepage-walk-quick")), "{judged:?}");
}

#[test]
fn an_unknown_study_is_answered_with_those_there_are() {
    let error = show("hugepage").unwrap_err();
    assert_eq!(error.to_string(), "no study named hugepage");
}
