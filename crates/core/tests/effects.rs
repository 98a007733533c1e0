//! Effects that are none are rarely flagged, and one that is there is found.
//!
//! The figures are printed by `cargo test -p vmtax-core --test effects -- --nocapture`.

use std::f64::consts::TAU;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use vmtax_core::{
    effects::{Effects, Observation, Term},
    factor::{Factor, Level},
    plan::{Setting, Varied},
    setting::Replica,
};

const RUNS: u32 = 600;
/// Relative noise of a trial on a quiet machine.
const SIGMA: f64 = 0.02;

#[derive(Debug, Clone, Copy)]
enum Noise {
    Normal,
    /// Student's t with two degrees of freedom: infinite variance.
    T2,
}

fn open_unit(dice: &mut Pcg64) -> f64 {
    (f64::from(dice.random::<u32>()) + 0.5) / (f64::from(u32::MAX) + 1.0)
}

fn normal(dice: &mut Pcg64) -> f64 {
    (-2.0 * open_unit(dice).ln()).sqrt() * (TAU * open_unit(dice)).cos()
}

impl Noise {
    fn draw(self, dice: &mut Pcg64) -> f64 {
        match self {
            Noise::Normal => normal(dice),
            // The quantile function in closed form (Jones 2002, The Statistician 51, 41-49).
            Noise::T2 => {
                let u = open_unit(dice);
                (2.0 * u - 1.0) / (2.0 * u * (1.0 - u)).sqrt()
            }
        }
    }
}

/// Four factors of two levels: four main effects and six interactions.
fn factors() -> Vec<Varied> {
    [("host", ["4k", "2m"]), ("order", ["sequential", "random"]), ("thp", ["always", "never"]), ("vcpus", ["1", "2"])]
        .into_iter()
        .map(|(name, levels)| {
            let factor = Factor::named(name).expect("in the table");
            Varied { factor, levels: levels.map(|level| factor.levels.parse(level).expect("a level")).to_vec() }
        })
        .collect()
}

fn settings(factors: &[Varied]) -> Vec<Setting> {
    (0..1 << factors.len())
        .map(|bits: usize| {
            Setting::new(factors.iter().enumerate().map(|(i, varied)| (varied.factor, varied.levels[bits >> i & 1])))
        })
        .collect()
}

/// What an experiment is up against.
#[derive(Debug, Clone, Copy)]
struct World {
    noise: Noise,
    /// Blocks.
    n: u32,
    /// What 2 MiB backing costs more; nothing else differs.
    effect: f64,
    /// How much whole plots differ, in `SIGMA`s.
    whole_plots: f64,
}

fn observations(settings: &[Setting], world: World, dice: &mut Pcg64) -> Vec<Observation> {
    let World { noise, n, effect, whole_plots } = world;
    let mut observations = Vec::new();
    for block in 0..n {
        let level = 0.3 * normal(dice);
        let plots = [whole_plots * SIGMA * normal(dice), whole_plots * SIGMA * normal(dice)];
        let twin = (&settings[0], Replica::APrime);
        for (setting, replica) in settings.iter().map(|setting| (setting, Replica::A)).chain([twin]) {
            let truth = if setting.named("host") == Some(Level::Word("2m")) { (1.0 + effect).ln() } else { 0.0 };
            let plot = plots[usize::from(setting.named("thp") == Some(Level::Word("never")))];
            let value = 100.0 * (level + plot + truth + SIGMA * noise.draw(dice)).exp();
            observations.push(Observation { block, setting: setting.clone(), replica, value });
        }
    }
    observations
}

/// The share of runs in which the effect of 2 MiB backing is found, and in which any other is.
fn shares(world: World) -> (f64, f64) {
    let factors = factors();
    let settings = settings(&factors);
    let mut dice = Pcg64::seed_from_u64(world.n.into());
    let (mut found, mut false_alarms) = (0, 0);
    for _ in 0..RUNS {
        let effects = Effects::of(&factors, &observations(&settings, world, &mut dice)).effects;
        assert_eq!(effects.len(), 10);
        let is_meant = |term: Term| matches!(term, Term::Main(choice) if choice.factor.name == "host");
        let flagged = |meant: bool| {
            effects.iter().any(|effect| is_meant(effect.term) == meant && effect.distinguishable == Some(true))
        };
        found += u32::from(flagged(true));
        false_alarms += u32::from(flagged(false));
    }
    println!("{world:?}: found {found}, false alarms {false_alarms} of {RUNS}");
    (f64::from(found) / f64::from(RUNS), f64::from(false_alarms) / f64::from(RUNS))
}

#[test]
fn a_family_of_ten_effects_that_are_none_is_flagged_at_most_5_times_in_100() {
    // Three standard deviations of a binomial share of so many runs.
    let most = 0.05 + 3.0 * (0.05 * 0.95 / f64::from(RUNS)).sqrt();
    let worlds = [(Noise::Normal, 5, 0.0), (Noise::Normal, 7, 0.0), (Noise::Normal, 7, 3.0), (Noise::T2, 7, 0.0)];
    for (noise, n, whole_plots) in worlds {
        let world = World { noise, n, effect: 0.0, whole_plots };
        let (meant, others) = shares(world);
        // Together they are the family; a sum counts twice what flags both, and so is on the safe side.
        assert!(meant + others <= most, "{world:?}: {}", meant + others);
    }
}

#[test]
fn five_per_cent_are_found_9_times_in_10_in_7_blocks() {
    let (found, false_alarms) = shares(World { noise: Noise::Normal, n: 7, effect: 0.05, whole_plots: 0.0 });
    assert!(found >= 0.9, "{found}");
    assert!(false_alarms <= 0.05 + 3.0 * (0.05 * 0.95 / f64::from(RUNS)).sqrt(), "{false_alarms}");
}
