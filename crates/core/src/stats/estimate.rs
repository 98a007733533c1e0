//! A median with its interval.

use serde::{Deserialize, Serialize};

use super::{median, order::End};

/// The median over blocks of a positive quantity, or of a ratio of two, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median.
    pub value: f64,
    /// Where the truth is, 95 times in 100; none for a single block. Contains `value`.
    pub interval: Option<Interval>,
    /// Blocks it rests on, at least 1.
    pub n: u32,
}

/// A 95 % interval, in the unit of its estimate; `lo <= hi`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
    /// What the ends rest on.
    pub basis: Basis,
}

/// What the ends of an interval rest on: how much a reader has to believe about the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// They lie among the blocks' values (6 blocks and more): little about the shape of the noise is assumed.
    Interpolated,
    /// They lie beyond the blocks' values (2 to 5 blocks), as far as the shape of the noise (double exponential) is
    /// assumed to reach: wide, and for 2 or 3 blocks no more than a hint.
    Extrapolated,
}

impl Estimate {
    /// The median of one positive value a block, in any unit; the order of the blocks does not matter.
    ///
    /// None when there are no values, or one of them is not a positive number.
    pub fn of_median(values: &[f64]) -> Option<Estimate> {
        if values.is_empty() || !values.iter().copied().all(is_positive) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Estimate { value: median(&sorted), interval: Interval::of_sorted(&sorted), n: sorted.len() as u32 })
    }

    /// The median of the ratios of one `(numerator, denominator)` a block: what the block did to both cancels.
    ///
    /// None when there are no pairs, or a number among them is not positive.
    pub fn of_ratio(pairs: &[(f64, f64)]) -> Option<Estimate> {
        let ratios: Vec<f64> = pairs.iter().map(|(numerator, denominator)| numerator / denominator).collect();
        Estimate::of_median(&ratios)
    }

    /// The same minus one, value and interval: a ratio becomes a tax.
    pub fn minus_one(self) -> Estimate {
        let interval = self.interval.map(|i| Interval { lo: i.lo - 1.0, hi: i.hi - 1.0, ..i });
        Estimate { value: self.value - 1.0, interval, ..self }
    }

    /// Half the width of the interval, in the unit of the value; none where there is no interval.
    pub fn half_width(&self) -> Option<f64> {
        self.interval.map(|i| (i.hi - i.lo) / 2.0)
    }
}

impl Interval {
    /// The interval of the median of positive values in ascending order; none for fewer than two.
    fn of_sorted(sorted: &[f64]) -> Option<Interval> {
        let n = sorted.len();
        let End { base, weight } = End::of(n)?;
        let basis = if weight < 0.0 { Basis::Extrapolated } else { Basis::Interpolated };
        Some(Interval {
            lo: part_way(sorted[base], sorted[base + 1], weight),
            hi: part_way(sorted[n - 1 - base], sorted[n - 2 - base], weight),
            basis,
        })
    }

    /// Whether `point` is inside, the ends included.
    pub fn contains(&self, point: f64) -> bool {
        self.lo <= point && point <= self.hi
    }
}

/// The point `weight` of the way between two positive numbers, on the logarithmic scale; exactly `from` when they are
/// equal.
fn part_way(from: f64, to: f64, weight: f64) -> f64 {
    from * (to / from).powf(weight)
}

fn is_positive(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn estimate(values: &[f64]) -> Estimate {
        Estimate::of_median(values).unwrap()
    }

    #[test]
    fn one_block_gives_a_value_and_no_interval() {
        assert_eq!(estimate(&[40.0]), Estimate { value: 40.0, interval: None, n: 1 });
    }

    #[test]
    fn two_to_five_blocks_reach_beyond_their_values_and_say_so() {
        let of = |values: &[f64]| estimate(values).interval.unwrap();
        let two = of(&[4.0, 1.0]);
        // 4.5 gaps beyond either value; the gap is a factor of 4.
        assert!((two.lo * 512.0 - 1.0).abs() < 1e-12 && (two.hi / 2048.0 - 1.0).abs() < 1e-12, "{two:?}");
        assert_eq!(two.basis, Basis::Extrapolated);
        let five = of(&[1.0, 32.0, 33.0, 40.0, 1280.0]);
        // 0.2 gaps: factors of 32.
        assert!((five.lo - 0.5).abs() < 1e-12 && (five.hi - 2560.0).abs() < 1e-9, "{five:?}");
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).basis, Basis::Interpolated);
    }

    #[test]
    fn what_a_block_does_to_both_cancels_in_the_ratio() {
        let steady = Estimate::of_ratio(&[(11.0, 10.0), (22.0, 20.0), (5.5, 5.0)]).unwrap();
        assert_eq!((steady.value, steady.half_width()), (1.1, Some(0.0)));
        assert!((steady.minus_one().value - 0.1).abs() < 1e-15);
    }

    #[test]
    fn nothing_is_estimated_from_no_values_or_from_values_that_are_no_times() {
        for values in [&[][..], &[1.0, 0.0], &[1.0, -1.0], &[f64::NAN], &[f64::INFINITY]] {
            assert_eq!(Estimate::of_median(values), None, "{values:?}");
        }
        assert_eq!(Estimate::of_ratio(&[(1.0, 0.0)]), None);
    }

    proptest! {
        #[test]
        fn the_interval_contains_its_estimate(values in prop::collection::vec(0.01..1e4f64, 2..40)) {
            let Estimate { value, interval, .. } = estimate(&values);
            let interval = interval.unwrap();
            prop_assert!(interval.lo <= interval.hi && interval.contains(value), "{value} in {interval:?}");
        }

        #[test]
        fn a_change_of_unit_changes_value_and_ends_alike(
            values in prop::collection::vec(0.01..1e4f64, 2..40), factor in 0.001..1e3f64,
        ) {
            let before = estimate(&values);
            let after = estimate(&values.iter().map(|v| v * factor).collect::<Vec<_>>());
            let (b, a) = (before.interval.unwrap(), after.interval.unwrap());
            for (b, a) in [(before.value, after.value), (b.lo, a.lo), (b.hi, a.hi)] {
                prop_assert!((a / b / factor - 1.0).abs() < 1e-9);
            }
        }

        #[test]
        fn ratios_turn_over_with_their_interval(pairs in prop::collection::vec((0.5..2.0f64, 0.5..2.0f64), 2..40)) {
            let turned: Vec<_> = pairs.iter().map(|&(a, b)| (b, a)).collect();
            let forth = Estimate::of_ratio(&pairs).unwrap().interval.unwrap();
            let back = Estimate::of_ratio(&turned).unwrap().interval.unwrap();
            prop_assert!((forth.lo * back.hi - 1.0).abs() < 1e-9 && (forth.hi * back.lo - 1.0).abs() < 1e-9);
        }
    }
}
