//! How surprising blocks are if there is no effect: the interval of the median, read backwards.
//!
//! The p-value is one minus the confidence of the widest interval that leaves the point out: below 0.05, that is,
//! exactly where the 95 % interval of [`super::Estimate`] does. It inherits its construction, so it is the sign test
//! made continuous: between the levels that a sign test attains it is interpolated, and beyond the smallest of them
//! (`2^(1-n)`: no sign test of 7 blocks can say less than 1.6 %, which no correction for ten effects survives) it goes
//! on as for double exponential noise.

use super::order;

/// The two-sided p-value of "the median of these ratios is 1"; none for fewer than two, or where one is not positive.
pub fn p_value(ratios: &[f64]) -> Option<f64> {
    if ratios.len() < 2 || !ratios.iter().all(|ratio| *ratio > 0.0 && ratio.is_finite()) {
        return None;
    }
    let mut logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    if super::median(&logs) < 0.0 {
        logs.iter_mut().for_each(|log| *log = -*log);
    }
    logs.sort_by(f64::total_cmp);
    Some(order::misses_beyond_zero(&logs))
}

/// Holm's (1979) adjustment: p-values that may be compared with 0.05 each, and yet the chance that any of the effects
/// that are none passes is at most 5 %, however they depend on one another. In the order given.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut by_size: Vec<usize> = (0..p_values.len()).collect();
    by_size.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, index) in by_size.into_iter().enumerate() {
        largest = largest.max(p_values[index] * (p_values.len() - rank) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::Estimate;

    #[test]
    fn p_values_are_those_of_the_sign_test_where_a_block_says_exactly_nothing() {
        let check = |logs: &[f64], expected: f64| {
            let p = p_value(&logs.iter().map(|log| log.exp()).collect::<Vec<_>>()).unwrap();
            assert!((p - expected).abs() < 1e-12, "{logs:?}: {p} for {expected}");
        };
        // 2 P(binomial(7, 1/2) < d): 2/128, 16/128, 58/128, 1.
        check(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2.0 / 128.0);
        check(&[-1.0, 0.0, 2.0, 3.0, 4.0, 5.0, 6.0], 16.0 / 128.0);
        check(&[-6.0, -5.0, 0.0, 3.0, 4.0, 5.0, 6.0], 58.0 / 128.0);
        check(&[-6.0, -5.0, -4.0, 0.0, 4.0, 5.0, 6.0], 1.0);
        check(&[0.0, 0.0, 0.0, 0.0, 4.0, 5.0, 6.0], 1.0);
        // Six gaps beyond the smallest: 1 + 6 * 7/6 times less often.
        check(&[6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0], 2.0 / 128.0 / 8.0);
        check(&[1.0, 1.0], 0.0);
        check(&[0.0, 0.0], 1.0);
        assert_eq!(p_value(&[2.0]), None);
        assert_eq!(p_value(&[2.0, 0.0]), None);
    }

    #[test]
    fn holms_values_step_down() {
        let close = |got: &[f64], expected: &[f64]| got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close(&holm(&[0.01, 0.04, 0.03, 0.005]), &[0.03, 0.06, 0.06, 0.02]));
        assert!(close(&holm(&[0.9, 0.8]), &[1.0, 1.0]));
        assert!(holm(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn a_p_value_is_below_5_per_cent_where_the_interval_leaves_1_out(
            ratios in prop::collection::vec(0.9..1.3f64, 2..25),
        ) {
            let interval = Estimate::of_median(&ratios).unwrap().interval.unwrap();
            let p = p_value(&ratios).unwrap();
            prop_assume!((p - 0.05).abs() > 1e-9);
            prop_assert_eq!(p < 0.05, !interval.contains(1.0), "p = {}, {:?}", p, interval);
        }

        #[test]
        fn up_and_down_are_alike(ratios in prop::collection::vec(0.5..2.0f64, 2..25)) {
            let turned: Vec<f64> = ratios.iter().map(|ratio| 1.0 / ratio).collect();
            prop_assert!((p_value(&ratios).unwrap() - p_value(&turned).unwrap()).abs() < 1e-9);
        }
    }
}
