//! What comes with vmtax is well formed.

use super::*;

#[test]
fn every_study_is_a_plan_with_a_title_that_can_be_run() {
    for study in STUDIES {
        let plan = study.plan().unwrap();
        assert!(!plan.title.is_empty() && plan.not_yet().is_none(), "{}", study.name);
        for cell in plan.cells() {
            assert!(plan.job(&cell).is_ok(), "{}: {}", study.name, cell.name());
        }
    }
}

#[test]
fn an_unknown_study_is_answered_with_those_there_are() {
    let error = show("hugepage").unwrap_err();
    assert_eq!(error.to_string(), "no study named hugepage");
}
