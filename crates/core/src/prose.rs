//! Figures as people read them: few digits, a sign where it matters, the interval beside the value.
//!
//! An interval of 2 to 5 blocks reaches beyond what was measured, as far as an assumption about the noise says. Two blocks
//! that differ by a third make it `[0.93, 7004]`: figures that mean "unknown". One that reaches over a factor of
//! [`VAGUE`] is written `[?]`. Ends that lie among measured values are always shown; exports have all of them.

use crate::stats::{Basis, Estimate, Interval};

/// Upper over lower end of an interval from which on it says nothing.
pub const VAGUE: f64 = 10.0;

/// `+44 %`, `−5.2 %`: a fraction as a change in per cent.
pub fn change(fraction: f64) -> String {
    format!("{} %", signed(fraction))
}

/// `+44 % [+41, +47]`: a change with its 95 % interval.
pub fn change_within(estimate: &Estimate) -> String {
    match estimate.interval {
        Some(i) if is_vague(&i, 1.0) => format!("{} % [?]", signed(estimate.value)),
        Some(i) => format!("{} % [{}, {}]", signed(estimate.value), signed(i.lo), signed(i.hi)),
        None => change(estimate.value),
    }
}

/// `3.1 times`: a ratio with two digits.
pub fn times(ratio: f64) -> String {
    let digits = if ratio >= 9.95 { 0 } else { 1 };
    format!("{ratio:.digits$} times")
}

/// `+44 % [+41, +47]`, and from a factor of two on `3.1 times [3.0, 3.2]`: a ratio with its 95 % interval.
pub fn ratio_within(ratio: &Estimate) -> String {
    /// What is easier to read as a multiple than as a change in per cent.
    const MULTIPLE: f64 = 2.0;
    if ratio.value < MULTIPLE {
        return change_within(&ratio.minus_one());
    }
    let bare = |ratio: f64| times(ratio).trim_end_matches(" times").to_owned();
    match ratio.interval {
        Some(i) if is_vague(&i, 0.0) => format!("{} [?]", times(ratio.value)),
        Some(i) => format!("{} [{}, {}]", times(ratio.value), bare(i.lo), bare(i.hi)),
        None => times(ratio.value),
    }
}

/// `424`, `8.71`: nanoseconds to three digits, without the unit.
pub fn nanos(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// `424 [410, 432]`: nanoseconds with their 95 % interval.
pub fn nanos_within(estimate: &Estimate) -> String {
    match estimate.interval {
        Some(i) if is_vague(&i, 0.0) => format!("{} [?]", nanos(estimate.value)),
        Some(i) => format!("{} [{}, {}]", nanos(estimate.value), nanos(i.lo), nanos(i.hi)),
        None => nanos(estimate.value),
    }
}

/// Whether an interval, of a ratio less `offset`, is an extrapolation too wide to be shown.
fn is_vague(interval: &Interval, offset: f64) -> bool {
    interval.basis == Basis::Extrapolated && (interval.hi + offset) > VAGUE * (interval.lo + offset)
}

/// Whole per cent from 10 on, tenths below; with the sign of typography, so that it does not look like a hyphen.
fn signed(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let digits = if percent.abs() >= 9.95 { 0 } else { 1 };
    let text = format!("{:.digits$}", percent.abs());
    match percent {
        _ if text.bytes().all(|b| matches!(b, b'0' | b'.')) => text,
        p if p < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_few_digits_and_a_sign() {
        for (fraction, text) in
            [(0.443, "+44 %"), (-0.0521, "−5.2 %"), (0.0, "0.0 %"), (-0.0001, "0.0 %"), (1.5, "+150 %")]
        {
            assert_eq!(change(fraction), text);
        }
        let values = [1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9];
        let estimate = Estimate::of_median(&values).unwrap().minus_one();
        assert_eq!(change_within(&estimate), "+60 % [+37, +83]");
    }

    #[test]
    fn ratios_have_two_digits() {
        let tripled = Estimate::of_median(&[3.0, 3.1, 3.2, 3.3, 3.4, 3.5, 3.6]).unwrap();
        assert_eq!(ratio_within(&tripled), "3.3 times [3.1, 3.5]");
        for (ratio, text) in [(1.04, "1.0 times"), (3.06, "3.1 times"), (9.96, "10 times"), (123.4, "123 times")] {
            assert_eq!(times(ratio), text);
        }
    }

    #[test]
    fn an_interval_that_is_tenfold_extrapolation_is_not_shown() {
        let two = Estimate::of_median(&[70.0, 93.0]).unwrap();
        assert_eq!(nanos_within(&two), "81.5 [?]");
        assert_eq!(change_within(&two.minus_one()), "+8050 % [?]");
        let calm = Estimate::of_median(&[1.50, 1.51]).unwrap();
        assert_eq!(change_within(&calm.minus_one()), "+50 % [+46, +56]");
        let measured = Estimate::of_median(&[1.0, 20.0, 300.0, 300.0, 300.0, 300.0, 4000.0]).unwrap();
        assert!(nanos_within(&measured).starts_with("300 [9."), "{}", nanos_within(&measured));
    }

    #[test]
    fn times_have_three_digits() {
        for (ns, text) in [(424.4, "424"), (1234.0, "1234"), (42.44, "42.4"), (8.712, "8.71")] {
            assert_eq!(nanos(ns), text);
        }
    }
}
