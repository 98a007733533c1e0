//! Intervals contain the truth as often as they claim, on noise as ugly as a shared machine's.
//!
//! Every case is [`RUNS`] simulated runs with a fixed seed. The figures are printed by
//! `cargo test -p vmtax-core --test coverage -- --nocapture`.

use std::f64::consts::TAU;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use vmtax_core::{
    analysis::Summary,
    setting::{Backing, Cell, Replica, Setting},
    stats::Estimate,
    trial::{Evidence, Interference, Measurement, Outcome, Trial},
    units::PageSize,
};

const RUNS: u32 = 2000;
/// Numbers of blocks: those of a quick run, of a full one, and the ones where the levels of order statistics are worst.
const BLOCKS: [u32; 8] = [4, 5, 6, 7, 8, 10, 12, 20];
/// Relative noise of a trial on a quiet machine.
const SIGMA: f64 = 0.02;
/// Cells of a block, over which drift within the block spreads.
const PLACES: f64 = 12.0;

#[derive(Debug, Clone, Copy)]
enum Noise {
    Normal,
    /// Student's t with two degrees of freedom: infinite variance.
    T2,
    T3,
    /// Skewed; median 0.
    Lognormal,
    /// Normal, but one value in ten is ten times as wide.
    Contaminated,
}

impl Noise {
    const ALL: [Noise; 5] = [Noise::Normal, Noise::T2, Noise::T3, Noise::Lognormal, Noise::Contaminated];

    /// One value with median 0 and a width of about 1.
    fn draw(self, dice: &mut Pcg64) -> f64 {
        match self {
            Noise::Normal => normal(dice),
            // The quantile function in closed form (Jones 2002, The Statistician 51, 41-49).
            Noise::T2 => {
                let u = open_unit(dice);
                (2.0 * u - 1.0) / (2.0 * u * (1.0 - u)).sqrt()
            }
            Noise::T3 => {
                let square = (0..3).map(|_| normal(dice).powi(2)).sum::<f64>();
                normal(dice) / (square / 3.0).sqrt()
            }
            Noise::Lognormal => normal(dice).exp() - 1.0,
            Noise::Contaminated => normal(dice) * if dice.random_bool(0.1) { 10.0 } else { 1.0 },
        }
    }
}

/// Uniform in (0, 1), both ends excluded.
fn open_unit(dice: &mut Pcg64) -> f64 {
    (f64::from(dice.random::<u32>()) + 0.5) / (f64::from(u32::MAX) + 1.0)
}

/// Box and Muller's transform; one of the two values.
fn normal(dice: &mut Pcg64) -> f64 {
    (-2.0 * open_unit(dice).ln()).sqrt() * (TAU * open_unit(dice)).cos()
}

/// The share of simulated runs in which `happens`.
fn share(seed: u64, mut happens: impl FnMut(&mut Pcg64) -> bool) -> f64 {
    let mut dice = Pcg64::seed_from_u64(seed);
    f64::from((0..RUNS).map(|_| u32::from(happens(&mut dice))).sum::<u32>()) / f64::from(RUNS)
}

fn covers(estimate: Option<Estimate>, truth: f64) -> bool {
    estimate.and_then(|estimate| estimate.interval).expect("two blocks or more, all positive").contains(truth)
}

/// What a machine does to a time at this place of the run: a line over the run, in `SIGMA`s, and a level of the block.
fn level(block: u32, place: f64, n: u32, drift: f64, block_effect: f64) -> f64 {
    let progress = (f64::from(block) + place) / f64::from(n) - 0.5;
    (SIGMA * drift * progress + block_effect).exp()
}

/// A pair of times with this ratio in each of `n` blocks, at random places of it.
fn pairs(dice: &mut Pcg64, noise: Noise, n: u32, drift: f64, ratio: f64) -> Vec<(f64, f64)> {
    let pair = |block| {
        let block_effect = 0.3 * normal(dice);
        let mut time = || {
            let place = f64::from(dice.random_range(0..PLACES as u32)) / PLACES;
            100.0 * level(block, place, n, drift, block_effect) * (SIGMA * noise.draw(dice)).exp()
        };
        (time() * ratio, time())
    };
    (0..n).map(pair).collect()
}

#[test]
fn a_paired_ratio_is_covered_93_to_97_times_in_100_whatever_the_noise_and_the_drift() {
    for n in BLOCKS {
        for noise in Noise::ALL {
            for drift in [0.0, 20.0] {
                let covered =
                    share(n.into(), |dice| covers(Estimate::of_ratio(&pairs(dice, noise, n, drift, 1.2)), 1.2));
                println!("ratio, n = {n}, {noise:?}, drift {drift}: {:.1} %", 100.0 * covered);
                assert!((0.93..=0.97).contains(&covered), "n = {n}, {noise:?}, drift {drift}: {covered}");
            }
        }
    }
}

