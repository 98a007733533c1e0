use std::collections::BTreeMap;

use vmtax_core::{
    experiment::{Better, Finding, Metric, Outcome},
    run::Ending,
    series::{Absent, Record},
    setting::{Backing, Setting},
    touch::Populated,
    units::{GIB, PageSize},
};

use super::*;
use crate::{
    fixture::{host, is_kept},
    wrap::WIDTH,
};

/// Seven blocks, each a per cent slower than the one before; hugetlb pages cannot be had; one trial failed.
fn made_up() -> Series<Cell> {
    let guest = Setting::microvm(PageSize::Small, Backing::Small);
    let thp = Setting::microvm(PageSize::Large, Backing::Thp);
    let missing = Setting::native(Backing::Huge2m);
    let cells = touch::cells(&[Setting::native(Backing::Small), missing, guest, thp]);
    let (reason, remedy) = ("512 pages of 2 MiB needed, 0 free", "add --reserve (as root)");
    let absent = cells.iter().filter(|cell| cell.setting == missing);
    let absent = absent.map(|&cell| Absent { cell, reason: reason.to_owned(), remedy: remedy.to_owned() }).collect();
    let of_cell = |cell: Cell, block: u32| {
        let ns = match (cell.setting.guest, cell.populated) {
            (None, Populated::No) => 500.0,
            (None, Populated::Before) => 5.0,
            (Some(PageSize::Small), Populated::No) => 1500.0,
            (Some(PageSize::Small), Populated::Before) => 800.0,
            (Some(_), Populated::No) => 60.0,
            (Some(_), Populated::Before) => 10.0,
        };
        finding(ns * 1.01f64.powi(block as i32), cell)
    };
    let measured = cells.iter().copied().filter(|cell| cell.setting != missing);
    let records = (0..7).flat_map(|block| {
        measured.clone().map(move |cell| {
            let outcome = match (block, cell.populated, cell.setting == thp) {
                (3, Populated::Before, true) => Outcome::Failed { reason: "KVM_RUN failed".to_owned() },
                _ => Outcome::Ok(of_cell(cell, block)),
            };
            Record { block, cell, outcome }
        })
    });
    let records = records.collect();
    Series { host: host("amd-npt"), seed: 7, cells, absent, records, ending: Ending::Done, seconds: 41.6 }
}

fn finding(ns: f64, cell: Cell) -> Finding {
    let real = ns * 262_144.0 / 1e9;
    let cost = |name: &str, value: f64, unit: &str| Metric {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        better: Better::Lower,
    };
    let faults = if cell.populated == Populated::No { GIB / cell.setting.host.page().bytes() } else { 0 };
    let mut evidence = BTreeMap::from([("host.minor_faults".to_owned(), faults.to_string())]);
    if cell.setting.guest.is_some() {
        evidence.insert("kvm.pf_taken".to_owned(), (GIB / cell.setting.host.page().bytes()).to_string());
    }
    Finding {
        metrics: vec![
            cost(NS_PER_PAGE, ns, "ns"),
            cost("real_seconds", real, "s"),
            cost("system_seconds", real * 0.75, "s"),
        ],
        evidence,
        caveats: Vec::new(),
    }
}

#[test]
fn made_up_trials_give_exactly_the_text_that_is_kept() {
    let text = text(&made_up(), Bytes(GIB));
    is_kept("touch.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    is_kept("touch.csv", &csv(&made_up()));
}

#[test]
fn rows_for_programs_hold_what_the_table_holds() {
    let document: serde_json::Value = serde_json::from_str(&json(&made_up(), Bytes(GIB))).unwrap();
    assert_eq!((&document["schema"], &document["blocks"]), (&1.into(), &7.into()));
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    assert_eq!(rows[0]["trials"], 7);
    assert!((rows[0]["value"].as_f64().unwrap() - 500.0 * 1.01f64.powi(3)).abs() < 1e-9);
    assert_eq!(rows[0]["user_seconds"], 0.0);
    assert_eq!(rows[2]["status"], "unavailable");
    assert_eq!(rows[2]["remedy"], "add --reserve (as root)");
    assert_eq!((&rows[7]["trials"], &rows[7]["failures"][0]), (&6.into(), &"KVM_RUN failed".into()));
}
