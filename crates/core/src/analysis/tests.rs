use proptest::prelude::*;

use super::*;
use crate::{
    stats::Basis,
    trial::{self, Caveat, Evidence, Interference, KvmCounts, Measurement},
};

const NATIVE: Setting = Setting::native(Backing::Small);
const NATIVE_2M: Setting = Setting::native(Backing::Huge2m);
const GUEST: Setting = Setting::microvm(PageSize::Small, Backing::Small);
const GUEST_2M: Setting = Setting::microvm(PageSize::Small, Backing::Huge2m);

fn measured(value_ns: f64) -> Measurement {
    Measurement {
        batches_ns: vec![value_ns * 0.9, value_ns, value_ns * 3.0],
        first_pass_ns: value_ns * 10.0,
        evidence: Evidence::default(),
        interference: Interference::default(),
        caveats: Vec::new(),
    }
}

fn trial(block: u32, setting: Setting, replica: Replica, outcome: trial::Outcome) -> Trial {
    Trial { block, place: 0, cell: Cell { setting, replica }, outcome }
}

fn ok(block: u32, setting: Setting, value_ns: f64) -> Trial {
    trial(block, setting, Replica::A, trial::Outcome::Ok(measured(value_ns)))
}

fn twin(block: u32, value_ns: f64) -> Trial {
    trial(block, NATIVE, Replica::APrime, trial::Outcome::Ok(measured(value_ns)))
}

fn failed(block: u32, setting: Setting, reason: &str) -> Trial {
    trial(block, setting, Replica::A, trial::Outcome::Failed { reason: reason.to_owned() })
}

fn missing(setting: Setting) -> Unavailable {
    Unavailable { setting, reason: "the pool is empty".to_owned(), remedy: "vmtax matrix --reserve".to_owned() }
}

fn summarize(requested: &[Setting], trials: &[Trial]) -> Summary {
    Summary::of(requested, &[], trials).unwrap()
}

fn figures(summary: &Summary, setting: Setting) -> &Figures {
    summary.cells.iter().find(|cell| cell.setting == setting).and_then(CellSummary::figures).unwrap()
}

/// Seven blocks, each twice as slow as the one before; the guest's tax is 16 to 28 %, the twin within ±3 %.
fn seven_blocks() -> Vec<Trial> {
    (0..7)
        .flat_map(|block| {
            let level = 100.0 * f64::from(1 << block);
            let step = f64::from(block);
            [
                ok(block, NATIVE, level),
                twin(block, level * (0.97 + 0.01 * step)),
                ok(block, GUEST, level * (1.16 + 0.02 * step)),
            ]
        })
        .collect()
}

#[test]
fn a_tax_is_paired_within_blocks_and_survives_a_drift_of_64_times() {
    let summary = summarize(&[GUEST, NATIVE], &seven_blocks());
    assert_eq!((summary.baseline, summary.blocks), (Some(NATIVE), 7));
    let guest = figures(&summary, GUEST);
    assert_eq!((guest.trials, guest.value.n), (7, 7));
    let tax = guest.tax.unwrap();
    assert!((tax.value - 0.22).abs() < 1e-12, "{tax:?}");
    let interval = tax.interval.unwrap();
    // The weight for n = 7 is 66/90; from 1.16 towards 1.18, from 1.28 towards 1.26, on the logarithmic scale.
    let end = |from: f64, to: f64| from * (to / from).powf(66.0 / 90.0) - 1.0;
    assert!((interval.lo - end(1.16, 1.18)).abs() < 1e-12 && (interval.hi - end(1.28, 1.26)).abs() < 1e-12);
    assert_eq!(interval.basis, Basis::Interpolated);
    assert_eq!((guest.distinguishable, guest.versus_baseline), (Some(true), guest.tax));
    assert_eq!(summary.noise_floor.unwrap().value, 1.0);
    assert_eq!(guest.first_pass.unwrap().value, guest.value.value * 10.0);
}

