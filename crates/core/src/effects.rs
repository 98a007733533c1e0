//! What each factor does: main effects and two-factor interactions, as ratios, with intervals over blocks.
//!
//! Times multiply, so effects are differences of logarithms, shown as changes in per cent. Of one metric of one
//! workload:
//! - The **main effect** of a level is the change from the factor's reference level (that of the baseline) with
//!   everything else equal, on average over the other factors.
//! - The **interaction** of two levels is how much more one of them does with the other there than with the other's
//!   reference level: `host 2m with guest 2m: a further −15 %`. It is the ratio of two ratios, on average over further
//!   factors.
//!
//! # How
//! In each block, by least squares on the logarithms of its cells: main effects from a model without interactions,
//! interactions from a model with all of two factors. A block has its own mean in either, so that its level cancels: it
//! is a fixed effect. In a balanced design this is the plain average over the other factors' levels. After exclusions
//! and failed trials the design is unbalanced ([`Balance`]), least squares weighs what there is, and an effect that the
//! cells of a block do not tell apart from others is not estimated from it.
//!
//! The estimate is the median of the blocks' values with its interval, as everywhere ([`crate::stats`]). Only blocks
//! replicate: what a whole plot does to all of its cells does not cancel in the effect of its knob, but differs from
//! block to block, and is so part of that effect's interval. Effects of what is randomized within whole plots are free
//! of it.
//!
//! A factor that does not apply to a setting (the guest leaf of a native one) is not varied there: its effects come
//! from the settings that have it, and the effect of the venue is that of a guest with the reference leaf.
//!
//! # What counts as found
//! An effect is distinguishable when its p-value, adjusted by Holm's procedure for all effects listed together, is
//! below 0.05, and it is larger than the difference A′/A that the baseline's twin shows where there is none. The
//! intervals are not adjusted: each covers its effect 95 times in 100. The p-value is the interval read backwards
//! ([`crate::stats::p_value`]).
//!
//! Tried on 2,000 simulated experiments each: 4 factors of 2 levels (10 effects), 2 % noise a trial, A/A or one main
//! effect of 5 %. Per cent of the experiments with an effect that is none / with the effect, before the comparison with
//! A′/A:
//!
//! | p-value, with Holm but for the second row | n = 5, normal | n = 7, normal | n = 7, t(2) | n = 10, t(2) |
//! |---|---|---|---|---|
//! | sign test | 0 / 0 | 0 / 0 | 0 / 0 | 2.5 / 73 |
//! | sign flips of blocks, largest t of all (Westfall and Young 1993) | 0 / 0 | 4.7 / 100 | 4.6 / 78 | 5.9 / 94 |
//! | t-test | 4.3 / 100 | 5.1 / 100 | 2.9 / 72 | 3.1 / 89 |
//! | this one | 5.1 / 40 | 4.5 / 94 | 4.8 / 47 | 5.5 / 89 |
//!
//! The t-test and the sign flips find more, but they are tests of the mean, and would now and then contradict the
//! interval printed beside them. Plan seven blocks or more: with five an effect of 5 % is missed more often than not.
//! `tests/effects.rs` repeats the last row for 5 and 7 blocks.

mod design;
mod words;

use serde::Serialize;

use crate::{
    factor::{Factor, Level},
    plan::{Setting, Varied},
    setting::Replica,
    stats::{self, Estimate},
};
use design::Design;

/// One value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The block, from 0.
    pub block: u32,
    /// What was set.
    pub setting: Setting,
    /// Which of the two, where there are two.
    pub replica: Replica,
    /// What was measured: positive; others are left out.
    pub value: f64,
}

/// Everything that the observations say about the factors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effects {
    /// Whether levels occur together equally often.
    pub balance: Balance,
    /// The reference level of each factor.
    pub references: Vec<Choice>,
    /// Main effects, then interactions, by factor and level.
    pub effects: Vec<Effect>,
    /// What the settings that were measured do not tell apart from other effects.
    pub inestimable: Vec<Term>,
    /// The ratio A′/A; none before both have been measured in one block.
    pub noise_floor: Option<Estimate>,
}

