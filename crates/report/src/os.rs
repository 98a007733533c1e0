//! Tests of the operating system beside UnixBench's baseline system.

use vmtax_core::{
    experiment::{Ratios, Record},
    prose::nanos,
};

use crate::wrap::item;

/// A line for each setting: every test's ratio, and their mean where there are several. Empty where none was run.
pub(crate) fn ratios(record: &Record) -> String {
    let all = record.ratios();
    if all.is_empty() {
        return String::new();
    }
    let lines: String = all.iter().map(|ratios| item("- ", &line(ratios))).collect();
    format!("Rates over those of UnixBench's baseline system\n{lines}")
}

fn line(ratios: &Ratios) -> String {
    let of = |(workload, test, rate): &(String, vmtax_core::os::Test, f64)| {
        format!("{workload} {}", nanos(test.baseline().ratio(*rate)))
    };
    let tests: Vec<String> = ratios.rates.iter().map(of).collect();
    let place = ratios.setting.to_string();
    let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
    let emulated = if ratios.emulated { ", emulated" } else { "" };
    let mean = ratios.mean().map_or(String::new(), |mean| format!("; together {mean}"));
    format!("{place}{}{emulated}{mean}", tests.join(", "))
}
