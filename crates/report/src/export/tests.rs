use serde_json::Value;
use vmtax_core::{availability::Reserve, setting::Backing, trial, units::PageSize};

use super::*;
use crate::fixture::{change, host, run};

/// Fields of schema 1 (design.md, "Machine-readable results"), and what was added to it since.
const DOCUMENT: [&str; 12] = [
    "schema",
    "run",
    "host",
    "probe",
    "blocks",
    "seconds",
    "noise_floor",
    "cells",
    "started",
    "ending",
    "seed",
    "baseline",
];
const CELL: [&str; 20] = [
    "venue",
    "guest",
    "host",
    "metric",
    "value",
    "ci",
    "trials",
    "first_pass",
    "tax",
    "tax_ci",
    "distinguishable",
    "evidence",
    "status",
    "reason",
    "remedy",
    "failures",
    "first_pass_ci",
    "versus_baseline",
    "versus_baseline_ci",
    "caveats",
];
const EVIDENCE: [&str; 9] = [
    "pages_4k",
    "pages_2m",
    "pages_1g",
    "kernel_page_kb",
    "thp_coverage",
    "faults",
    "exits",
    "steady_faults",
    "nx_lpage_splits",
];

const GUEST: Setting = Setting::microvm(PageSize::Small, Backing::Small);

/// Figures, cells that cannot be measured, and one that failed.
fn mixed() -> Run {
    let mut run = run(host("pvm"), 5, Reserve::No);
    change(&mut run, GUEST, |_, outcome| {
        *outcome = trial::Outcome::Failed { reason: "a \"quoted\", reason".to_owned() }
    });
    run
}

fn parsed(run: &Run) -> Value {
    serde_json::from_str(&json(run).unwrap()).unwrap()
}

fn has_exactly(value: &Value, fields: &[&str]) {
    let mut found: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let mut fields = fields.to_vec();
    found.sort_unstable();
    fields.sort_unstable();
    assert_eq!(found, fields);
}

#[test]
fn every_field_of_the_schema_is_there_and_null_where_it_does_not_apply() {
    let json = parsed(&mixed());
    has_exactly(&json, &DOCUMENT);
    has_exactly(&json["probe"], &["name", "bytes", "stride", "vcpus"]);
    has_exactly(&json["noise_floor"], &["ratio", "ci"]);
    assert_eq!((&json["schema"], &json["blocks"], &json["seconds"]), (&1.into(), &5.into(), &41.0.into()));
    assert_eq!((&json["host"]["nested"], &json["host"]["emulated"]), (&true.into(), &false.into()));
    assert_eq!(json["host"]["kvm"]["kind"], "pvm");
    let cells = json["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 16);
    for cell in cells {
        has_exactly(cell, &CELL);
        match cell["status"].as_str().unwrap() {
            "ok" => {
                has_exactly(&cell["evidence"], &EVIDENCE);
                assert!(cell["value"].is_f64() && cell["ci"][0].is_f64() && cell["reason"].is_null());
                assert_eq!((cell["tax"].is_null(), cell["trials"].as_u64()), (cell["guest"].is_null(), Some(5)));
            }
            "unavailable" => {
                assert!(cell["reason"].is_string() && cell["remedy"].is_string() && cell["value"].is_null())
            }
            "failed" => {
                assert_eq!((&cell["reason"], &cell["trials"]), (&"a \"quoted\", reason".into(), &0.into()));
                assert!(cell["evidence"].is_null() && cell["ci"].is_null() && cell["remedy"].is_null());
            }
            other => panic!("{other}"),
        }
    }
    let evidence = &cells[0]["evidence"];
    assert!(cells[0]["venue"] == "native" && evidence["pages_4k"].is_null() && evidence["kernel_page_kb"] == 4);
}

#[test]
fn a_single_block_has_values_and_no_intervals() {
    let json = parsed(&run(host("amd-npt"), 1, Reserve::Yes));
    let cell = &json["cells"][4];
    assert!(cell["value"].is_f64() && cell["ci"].is_null() && cell["tax_ci"].is_null());
    assert!(cell["distinguishable"].is_null() && json["noise_floor"]["ci"].is_null());
    let none = parsed(&run(host("amd-npt"), 0, Reserve::Yes));
    assert!(none["noise_floor"].is_null() && none["cells"][4]["status"] == "failed");
}

#[test]
fn two_exports_of_a_run_are_the_same_bytes_also_from_trials_in_another_order() {
    let run = mixed();
    let mut turned = run.clone();
    turned.trials.reverse();
    assert_eq!((json(&run).unwrap(), csv(&run).unwrap()), (json(&turned).unwrap(), csv(&turned).unwrap()));
}

#[test]
fn the_comma_separated_values_are_those_of_the_json() {
    let run = mixed();
    let (text, json) = (csv(&run).unwrap(), parsed(&run));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
    let cells = json["cells"].as_array().unwrap();
    assert_eq!(rows.len(), cells.len());
    for (row, cell) in rows.iter().zip(cells) {
        let field = |name: &str| &row[head.iter().position(|known| known == name).unwrap()];
        for name in ["venue", "guest", "host", "metric", "status", "reason", "remedy"] {
            assert_eq!(field(name), cell[name].as_str().unwrap_or(""), "{name}");
        }
        for name in ["value", "first_pass", "tax", "versus_baseline"] {
            assert_eq!(field(name).parse().ok(), cell[name].as_f64(), "{name}");
        }
        for (name, ends, which) in [("value_lo", "ci", 0), ("value_hi", "ci", 1), ("tax_hi", "tax_ci", 1)] {
            assert_eq!(field(name).parse().ok(), cell[ends][which].as_f64(), "{name}");
        }
        for name in ["pages_4k", "pages_2m", "kernel_page_kb", "exits"] {
            assert_eq!(field(name).parse().ok(), cell["evidence"][name].as_u64(), "{name}");
        }
        assert_eq!((field("run"), field("trials").parse().ok()), (run.id.as_str(), cell["trials"].as_u64()));
    }
}