#[test]
fn native_settings_have_no_tax_and_the_baseline_is_not_compared_with_itself() {
    let mut trials = seven_blocks();
    trials.extend((0..7).map(|block| ok(block, NATIVE_2M, 50.0 * f64::from(1 << block))));
    let summary = summarize(&[NATIVE, NATIVE_2M, GUEST], &trials);
    let baseline = figures(&summary, NATIVE);
    assert_eq!((baseline.tax, baseline.versus_baseline, baseline.distinguishable), (None, None, None));
    let huge = figures(&summary, NATIVE_2M);
    assert_eq!((huge.tax, huge.versus_baseline.unwrap().value, huge.distinguishable), (None, -0.5, None));
}

#[test]
fn a_tax_below_the_noise_floor_or_of_unclear_sign_is_not_distinguishable() {
    let check = |taxes: [f64; 6], twins: [f64; 6], expected| {
        let trials: Vec<Trial> = (0..6)
            .flat_map(|b| {
                let i = b as usize;
                [ok(b, NATIVE, 100.0), twin(b, 100.0 * twins[i]), ok(b, GUEST, 100.0 * taxes[i])]
            })
            .collect();
        assert_eq!(figures(&summarize(&[NATIVE, GUEST], &trials), GUEST).distinguishable, Some(expected), "{taxes:?}");
    };
    let calm = [0.999, 1.0, 1.0, 1.0, 1.0, 1.001];
    let restless = [0.9, 0.95, 1.06, 1.06, 1.06, 1.1];
    check([1.04, 1.05, 1.05, 1.05, 1.05, 1.06], calm, true);
    check([0.94, 0.95, 0.95, 0.95, 0.95, 0.96], calm, true);
    check([1.04, 1.05, 1.05, 1.05, 1.05, 1.06], restless, false);
    check([0.94, 0.95, 0.95, 0.95, 0.95, 0.96], restless, false);
    check([0.90, 0.95, 1.05, 1.05, 1.05, 1.06], calm, false);
}

#[test]
fn without_a_twin_or_with_one_block_nothing_is_said_about_distinguishable() {
    let without_twin: Vec<Trial> =
        seven_blocks().into_iter().filter(|trial| trial.cell.replica == Replica::A).collect();
    let summary = summarize(&[NATIVE, GUEST], &without_twin);
    assert_eq!((summary.noise_floor, summary.blocks), (None, 0));
    assert_eq!(figures(&summary, GUEST).distinguishable, None);
    let summary = summarize(&[NATIVE, GUEST], &seven_blocks()[..3]);
    assert_eq!((figures(&summary, GUEST).tax.unwrap().interval, summary.blocks), (None, 1));
    assert_eq!(figures(&summary, GUEST).distinguishable, None);
}

#[test]
fn rows_stand_in_the_order_of_the_table_whatever_became_of_them() {
    let requested = [GUEST_2M, GUEST, NATIVE_2M, NATIVE];
    let trials = [ok(0, NATIVE, 10.0), failed(0, GUEST, "KVM kept 4 KiB leaves"), failed(1, GUEST, "later")];
    let summary = Summary::of(&requested, &[missing(NATIVE_2M)], &trials).unwrap();
    assert_eq!(summary.cells.iter().map(|cell| cell.setting).collect::<Vec<_>>(), [NATIVE, NATIVE_2M, GUEST, GUEST_2M]);
    let [native, unavailable, failed, untried] = &summary.cells[..] else { panic!("four rows") };
    assert_eq!(native.figures().unwrap().value.value, 10.0);
    let Unavailable { reason, remedy, .. } = missing(NATIVE_2M);
    assert_eq!(unavailable.outcome, Outcome::Unavailable { reason, remedy });
    assert_eq!(failed.outcome, Outcome::Failed { reason: "KVM kept 4 KiB leaves".to_owned() });
    assert_eq!(failed.failures.len(), 2);
    assert_eq!(untried.outcome, Outcome::Failed { reason: "no trial was made".to_owned() });
}

