use std::collections::BTreeMap;

use vmtax_core::{
    experiment::{Better, Finding, Metric, Outcome},
    run::Ending,
    series::Record,
    units::MIB,
};

use super::*;
use crate::{
    fixture::{host, is_kept},
    wrap::WIDTH,
};

fn request() -> Request {
    Request {
        size: Bytes(128 * MIB),
        strides: (2..=21).map(|log| Bytes(1 << log)).collect(),
        passes: 4,
        hosts: vec![Backing::Small, Backing::Huge2m],
        orders: vec![Order::Sequential],
    }
}

/// Faults shared by the references to a page: 1 µs for a small one, 6 µs for a huge one, whose references are cheaper.
fn made_up(request: &Request) -> Series<Cell> {
    let average = |cell: Cell, passes: u32, block: u32| {
        let (fault, page, reference) = match cell.host {
            Backing::Small => (1000.0, 4.0 * KIB as f64, 2.0),
            Backing::Thp | Backing::Huge2m | Backing::Huge1g => (6000.0, 32.0 * KIB as f64, 1.0),
        };
        let touches = (cell.stride.0 as f64 / page).min(1.0);
        (fault * touches / f64::from(passes) + reference) * 1.01f64.powi(block as i32)
    };
    let record = |cell: Cell, block: u32| {
        let metrics = request.passes_at(cell.stride).into_iter().map(|passes| Metric {
            name: metric(passes),
            value: average(cell, passes, block),
            unit: "ns".to_owned(),
            better: Better::Lower,
        });
        let finding = Finding { metrics: metrics.collect(), evidence: BTreeMap::new(), caveats: Vec::new() };
        Record { block, cell, outcome: Outcome::Ok(finding) }
    };
    let cells = request.cells();
    let records = (0..7).flat_map(|block| cells.iter().map(move |&cell| record(cell, block))).collect();
    Series { host: host("amd-npt"), seed: 7, cells, absent: Vec::new(), records, ending: Ending::Done, seconds: 59.7 }
}

#[test]
fn made_up_trials_give_exactly_the_text_that_is_kept() {
    let text = text(&made_up(&request()), &request());
    is_kept("walk.txt", &text);
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH && line == line.trim_end(), "{line}");
    }
}

#[test]
fn a_statement_is_judged_by_the_interval_or_not_at_all() {
    let check = |request: &Request, expected: &str| {
        assert_eq!(verdict(request, &made_up(request)).words(), expected);
    };
    check(&request(), "contradicted");
    check(&Request { size: Bytes(64 * MIB), ..request() }, "not tested here: the study walks 128 MiB");
    check(
        &Request { hosts: vec![Backing::Small, Backing::Thp], ..request() },
        "not tested here: 2 MiB hugetlb and 4 KiB pages were not both walked in order",
    );
}

#[test]
fn curves_for_programs_have_a_row_for_each_number_of_passes() {
    let document: serde_json::Value = serde_json::from_str(&json(&made_up(&request()), &request())).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let expected: usize = request().cells().iter().map(|cell| request().passes_at(cell.stride).len()).sum();
    assert_eq!(rows.len(), expected);
    assert_eq!(csv(&made_up(&request()), &request()).lines().count(), expected + 1);
    assert_eq!(document["crossovers"].as_array().unwrap().len(), 3);
    assert_eq!(document["published"]["verdict"], "contradicted");
}