#[test]
fn a_value_is_covered_93_to_97_times_in_100_whatever_the_noise() {
    for n in BLOCKS {
        for noise in Noise::ALL {
            let covered = share(n.into(), |dice| covers(Estimate::of_median(&values(dice, noise, n, 0.0)), 100.0));
            println!("value, n = {n}, {noise:?}: {:.1} %", 100.0 * covered);
            assert!((0.93..=0.97).contains(&covered), "n = {n}, {noise:?}: {covered}");
        }
    }
}

#[test]
fn a_drift_across_the_run_makes_the_interval_of_a_value_too_wide_and_never_too_narrow() {
    for n in BLOCKS {
        // Symmetric noise: the median of all the run's levels together is then the level at its middle.
        for noise in [Noise::Normal, Noise::T2, Noise::T3, Noise::Contaminated] {
            for (drift, most) in [(1.0, 0.97), (2.0, 0.99), (4.0, 1.0)] {
                let covered =
                    share(n.into(), |dice| covers(Estimate::of_median(&values(dice, noise, n, drift)), 100.0));
                println!("value, n = {n}, {noise:?}, drift {drift}: {:.1} %", 100.0 * covered);
                assert!((0.93..=most).contains(&covered), "n = {n}, {noise:?}, drift {drift}: {covered}");
            }
        }
    }
}

#[test]
fn a_against_a_finds_a_difference_at_most_5_times_in_100() {
    // 5 %, and three standard deviations of a binomial share of so many runs.
    let most = 0.05 + 3.0 * (0.05 * 0.95 / f64::from(RUNS)).sqrt();
    for n in BLOCKS {
        for noise in Noise::ALL {
            let seed = 1000 + u64::from(n);
            let found = share(seed, |dice| !covers(Estimate::of_ratio(&pairs(dice, noise, n, 4.0, 1.0)), 1.0));
            println!("A/A, n = {n}, {noise:?}: {:.1} % differ", 100.0 * found);
            assert!(found <= most, "n = {n}, {noise:?}: {found}");
        }
    }
}

#[test]
fn a_tax_of_5_per_cent_is_found_9_times_in_10_and_none_is_not_found_in_7_blocks() {
    for (tax, least, most) in [(0.05, 0.9, 1.0), (0.0, 0.0, 0.05)] {
        let mut excluding = 0;
        let found = share(7, |dice| {
            let summary = run(dice, 7, tax);
            let guest = summary.cells[1].figures().expect("no trial failed");
            excluding += u32::from(!covers(guest.tax, 0.0));
            guest.distinguishable.expect("seven blocks and a twin")
        });
        println!(
            "tax {tax}: {:.1} % distinguishable, {:.1} % exclude 0",
            100.0 * found,
            100.0 * f64::from(excluding) / f64::from(RUNS)
        );
        assert!((least..=most).contains(&found), "tax {tax}: {found}");
    }
}

/// One time in each of `n` blocks, whose median over endless runs is 100.
fn values(dice: &mut Pcg64, noise: Noise, n: u32, drift: f64) -> Vec<f64> {
    (0..n).map(|block| 100.0 * level(block, 0.5, n, drift, 0.0) * (SIGMA * noise.draw(dice)).exp()).collect()
}

const NATIVE: Setting = Setting::native(Backing::Small);
const GUEST: Setting = Setting::microvm(PageSize::Small, Backing::Small);

/// A run of `n` blocks of native, its twin and a guest that costs `tax` more; normal noise, drift of 4 `SIGMA`s.
fn run(dice: &mut Pcg64, n: u32, tax: f64) -> Summary {
    let cells = [(NATIVE, Replica::A, 1.0), (NATIVE, Replica::APrime, 1.0), (GUEST, Replica::A, 1.0 + tax)];
    let mut trials = Vec::new();
    for block in 0..n {
        for (setting, replica, factor) in cells {
            let place = f64::from(dice.random_range(0..PLACES as u32)) / PLACES;
            let ns = factor * level(block, place, n, 4.0, 0.0) * (SIGMA * normal(dice)).exp();
            let outcome = Outcome::Ok(Measurement {
                batches_ns: vec![ns],
                first_pass_ns: ns,
                evidence: Evidence::default(),
                interference: Interference::default(),
                caveats: Vec::new(),
            });
            trials.push(Trial { block, place: 0, cell: Cell { setting, replica }, outcome });
        }
    }
    Summary::of(&[NATIVE, GUEST], &[], &trials).expect("every trial is asked for, once")
}
