//! Where the interval of a median ends, told in order statistics.
//!
//! ```text
//!   x(1)     x(d)   lo   x(d+1)      median      x(n-d)   hi   x(n+1-d)  x(n)
//! ───●────────●─────┼──────●───────────●───────────●──────┼─────●────────●───
//!             └──w──┘                                     └──w──┘
//! ```
//! An end is a base, a neighbour and a weight: `x(d) + w (x(d+1) - x(d))`. A weight below zero lies beyond the data.

use super::CONFIDENCE;

/// The lower end of the interval of a median; the upper one is its mirror image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct End {
    /// Index of the base among the sorted values, from 0 (`d - 1` of the textbooks).
    pub base: usize,
    /// The way from the base to the next value inwards; below 0 it leads outwards.
    pub weight: f64,
}

impl End {
    /// The end for `n` values; none for fewer than two.
    ///
    /// Miss means that the true median lies outside `[x(d), x(d+1), ...]` and its mirror image together:
    /// `miss(d) = 2 P(binomial(n, 1/2) < d)`.
    pub fn of(n: usize) -> Option<End> {
        if n < 2 {
            return None;
        }
        let allowed = 1.0 - CONFIDENCE;
        let mut log_probability = -(n as f64) * std::f64::consts::LN_2;
        let mut miss = 2.0 * log_probability.exp();
        if miss > allowed {
            return Some(End { base: 0, weight: -beyond(n, miss / allowed) });
        }
        for d in 1..n {
            log_probability += ((n - d + 1) as f64 / d as f64).ln();
            let step = 2.0 * log_probability.exp();
            if miss + step > allowed {
                return Some(End { base: d - 1, weight: between(n, d, (allowed - miss) / step) });
            }
            miss += step;
        }
        unreachable!("the misses of all d add up to two, and two is more than {allowed}")
    }
}

/// Hettmansperger and Sheather's weight: `share` of the misses between d and d+1 may still be taken.
fn between(n: usize, d: usize, share: f64) -> f64 {
    let (n, d) = (n as f64, d as f64);
    (n - d) * share / (d + (n - 2.0 * d) * share)
}

/// How far to go beyond the smallest value, in gaps between it and the next, to miss `excess` times less often.
///
/// When all values are above the median, and the noise is double exponential, the smallest lies `E1 / n` above it
/// and the gap is `E2 / (n - 1)`, with E1 and E2 exponential. Going `g` gaps further misses with probability
/// `P(E1 / n > g E2 / (n - 1)) = 1 / (1 + g n / (n - 1))`, which has to be `1 / excess`.
fn beyond(n: usize, excess: f64) -> f64 {
    (excess - 1.0) * (n - 1) as f64 / n as f64
}

/// How often an interval may miss so that its lower end comes to lie at 0: [`End`] turned around. Values in ascending
/// order, at least two, their median not negative.
pub(super) fn misses_beyond_zero(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    let smallest = 2.0 * (-(n as f64) * std::f64::consts::LN_2).exp();
    let d = sorted.iter().filter(|value| **value <= 0.0).count();
    if d == 0 {
        let gaps = sorted[0] / (sorted[1] - sorted[0]);
        return smallest / (1.0 + gaps * n as f64 / (n - 1) as f64);
    }
    if 2 * d > n {
        return 1.0;
    }
    let (mut step, mut miss) = (smallest, smallest);
    for k in 1..d {
        step *= (n + 1 - k) as f64 / k as f64;
        miss += step;
    }
    step *= (n + 1 - d) as f64 / d as f64;
    let weight = -sorted[d - 1] / (sorted[d] - sorted[d - 1]);
    let (n, d) = (n as f64, d as f64);
    // `between`, solved for the share.
    let share = weight * d / ((n - d) - weight * (n - 2.0 * d));
    (miss + step * share).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_stand_where_the_binomial_distribution_puts_them() {
        let check = |n, base, weight: f64| {
            let end = End::of(n).unwrap();
            assert_eq!(end.base, base, "n = {n}");
            assert!((end.weight - weight).abs() < 1e-12, "n = {n}: {} for {weight}", end.weight);
        };
        // miss(1) = 2 / 2^n, in units of the allowed 0.05: 10, 5, 2.5 and 1.25 times too much.
        check(2, 0, -4.5);
        check(3, 0, -8.0 / 3.0);
        check(4, 0, -1.125);
        check(5, 0, -0.2);
        // n = 7: miss(1) = 2/128, miss(2) = 16/128; share = (0.05 - 2/128) / (14/128) = 11/35; 6 share / (1 + 5 share).
        check(7, 0, 6.0 * 11.0 / (35.0 + 55.0));
    }

    #[test]
    fn one_value_has_no_end_and_a_great_many_have_one() {
        assert_eq!(End::of(0), None);
        assert_eq!(End::of(1), None);
        let end = End::of(10_000).unwrap();
        // Normal approximation: 5000 - 1.96 * 50.
        assert!((4900..=4902).contains(&end.base), "{end:?}");
    }
}