#[test]
fn a_failed_trial_is_counted_and_takes_its_block_out_of_the_tax_only() {
    let mut trials = seven_blocks();
    trials[0] = failed(0, NATIVE, "stolen");
    trials[4].outcome = trial::Outcome::Failed { reason: "split".to_owned() };
    trials[8].outcome = trial::Outcome::Ok(Measurement { batches_ns: vec![], ..measured(1.0) });
    let summary = summarize(&[NATIVE, GUEST], &trials);
    assert_eq!(summary.blocks, 7);
    assert_eq!(summary.cells[0].failures, ["stolen", "A': split"]);
    assert_eq!(summary.cells[1].failures, ["NaN ns an access is no time"]);
    let guest = figures(&summary, GUEST);
    assert_eq!((guest.trials, guest.tax.unwrap().n, summary.noise_floor.unwrap().n), (6, 5, 5));
}

#[test]
fn a_setting_that_became_unavailable_is_judged_by_its_trials() {
    let summary = Summary::of(&[NATIVE], &[missing(NATIVE)], &[ok(0, NATIVE, 10.0)]).unwrap();
    assert!(summary.cells[0].figures().is_some());
    assert_eq!(summary.baseline, Some(NATIVE));
    let summary = Summary::of(&[NATIVE, NATIVE_2M], &[missing(NATIVE)], &[]).unwrap();
    assert_eq!((summary.baseline, summary.blocks), (Some(NATIVE_2M), 0));
}

#[test]
fn evidence_is_the_last_trials_and_dissent_is_named() {
    let with = |block, kernel_page_kb, kvm, faults| {
        let evidence = Evidence { kernel_page_kb, thp_coverage: 0.0, kvm: Some(KvmCounts { faults, ..kvm }) };
        trial(block, GUEST, Replica::A, trial::Outcome::Ok(Measurement { evidence, ..measured(1.0) }))
    };
    let huge = KvmCounts { pages_4k: 511, pages_2m: 1, ..KvmCounts::default() };
    let split = KvmCounts { pages_4k: 512, ..KvmCounts::default() };
    let agreed = [with(1, 4, huge, 9), with(0, 4, huge, 3)];
    let summary = summarize(&[GUEST], &agreed);
    assert_eq!(figures(&summary, GUEST).dissent, None);
    assert_eq!(figures(&summary, GUEST).evidence.kvm.unwrap().faults, 9);
    let summary = summarize(&[GUEST], &[with(0, 4, split, 3), with(1, 2048, huge, 4), with(2, 4, huge, 5)]);
    let dissent = figures(&summary, GUEST).dissent.unwrap();
    assert_eq!((dissent.trials, dissent.evidence.kvm.unwrap().pages_4k), (2, 512));
}

#[test]
fn caveats_are_counted_by_kind_with_the_worst_figure() {
    let with = |block, caveats: &[Caveat]| {
        let caveats = caveats.to_vec();
        trial(block, NATIVE, Replica::A, trial::Outcome::Ok(Measurement { caveats, ..measured(1.0) }))
    };
    let thp = |share| Caveat::ThpCoverage { share };
    let frequency = |by| Caveat::Frequency { by };
    let trials = [with(0, &[frequency(0.03), thp(0.9)]), with(1, &[thp(0.5)]), with(2, &[thp(0.7), frequency(-0.04)])];
    let summary = summarize(&[NATIVE], &trials);
    let count = |worst, trials| CaveatCount { worst, trials };
    assert_eq!(figures(&summary, NATIVE).caveats, [count(thp(0.5), 3), count(frequency(-0.04), 2)]);
}

