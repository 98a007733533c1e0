use vmtax_core::{experiment::Outcome, reserve::Round, reserve::finding};

use super::*;
use crate::{
    experiment,
    fixture::{is_kept, record},
    wrap::WIDTH,
};

/// Two rounds a trial; in block number `fewer` one of them is granted half.
fn made_up(fewer: u32) -> Record {
    let plan =
        "title = \"Time to prepare huge pages\"\n[[workload]]\nprobe = \"reserve\"\nrounds = 2\ncompact = true\n";
    record(plan, Vec::new(), |_, _, block| {
        let round = |round: u32| Round {
            round,
            asked: 5000,
            granted: if (block, round) == (fewer, 2) { 2500 } else { 5000 },
            seconds: 0.5 * f64::from(round),
            compaction_seconds: Some(0.0123),
            held: None,
            before: Some(Scatter { unusable: 0.4, index: 0.7 }),
            after: None,
        };
        Outcome::Ok(finding(&[round(1), round(2)]))
    })
}

#[test]
fn rounds_give_exactly_the_text_that_is_kept() {
    let text = experiment::text(&made_up(6), &[]);
    is_kept("reserve.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
}

#[test]
fn every_round_is_there_for_programs() {
    let document: serde_json::Value = serde_json::from_str(&json(&made_up(9), &[])).unwrap();
    assert_eq!(document["rounds"].as_array().unwrap().len(), 7 * 2 * 2);
    assert_eq!((&document["rows"][0]["metric"], &document["rows"][0]["value"]), (&"seconds".into(), &0.75.into()));
}
