//! Known answers from statsmodels: `testdata/effects.py` prints `testdata/effects.json`. And the words.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Case {
    name: String,
    factors: BTreeMap<String, Vec<String>>,
    settings: Vec<BTreeMap<String, String>>,
    blocks: Vec<Vec<f64>>,
    effects: Vec<Known>,
}

#[derive(Deserialize)]
struct Known {
    term: String,
    change: f64,
    lo: Option<f64>,
    hi: Option<f64>,
    p: Option<f64>,
    holm: Option<f64>,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../../testdata/effects.json")).unwrap()
}

fn choice(factor: &str, level: &str) -> (&'static Factor, Level) {
    let factor = Factor::named(factor).unwrap();
    (factor, factor.levels.parse(level).unwrap())
}

impl Case {
    fn named(name: &str) -> Case {
        cases().into_iter().find(|case| case.name == name).unwrap()
    }

    fn factors(&self) -> Vec<Varied> {
        let varied = |factor: &'static Factor| {
            let levels = self.factors.get(factor.name)?;
            Some(Varied { factor, levels: levels.iter().map(|level| choice(factor.name, level).1).collect() })
        };
        crate::factor::FACTORS.iter().filter_map(varied).collect()
    }

    fn observations(&self) -> Vec<Observation> {
        let of_block = |(block, values): (usize, &Vec<f64>)| -> Vec<Observation> {
            let cells = self.settings.iter().zip(values);
            cells
                .map(|(setting, &value)| Observation {
                    block: block as u32,
                    setting: Setting::new(setting.iter().map(|(factor, level)| choice(factor, level))),
                    replica: Replica::A,
                    value,
                })
                .collect()
        };
        self.blocks.iter().enumerate().flat_map(of_block).collect()
    }

    /// With a twin of the first cell that differs by 1 %, up and down in turn.
    fn observations_with_twin(&self) -> Vec<Observation> {
        let mut observations = self.observations();
        let first = observations[0].setting.clone();
        let twin = |o: &Observation| {
            let value = o.value * if o.block.is_multiple_of(2) { 1.01 } else { 0.99 };
            Observation { replica: Replica::APrime, value, ..o.clone() }
        };
        let twins: Vec<Observation> = observations.iter().filter(|o| o.setting == first).map(twin).collect();
        observations.extend(twins);
        observations
    }
}

fn close(got: Option<f64>, known: Option<f64>) -> bool {
    match (got, known) {
        (Some(got), Some(known)) => (got - known).abs() < 1e-9,
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

#[test]
fn effects_intervals_and_p_values_are_statsmodels() {
    for case in cases() {
        let got = Effects::of(&case.factors(), &case.observations()).effects;
        let terms = |effects: &[Effect]| effects.iter().map(|e| e.term.to_string()).collect::<Vec<_>>();
        assert_eq!(terms(&got), case.effects.iter().map(|k| k.term.clone()).collect::<Vec<_>>(), "{}", case.name);
        for (effect, known) in got.iter().zip(&case.effects) {
            let interval = effect.change.interval;
            let [lo, hi] = [interval.map(|i| i.lo), interval.map(|i| i.hi)];
            let same = close(Some(effect.change.value), Some(known.change))
                && close(lo, known.lo)
                && close(hi, known.hi)
                && close(effect.p, known.p)
                && close(effect.p_adjusted, known.holm);
            assert!(same, "{}: {effect:?} for {}", case.name, known.term);
        }
    }
}

fn sentences(effects: &Effects) -> Vec<String> {
    effects.effects.iter().map(Effect::sentence).collect()
}

#[test]
fn the_published_study_says_what_its_authors_found_and_that_it_rests_on_one_block() {
    let case = Case::named("hugepage-2x2 as published");
    let effects = Effects::of(&case.factors(), &case.observations());
    assert_eq!(
        sentences(&effects),
        [
            "host 2m: +4.4 %, from one block: no interval",
            "guest 2m: +9.9 %, from one block: no interval",
            "host 2m with guest 2m: a further −3.9 %, from one block: no interval",
        ]
    );
    assert_eq!(effects.balance, Balance::Balanced);
}

#[test]
fn effects_are_told_with_their_interval_and_whether_they_are_any() {
    let case = Case::named("guest nested in venue");
    let effects = Effects::of(&case.factors(), &case.observations_with_twin());
    assert_eq!(
        sentences(&effects),
        [
            "venue microvm: +65 % [+61, +67]",
            "host 2m: −13 % [−14, −12]",
            "host 1g: −14 % [−15, −12]",
            "guest 2m: −16 % [−18, −14]",
            "venue microvm with host 2m: a further +0.4 % [−7.9, +6.5], not distinguishable from noise",
            "venue microvm with host 1g: a further −0.7 % [−3.8, +4.1], not distinguishable from noise",
            "host 2m with guest 2m: a further −15 % [−18, −11]",
            "host 1g with guest 2m: a further −13 % [−16, −12]",
        ]
    );
    assert_eq!(
        effects.notes(),
        [
            "each level against venue native, host 4k, guest 4k, on average over the other factors; \
             \"a further\" is beyond what a level does with those",
            "the levels do not occur together equally often: effects are by least squares within blocks",
        ]
    );
}

#[test]
fn what_the_settings_do_not_tell_apart_is_listed_and_not_estimated() {
    let mut case = Case::named("three factors, balanced");
    // Random order is measured with madvise alone, and madvise with random order alone.
    let keep: Vec<bool> =
        case.settings.iter().map(|setting| (setting["order"] == "random") == (setting["thp"] == "madvise")).collect();
    let kept = |i: &usize| keep[*i];
    case.settings = (0..keep.len()).filter(kept).map(|i| case.settings[i].clone()).collect();
    for block in &mut case.blocks {
        *block = (0..keep.len()).filter(kept).map(|i| block[i]).collect();
    }
    let effects = Effects::of(&case.factors(), &case.observations());
    let lost: Vec<String> = effects.inestimable.iter().map(Term::to_string).collect();
    assert!(lost.contains(&"order random".to_owned()) && lost.contains(&"thp madvise".to_owned()), "{lost:?}");
    assert!(effects.effects.iter().any(|effect| effect.term.to_string() == "thp never"));
}

#[test]
fn a_failed_trial_costs_an_effect_no_block() {
    let case = Case::named("three factors, balanced");
    let mut observations = case.observations();
    let whole = Effects::of(&case.factors(), &observations);
    observations.remove(40);
    let effects = Effects::of(&case.factors(), &observations);
    assert_eq!((whole.balance, effects.balance), (Balance::Balanced, Balance::LeastSquares));
    for (before, after) in whole.effects.iter().zip(&effects.effects) {
        assert_eq!(after.change.n, 7, "{}", after.term);
        assert!((before.change.value - after.change.value).abs() < 0.02, "{}", after.term);
    }
}

#[test]
fn nothing_follows_from_nothing() {
    let effects = Effects::of(&Case::named("guest nested in venue").factors(), &[]);
    assert!(effects.effects.is_empty() && effects.noise_floor.is_none());
}
