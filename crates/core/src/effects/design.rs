//! Which combination of a block's cells is which effect: linear models, and the contrasts that estimate them.
//!
//! A model is a table of indicators, a row a cell and a column a term. Its least-squares estimate of a term is a
//! weighted sum of the cells' logarithms, and the weights depend on the cells alone: they are computed once for all
//! blocks that have the same cells.

use std::collections::BTreeMap;

use super::{Balance, Choice, Observation, Term};
use crate::{
    factor::Level,
    plan::{Setting, Varied},
    setting::Replica,
};

/// All blocks, gathered by the cells they have.
pub(super) struct Design {
    mains: Vec<Term>,
    interactions: Vec<Term>,
    /// By cells: their settings, and the logarithms of one block after the other.
    shapes: Vec<(Vec<Setting>, Vec<Vec<f64>>)>,
    factors: Vec<Varied>,
}

impl Design {
    pub fn of(factors: &[Varied], observations: &[&Observation]) -> Design {
        let mut settings: Vec<&Setting> = Vec::new();
        let mut blocks: BTreeMap<u32, BTreeMap<usize, f64>> = BTreeMap::new();
        for observation in observations.iter().filter(|o| o.replica == Replica::A) {
            let known = settings.iter().position(|setting| **setting == observation.setting);
            let cell = known.unwrap_or_else(|| {
                settings.push(&observation.setting);
                settings.len() - 1
            });
            blocks.entry(observation.block).or_default().insert(cell, observation.value.ln());
        }
        let mut shapes: BTreeMap<Vec<usize>, Vec<Vec<f64>>> = BTreeMap::new();
        for block in blocks.into_values() {
            shapes.entry(block.keys().copied().collect()).or_default().push(block.into_values().collect());
        }
        let shapes = shapes
            .into_iter()
            .map(|(cells, blocks)| (cells.into_iter().map(|cell| settings[cell].clone()).collect(), blocks))
            .collect();
        let mains = factors.iter().flat_map(choices).map(Term::Main).collect();
        Design { mains, interactions: interactions(factors, &settings), shapes, factors: factors.to_vec() }
    }

    /// Every term with its ratio in each block that tells it: main effects first.
    pub fn ratios(&self) -> Vec<(Term, Vec<f64>)> {
        let with_interactions = [&self.mains[..], &self.interactions].concat();
        let mut ratios = self.fit(&self.mains);
        ratios.extend(self.fit(&with_interactions).into_iter().skip(self.mains.len()));
        ratios
    }

    /// Every term of one model with its ratio in each block that tells it.
    fn fit(&self, terms: &[Term]) -> Vec<(Term, Vec<f64>)> {
        let mut fitted: Vec<(Term, Vec<f64>)> = terms.iter().map(|term| (*term, Vec::new())).collect();
        for (settings, blocks) in &self.shapes {
            for ((_, ratios), weights) in fitted.iter_mut().zip(contrasts(settings, terms)) {
                let Some(weights) = weights else { continue };
                let sum = |logs: &Vec<f64>| weights.iter().zip(logs).map(|(weight, log)| weight * log).sum::<f64>();
                ratios.extend(blocks.iter().map(|logs| sum(logs).exp()));
            }
        }
        fitted
    }

    pub fn balance(&self) -> Balance {
        match self.shapes.len() <= 1 && self.shapes.iter().all(|(settings, _)| self.is_balanced(settings)) {
            true => Balance::Balanced,
            false => Balance::LeastSquares,
        }
    }

    /// Whether the levels of any two factors occur together in proportion: `N(a, b) N = N(a) N(b)`.
    fn is_balanced(&self, settings: &[Setting]) -> bool {
        let pairs = pairs(&self.factors);
        pairs.into_iter().all(|(one, other)| {
            let mut cells: BTreeMap<[Option<Level>; 2], usize> = BTreeMap::new();
            for setting in settings {
                *cells.entry([one, other].map(|varied| setting.named(varied.factor.name))).or_default() += 1;
            }
            let with = |i: usize, level| cells.iter().filter(|(k, _)| k[i] == level).map(|(_, n)| n).sum::<usize>();
            let levels = |i: usize| cells.keys().map(|key| key[i]).collect::<Vec<_>>();
            let together = |a, b| cells.get(&[a, b]).copied().unwrap_or(0);
            levels(0)
                .into_iter()
                .all(|a| levels(1).into_iter().all(|b| together(a, b) * settings.len() == with(0, a) * with(1, b)))
        })
    }
}

