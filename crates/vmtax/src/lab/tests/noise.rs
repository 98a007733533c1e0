//! A against A reports no difference more often than it may; an injected one is found.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::*;

/// Runs of each kind.
const RUNS: u32 = 1000;
/// Noise of a trial.
const SIGMA: f64 = 0.02;

pub fn dice(seed: u64) -> Pcg64 {
    Pcg64::seed_from_u64(seed)
}

/// `exp(sigma z)`, with z nearly normal: twelve uniform numbers have a variance of one.
pub fn factor(dice: &mut Pcg64, sigma: f64) -> f64 {
    let z: f64 = (0..12).map(|_| dice.random::<f64>()).sum::<f64>() - 6.0;
    (sigma * z).exp()
}

/// How many of [`RUNS`] runs of 7 blocks call a guest with this tax distinguishable from native.
fn found(tax: f64) -> u32 {
    let is_found = |seed: &u32| {
        let mut dice = dice(u64::from(*seed));
        let mut rig = Mock::new(|setting: Setting, _| {
            let level = if setting.guest.is_some() { 100.0 * (1.0 + tax) } else { 100.0 };
            Ok(measured(setting, level * factor(&mut dice, SIGMA)))
        });
        let plan = Plan { seed: u64::from(*seed), ..plan(&[NATIVE, GUEST], Until::Blocks(7)) };
        figures(&unkept(&mut rig, &plan).summary().unwrap(), GUEST).distinguishable.unwrap()
    };
    (0..RUNS).filter(is_found).count() as u32
}

#[test]
fn a_against_a_reports_a_difference_in_one_run_of_twenty_at_most() {
    // One in twenty, and three standard deviations of the binomial distribution: 50 + 3 * sqrt(1000 * 0.05 * 0.95).
    let n = found(0.0);
    assert!(n <= 70, "{n} of {RUNS}");
}

#[test]
fn an_injected_tax_of_five_per_cent_is_found_in_nine_runs_of_ten() {
    let n = found(0.05);
    assert!(n >= 900, "{n} of {RUNS}");
}