/// What an effect is the effect of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Term {
    /// A level, against the reference level of its factor.
    Main(Choice),
    /// Two levels together, beyond what each does alone.
    Interaction(Choice, Choice),
}

/// A factor and one of its levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The factor.
    #[serde(serialize_with = "name")]
    pub factor: &'static Factor,
    /// The level.
    pub level: Level,
}

/// An effect with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// Of what.
    pub term: Term,
    /// The ratio, minus one; its interval is not adjusted for the number of effects.
    pub change: Estimate,
    /// The p-value of "no effect"; none for a single block.
    pub p: Option<f64>,
    /// The same, adjusted by Holm's procedure for all effects of the list.
    pub p_adjusted: Option<f64>,
    /// Whether it is one, by the rule above; none for a single block, and without a noise floor.
    pub distinguishable: Option<bool>,
}

/// Whether the levels of any two factors occur together equally often in every block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Balance {
    /// They do: effects are plain averages.
    Balanced,
    /// They do not: effects are by least squares within blocks, and rest on there being no interactions of a higher
    /// order than the model has.
    LeastSquares,
}

impl Effects {
    /// The effects of `factors`, the first level of each being its reference, on one metric of one workload.
    ///
    /// Factors of one level have no effect; observations of the baseline's twin count for the noise floor alone.
    pub fn of(factors: &[Varied], observations: &[Observation]) -> Effects {
        let usable: Vec<&Observation> = observations.iter().filter(|o| o.value > 0.0 && o.value.is_finite()).collect();
        let noise_floor = noise_floor(&usable);
        let design = Design::of(factors, &usable);
        let mut effects = Vec::new();
        let mut inestimable = Vec::new();
        for (term, ratios) in design.ratios() {
            match Estimate::of_median(&ratios) {
                Some(ratio) => effects.push(Effect {
                    term,
                    change: ratio.minus_one(),
                    p: stats::p_value(&ratios),
                    p_adjusted: None,
                    distinguishable: None,
                }),
                None => inestimable.push(term),
            }
        }
        adjust(&mut effects);
        for effect in &mut effects {
            effect.distinguishable = effect.judge(noise_floor);
        }
        let references = factors.iter().map(|v| Choice { factor: v.factor, level: v.levels[0] }).collect();
        Effects { balance: design.balance(), references, effects, inestimable, noise_floor }
    }
}

impl Effect {
    fn judge(&self, noise_floor: Option<Estimate>) -> Option<bool> {
        let size = (1.0 + self.change.value).ln().abs();
        Some(self.p_adjusted? < 1.0 - stats::CONFIDENCE && size > noise_floor?.value.ln().abs())
    }
}

/// Fills in Holm's values, for the effects that have a p-value.
fn adjust(effects: &mut [Effect]) {
    let raw: Vec<f64> = effects.iter().filter_map(|effect| effect.p).collect();
    let judged = effects.iter_mut().filter(|effect| effect.p.is_some());
    for (effect, adjusted) in judged.zip(stats::holm(&raw)) {
        effect.p_adjusted = Some(adjusted);
    }
}

/// The ratio of the twin to what it is the twin of, over the blocks that have both.
fn noise_floor(observations: &[&Observation]) -> Option<Estimate> {
    let partner = |twin: &Observation| {
        let is_partner =
            |o: &&&Observation| o.replica == Replica::A && o.block == twin.block && o.setting == twin.setting;
        observations.iter().find(is_partner).map(|o| o.value)
    };
    let twins = observations.iter().filter(|o| o.replica == Replica::APrime);
    let pairs: Vec<(f64, f64)> = twins.filter_map(|twin| Some((twin.value, partner(twin)?))).collect();
    Estimate::of_ratio(&pairs)
}

fn name<S: serde::Serializer>(factor: &&'static Factor, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(factor.name)
}

#[cfg(test)]
mod tests;
