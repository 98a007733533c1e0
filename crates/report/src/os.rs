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

#[cfg(test)]
mod tests {
    use vmtax_core::{
        experiment::{Finding, Outcome},
        plan::Job,
    };

    use super::*;
    use crate::fixture;

    #[test]
    fn tests_of_a_setting_are_told_together_and_a_mean_is_no_index() {
        let plan = "[factors]\nvenue = [\"native\", \"guest\"]\n[[workload]]\nprobe = \"exec\"\n[[workload]]\nprobe = \"syscall\"\n";
        let record = fixture::record(plan, Vec::new(), |cell, job, _| {
            let Job::Os(os) = job else { unreachable!("the plan tests the system") };
            // Ten times the baseline system, and in the guest as fast as it.
            let times = if cell.setting.is_linux_guest() { 1.0 } else { 10.0 };
            let accel = cell.setting.is_linux_guest().then(|| ("qemu.accel".to_owned(), "tcg".to_owned()));
            let metrics = os.test.metrics(times / os.test.baseline().ratio(1.0));
            Outcome::Ok(Finding { metrics, evidence: accel.into_iter().collect(), caveats: Vec::new() })
        });
        let mean = "geometric mean of 2 of its 12 tests, run by vmtax's own programs; not a UnixBench index";
        let text = ratios(&record);
        assert_eq!(text.matches("not a UnixBench index").count(), 2, "{text}");
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let native =
            format!("- venue=native: exec 10.0, syscall 10.0; together 10.0 times UnixBench's baseline system: {mean}");
        let guest = format!(
            "- venue=guest: exec 1.00, syscall 1.00, emulated; together 1.0 times UnixBench's baseline system: {mean}"
        );
        assert!(joined.contains(&native) && joined.ends_with(&guest), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
