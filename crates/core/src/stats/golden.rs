//! Known answers from SciPy: `testdata/golden.py` prints `testdata/golden.json`.

use serde::Deserialize;

use super::{Estimate, median, order::End};

#[derive(Deserialize)]
struct Golden {
    samples: Vec<Sample>,
    ends: Vec<KnownEnd>,
}

#[derive(Deserialize)]
struct Sample {
    name: String,
    values: Vec<f64>,
    median: f64,
    lo: f64,
    hi: f64,
}

#[derive(Deserialize)]
struct KnownEnd {
    n: usize,
    d: usize,
    weight: f64,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../testdata/golden.json")).unwrap()
}

#[test]
fn medians_and_intervals_are_scipys() {
    for Sample { name, values, median: known, lo, hi } in golden().samples {
        let estimate = Estimate::of_median(&values).unwrap();
        let interval = estimate.interval.unwrap();
        assert_eq!((estimate.value, median(&values)), (known, known), "{name}");
        assert!((interval.lo / lo - 1.0).abs() < 1e-12, "{name}: {} for {lo}", interval.lo);
        assert!((interval.hi / hi - 1.0).abs() < 1e-12, "{name}: {} for {hi}", interval.hi);
    }
}

#[test]
fn ends_for_2_to_60_blocks_are_scipys() {
    for KnownEnd { n, d, weight } in golden().ends {
        let end = End::of(n).unwrap();
        assert_eq!(end.base + 1, d, "n = {n}");
        assert!((end.weight - weight).abs() < 1e-9, "n = {n}: {} for {weight}", end.weight);
    }
}
