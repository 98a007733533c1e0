use std::collections::BTreeMap;

use vmtax_core::{
    experiment::{Better, Finding, Metric, Outcome},
    plan::Job,
    walk::LEADING,
};

use super::*;
use crate::{
    experiment,
    fixture::{is_kept, record},
    wrap::WIDTH,
};

/// Strides double from 4 bytes to 2 MiB.
fn plan(size: &str, hosts: &str) -> String {
    let strides: Vec<String> = (2..=21).map(|log| (1_u64 << log).to_string()).collect();
    format!(
        "title = \"Walks\"\n[factors]\nhost = [{hosts}]\nstride = [{}]\n[[workload]]\nprobe = \"walk\"\nsize = \"{size}\"\n\
         passes = 4\nreferences = 33554432\n",
        strides.join(", ")
    )
}

/// Faults shared by the references to a page: 1 µs for a small one, 6 µs for a huge one, whose references are cheaper.
fn made_up(size: &str, hosts: &str) -> Record {
    let average = |walk: &Walk, passes: u32, block: u32| {
        let (fault, page, reference) = match walk.setting.host {
            Backing::Small => (1000.0, 4.0 * KIB as f64, 2.0),
            Backing::Thp | Backing::Huge2m | Backing::Huge1g => (6000.0, 32.0 * KIB as f64, 1.0),
        };
        let touches = (walk.stride.0 as f64 / page).min(1.0);
        (fault * touches / f64::from(passes) + reference) * 1.01f64.powi(block as i32)
    };
    record(&plan(size, hosts), Vec::new(), |_, job, block| {
        let Job::Walk(walk) = job else { unreachable!("the plan walks") };
        let told = |name: String, passes| Metric {
            name,
            value: average(walk, passes, block),
            unit: "ns".to_owned(),
            better: Better::Lower,
        };
        let after = walk.pass_counts().into_iter().map(|passes| told(metric(passes), passes));
        let metrics = [told(LEADING.to_owned(), walk.passes_made())].into_iter().chain(after).collect();
        Outcome::Ok(Finding { metrics, evidence: BTreeMap::new(), caveats: Vec::new() })
    })
}

#[test]
fn made_up_trials_give_exactly_the_text_that_is_kept() {
    let text = experiment::text(&made_up("128M", "\"4k\", \"2m\""), &[]);
    is_kept("walk.txt", &text);
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH && line == line.trim_end(), "{line}");
    }
}

#[test]
fn curves_for_programs_have_a_row_for_each_number_of_passes() {
    let record = made_up("128M", "\"4k\", \"2m\"");
    let document: serde_json::Value = serde_json::from_str(&json(&record, &[])).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let expected: usize = walks(&record, "walk").iter().map(|(_, walk)| walk.pass_counts().len()).sum();
    // At 4 bytes there is room for one pass, at 8 for two.
    assert_eq!((rows.len(), expected), (expected, 2 * (1 + 2 + 18 * 3)));
    assert_eq!(csv(&record).lines().count(), expected + 1);
    assert_eq!(document["crossovers"].as_array().unwrap().len(), 3);
    assert!((document["noise_floor"]["ratio"].as_f64().unwrap() - 1.0).abs() < 1e-9);
}