#[test]
fn the_widest_interval_decides_when_to_stop() {
    assert_eq!(summarize(&[NATIVE], &[]).worst_relative_half_width(), None);
    assert_eq!(summarize(&[NATIVE], &[ok(0, NATIVE, 10.0)]).worst_relative_half_width(), None);
    let mut trials = vec![ok(0, NATIVE, 10.0), ok(1, NATIVE, 10.0), failed(0, NATIVE_2M, "no"), ok(0, GUEST, 20.0)];
    let requested = [NATIVE, NATIVE_2M, GUEST];
    assert_eq!(summarize(&requested, &trials).worst_relative_half_width(), None);
    trials.push(ok(1, GUEST, 20.0));
    assert_eq!(summarize(&requested, &trials).worst_relative_half_width(), Some(0.0));
    // Values drift together: the ratio is known exactly, the values are not.
    trials.extend([ok(2, NATIVE, 11.0), ok(2, GUEST, 22.0)]);
    let summary = summarize(&requested, &trials);
    assert_eq!(figures(&summary, GUEST).tax.unwrap().half_width(), Some(0.0));
    let value = figures(&summary, GUEST).value;
    assert_eq!(summary.worst_relative_half_width(), Some(value.half_width().unwrap() / value.value));
}

#[test]
fn two_trials_of_a_cell_in_one_block_and_trials_nobody_asked_for_are_refused() {
    let check = |trials: &[Trial], expected: &str| {
        assert_eq!(Summary::of(&[NATIVE], &[], trials).unwrap_err().to_string(), expected);
    };
    check(
        &[ok(3, NATIVE, 1.0), ok(2, NATIVE, 1.0), ok(3, NATIVE, 2.0)],
        "block 3 holds two trials of native on 4k (A)",
    );
    check(&[ok(0, GUEST, 1.0)], "block 0 holds a trial of guest 4k on 4k, which was not asked for");
}

#[test]
fn a_summary_survives_the_results_file() {
    let summary = Summary::of(&[NATIVE, GUEST, NATIVE_2M], &[missing(NATIVE_2M)], &seven_blocks()).unwrap();
    let text = serde_json::to_string(&summary).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
}

/// Up to eight blocks of a native and a guest cell, and the twin.
fn any_blocks() -> impl Strategy<Value = Vec<Trial>> {
    prop::collection::vec((1.0..500.0f64, 1.0..500.0f64, 1.0..500.0f64), 1..9).prop_map(|blocks| {
        let trials = blocks.into_iter().zip(0..).flat_map(|((native, again, guest), block)| {
            [ok(block, NATIVE, native), twin(block, again), ok(block, GUEST, guest)]
        });
        trials.collect()
    })
}

proptest! {
    #[test]
    fn a_clock_that_runs_faster_changes_no_tax(trials in any_blocks(), factor in 0.01..100.0f64) {
        let faster: Vec<Trial> = trials.iter().cloned().map(|mut trial| {
            if let trial::Outcome::Ok(measurement) = &mut trial.outcome {
                measurement.batches_ns.iter_mut().for_each(|ns| *ns *= factor);
            }
            trial
        }).collect();
        let tax = |trials: &[Trial]| figures(&summarize(&[NATIVE, GUEST], trials), GUEST).tax.unwrap();
        let (before, after) = (tax(&trials), tax(&faster));
        let ends = |tax: Estimate| tax.interval.map_or([tax.value; 2], |i| [i.lo, i.hi]);
        let [lo, hi] = ends(before);
        for (before, after) in [(before.value, after.value), (lo, ends(after)[0]), (hi, ends(after)[1])] {
            // Not as a ratio of ratios: the lower end of two blocks far apart is −1 to the last bit, and 0/0 is no number.
            prop_assert!((after - before).abs() <= 1e-9 * (1.0 + before.abs()), "{before} {after}");
        }
    }

    #[test]
    fn the_order_in_which_trials_are_read_does_not_matter(
        (trials, shuffled) in any_blocks().prop_flat_map(|t| (Just(t.clone()), Just(t).prop_shuffle())),
    ) {
        prop_assert_eq!(summarize(&[NATIVE, GUEST], &trials), summarize(&[GUEST, NATIVE], &shuffled));
    }
}
