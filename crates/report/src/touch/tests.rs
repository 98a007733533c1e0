use std::collections::BTreeMap;

use vmtax_core::{
    experiment::{Better, Finding, Metric, Missing, Outcome},
    plan::Job,
    units::{GIB, PageSize},
};

use super::*;
use crate::{
    experiment,
    fixture::{is_kept, record},
    wrap::WIDTH,
};

const PLAN: &str = "\
title = \"First access: one byte written in each 4 KiB page of 1 GiB\"
[factors]
venue = [\"native\", \"microvm\"]
host = [\"4k\", \"thp\", \"2m\"]
guest = [\"4k\", \"2m\"]
[[workload]]
probe = \"touch\"
[[workload]]
name = \"touch-populated\"
probe = \"touch\"
populate = true
[[exclude]]
venue = \"microvm\"
host = \"2m\"
[[exclude]]
host = \"4k\"
guest = \"2m\"
";

/// Seven blocks, each a per cent slower than the one before; hugetlb pages cannot be had; one trial failed.
fn made_up() -> Record {
    let missing = ["touch venue=native host=2m", "touch-populated venue=native host=2m"].map(|cell| Missing {
        cell: cell.to_owned(),
        reason: "512 pages of 2 MiB needed, 0 free".to_owned(),
        remedy: "add --reserve (as root)".to_owned(),
    });
    record(PLAN, missing.to_vec(), |cell, job, block| {
        let Job::Touch(touch) = job else { unreachable!("the plan touches") };
        let ns = match (touch.setting.guest, touch.populated) {
            (None, Populated::No) => 500.0,
            (None, Populated::Before) => 5.0,
            (Some(PageSize::Small), Populated::No) => 1500.0,
            (Some(PageSize::Small), Populated::Before) => 800.0,
            (Some(_), Populated::No) => 60.0,
            (Some(_), Populated::Before) => 10.0,
        };
        match (block, cell.name().as_str()) {
            (3, "touch-populated venue=microvm host=thp guest=2m") => {
                Outcome::Failed { reason: "KVM_RUN failed".to_owned() }
            }
            _ => Outcome::Ok(finding(ns * 1.01f64.powi(block as i32), touch)),
        }
    })
}

fn finding(ns: f64, touch: &Touch) -> Finding {
    let real = ns * 262_144.0 / 1e9;
    let cost = |name: &str, value: f64, unit: &str| Metric {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        better: Better::Lower,
    };
    let faults = if touch.populated == Populated::No { GIB / touch.setting.host.page().bytes() } else { 0 };
    let mut evidence = BTreeMap::from([("host.minor_faults".to_owned(), faults.to_string())]);
    if touch.setting.guest.is_some() {
        evidence.insert("kvm.pf_taken".to_owned(), (GIB / touch.setting.host.page().bytes()).to_string());
    }
    let metrics =
        vec![cost(NS_PER_PAGE, ns, "ns"), cost("real_seconds", real, "s"), cost("system_seconds", real * 0.75, "s")];
    Finding { metrics, evidence, caveats: Vec::new() }
}

#[test]
fn made_up_trials_give_exactly_the_text_that_is_kept() {
    let text = experiment::text(&made_up(), &[]);
    is_kept("touch.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    is_kept("touch.csv", &csv(&made_up()));
}

#[test]
fn rows_for_programs_hold_what_the_table_holds() {
    let document: serde_json::Value = serde_json::from_str(&json(&made_up())).unwrap();
    assert_eq!((&document["schema"], &document["blocks"]), (&1.into(), &7.into()));
    let rows = document["rows"].as_array().unwrap();
    let row = |populated: &str, venue: &str, host: &str, guest: serde_json::Value| {
        let is_meant = |row: &&serde_json::Value| {
            row["populated"] == populated && row["venue"] == venue && row["host"] == host && row["guest"] == guest
        };
        rows.iter().find(is_meant).unwrap()
    };
    let native = row("no", "native", "4k", serde_json::Value::Null);
    assert_eq!(native["trials"], 7);
    assert!((native["value"].as_f64().unwrap() - 500.0 * 1.01f64.powi(3)).abs() < 1e-9);
    assert_eq!(native["user_seconds"], 0.0);
    let missing = row("no", "native", "2m", serde_json::Value::Null);
    assert_eq!((&missing["status"], &missing["remedy"]), (&"unavailable".into(), &"add --reserve (as root)".into()));
    let failed = row("before", "microvm", "thp", "2m".into());
    assert_eq!((&failed["trials"], &failed["failures"][0]), (&6.into(), &"KVM_RUN failed".into()));
}