/// The levels of a factor other than its reference.
fn choices(varied: &Varied) -> impl Iterator<Item = Choice> + '_ {
    varied.levels.iter().skip(1).map(|&level| Choice { factor: varied.factor, level })
}

fn pairs(factors: &[Varied]) -> Vec<(&Varied, &Varied)> {
    factors.iter().enumerate().flat_map(|(i, one)| factors[i + 1..].iter().map(move |other| (one, other))).collect()
}

/// The pairs of levels that occur together, of factors that are crossed. A factor that is missing wherever another has
/// its reference level (the guest leaf, without a venue of that kind) is nested in it: there is no interaction to ask
/// for.
fn interactions(factors: &[Varied], settings: &[&Setting]) -> Vec<Term> {
    let has = |setting: &Setting, choice: &Choice| setting.named(choice.factor.name) == Some(choice.level);
    let is_nested = |inner: &Varied, outer: &Varied| {
        let reference = Choice { factor: outer.factor, level: outer.levels[0] };
        !settings.iter().any(|s| has(s, &reference) && s.named(inner.factor.name).is_some())
    };
    let crossed = pairs(factors).into_iter().filter(|(one, other)| !is_nested(one, other) && !is_nested(other, one));
    crossed
        .flat_map(|(one, other)| choices(one).flat_map(move |a| choices(other).map(move |b| (a, b))))
        .filter(|(a, b)| settings.iter().any(|s| has(s, a) && has(s, b)))
        .map(|(a, b)| Term::Interaction(a, b))
        .collect()
}

/// The weights of the cells in the least-squares estimate of each term; none where the cells do not tell it.
fn contrasts(settings: &[Setting], terms: &[Term]) -> Vec<Option<Vec<f64>>> {
    let rows: Vec<Vec<f64>> = settings
        .iter()
        .map(|setting| std::iter::once(1.0).chain(terms.iter().map(|term| term.indicator(setting))).collect())
        .collect();
    let size = terms.len() + 1;
    let product = |i: usize, j: usize| rows.iter().map(|row| row[i] * row[j]).sum::<f64>();
    let normal: Vec<Vec<f64>> = (0..size).map(|i| (0..size).map(|j| product(i, j)).collect()).collect();
    let inverse = generalized_inverse(&normal);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    (1..size)
        .map(|term| {
            // Estimable are the combinations that the inverse brings back unharmed (Searle 1971, Linear Models, 5.4).
            let brought_back = |j: usize| dot(&inverse[term], &normal[j]);
            let is_unharmed = (0..size).all(|j| (brought_back(j) - f64::from(u8::from(j == term))).abs() < TOLERANCE);
            is_unharmed.then(|| rows.iter().map(|row| dot(row, &inverse[term])).collect())
        })
        .collect()
}

/// Sums of products of zeros and ones are whole numbers; what is left of one after sweeping is rounding below this.
const TOLERANCE: f64 = 1e-7;

/// A generalized inverse of a symmetric positive semidefinite matrix, by the sweep operator (Goodnight 1979, The
/// American Statistician 33, 149-158): columns that depend on those before them are left out, and have zeros.
fn generalized_inverse(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut a = matrix.to_vec();
    let mut is_swept = vec![false; a.len()];
    for k in 0..a.len() {
        let pivot = a[k][k];
        if pivot < TOLERANCE * matrix[k][k].max(1.0) {
            continue;
        }
        is_swept[k] = true;
        a[k].iter_mut().for_each(|x| *x /= pivot);
        let row = a[k].clone();
        for (i, other) in a.iter_mut().enumerate() {
            if i == k {
                continue;
            }
            let factor = std::mem::replace(&mut other[k], 0.0);
            other.iter_mut().zip(&row).for_each(|(x, r)| *x -= factor * r);
            other[k] = -factor / pivot;
        }
        a[k][k] = 1.0 / pivot;
    }
    for i in 0..a.len() {
        for j in 0..a.len() {
            if !is_swept[i] || !is_swept[j] {
                a[i][j] = 0.0;
            }
        }
    }
    a
}

impl Term {
    /// 1 for a setting that has its level, or both of them; 0 for others.
    fn indicator(&self, setting: &Setting) -> f64 {
        let has = |choice: &Choice| setting.named(choice.factor.name) == Some(choice.level);
        let holds = match self {
            Term::Main(choice) => has(choice),
            Term::Interaction(one, other) => has(one) && has(other),
        };
        f64::from(u8::from(holds))
    }
}
