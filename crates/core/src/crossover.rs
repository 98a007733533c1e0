//! Where one of two curves begins to win: the stride, say, from which small pages are cheaper than huge ones.
//!
//! # The crossover of one block
//! With `r` the logarithm of the ratio of both costs at each place, the place that contradicts `r` least: before it the
//! challenger should lose, from it on it should win, and every `r` of the wrong sign counts with its size.
//!
//! ```text
//!  r ▲ ●  ●                       r > 0: the challenger costs more
//!    │        ●
//!  0 ├───────────╳──────●────────►  log place
//!    │             ●       ●      wins from ╳ on, in spite of the flicker behind it
//! ```
//! Around the best cut `r` changes its sign, and a straight line between both places (costs and places on logarithmic
//! scales) gives the point between them. Tried and rejected: the first change of sign, and the last. Over 20 doublings
//! with 7 % noise of the ratio, and curves that differ by 40, 20 or 10 % far from the crossover, they stray from it by
//! (mean and standard deviation of 4,000 blocks, in doublings):
//!
//! | | 40 % | 20 % | 10 % |
//! |---|---|---|---|
//! | first change | 0.0 ± 0.2 | −0.2 ± 1.3 | −4.7 ± 4.6 |
//! | last change | 0.0 ± 0.2 | 0.0 ± 0.5 | +1.2 ± 1.9 |
//! | this one | 0.0 ± 0.2 | 0.0 ± 0.4 | 0.0 ± 0.9 |
//!
//! # Over blocks
//! The median of the blocks' crossovers, with the interval of [`crate::stats`]. A block whose curves do not cross says
//! that the crossover lies before the first place or behind the last one; it takes part with that, and an end of the
//! interval may be no more than that. "No crossover" is therefore a result: [`Reach::Before`] (the challenger wins
//! everywhere) or [`Reach::Beyond`] (it wins nowhere). Which of two curves is the challenger is for the caller to say:
//! the one that is expected to win at far places. One that wins at near places and loses later gives either, whichever
//! contradicts less.

mod reach;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use reach::{Reach, ReachInterval};

/// One value of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The block, from 0.
    pub block: u32,
    /// Where, positive: a stride in bytes, for instance.
    pub at: f64,
    /// The cost there: positive, less is better.
    pub cost: f64,
}

/// Where the challenger begins to win, over blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Crossover {
    /// The median of the blocks' crossovers.
    pub value: Reach,
    /// Its 95 % interval; none for a single block.
    pub interval: Option<ReachInterval>,
    /// Blocks it rests on, at least 1.
    pub n: u32,
}

impl Crossover {
    /// Where the challenger begins to win against the incumbent.
    ///
    /// A block counts with the places at which it has both; none when no block has two of them. The last value counts
    /// where a place is given twice.
    pub fn of(incumbent: &[Point], challenger: &[Point]) -> Option<Crossover> {
        let incumbent = by_block(incumbent);
        let curves: Vec<Vec<(f64, f64)>> = by_block(challenger)
            .iter()
            .filter_map(|(block, curve)| Some(log_ratios(incumbent.get(block)?, curve)))
            .filter(|curve| curve.len() > 1)
            .collect();
        let places = || curves.iter().flatten().map(|(place, _)| place.exp());
        let range = (places().fold(f64::INFINITY, f64::min), places().fold(0.0, f64::max));
        let mut reaches: Vec<Reach> = curves.iter().map(|curve| crossing(curve, range)).collect();
        reaches.sort_by(Reach::order);
        let n = reaches.len();
        let value = reach::middle(*reaches.get(n.checked_sub(1)? / 2)?, reaches[n / 2]);
        Some(Crossover { value, interval: ReachInterval::of_sorted(&reaches, range), n: n as u32 })
    }

    /// `small pages win from 31.2 KiB on [28.0 KiB, 36.1 KiB]`, or that there is no crossover; for places in bytes.
    pub fn sentence(&self, challenger: &str) -> String {
        let within = match self.interval {
            Some(ReachInterval { lo, hi, .. }) => format!(" [{}, {}]", lo.in_bytes(), hi.in_bytes()),
            None => ", from one block: no interval".to_owned(),
        };
        match self.value {
            Reach::Before(_) => format!("no crossover: {challenger} win everywhere, {}{within}", self.value.in_bytes()),
            Reach::At(_) => format!("{challenger} win from {} on{within}", self.value.in_bytes()),
            Reach::Beyond(_) => format!("no crossover: {challenger} win nowhere, {}{within}", self.value.in_bytes()),
        }
    }
}

/// The curve of each block: place (as ordered bits: positive numbers sort like them) to cost.
fn by_block(points: &[Point]) -> BTreeMap<u32, BTreeMap<u64, f64>> {
    let is_positive = |value: f64| value > 0.0 && value.is_finite();
    let mut curves: BTreeMap<u32, BTreeMap<u64, f64>> = BTreeMap::new();
    for point in points.iter().filter(|point| is_positive(point.at) && is_positive(point.cost)) {
        curves.entry(point.block).or_default().insert(point.at.to_bits(), point.cost);
    }
    curves
}

/// `(ln place, ln (challenger / incumbent))` wherever both have been measured, by place.
fn log_ratios(incumbent: &BTreeMap<u64, f64>, challenger: &BTreeMap<u64, f64>) -> Vec<(f64, f64)> {
    let both = challenger.iter().filter_map(|(at, cost)| Some((at, cost / incumbent.get(at)?)));
    both.map(|(at, ratio)| (f64::from_bits(*at).ln(), ratio.ln())).collect()
}

/// Where the challenger of one block begins to win; its places are among those from `first` to `last`.
fn crossing(curve: &[(f64, f64)], (first, last): (f64, f64)) -> Reach {
    // Cutting before the first place contradicts every loss; each place moved before the cut adds its win, or takes its
    // loss.
    let (mut contradiction, mut least, mut cut) = (0.0, 0.0, 0);
    for (nth, (_, ratio)) in curve.iter().enumerate() {
        contradiction -= ratio;
        if contradiction <= least {
            (least, cut) = (contradiction, nth + 1);
        }
    }
    match cut {
        0 => Reach::Before(first),
        n if n == curve.len() => Reach::Beyond(last),
        n => {
            let ((left, loss), (right, win)) = (curve[n - 1], curve[n]);
            Reach::At((left + (right - left) * loss / (loss - win)).exp())
        }
    }
}

#[cfg(test)]
mod tests;
