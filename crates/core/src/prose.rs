//! Figures as people read them: few digits, a sign where it matters, the interval beside the value.

use crate::stats::Estimate;

/// `+44 %`, `−5.2 %`: a fraction as a change in per cent.
pub fn change(fraction: f64) -> String {
    format!("{} %", signed(fraction))
}

/// `+44 % [+41, +47]`: a change with its 95 % interval.
pub fn change_within(estimate: &Estimate) -> String {
    match estimate.interval {
        Some(i) => format!("{} % [{}, {}]", signed(estimate.value), signed(i.lo), signed(i.hi)),
        None => change(estimate.value),
    }
}

/// `44 %`: the size of a change, its direction said in words beside it.
pub fn size_of_change(fraction: f64) -> String {
    format!("{} %", signed(fraction.abs()).trim_start_matches('+'))
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
        Some(i) => format!("{} [{}, {}]", nanos(estimate.value), nanos(i.lo), nanos(i.hi)),
        None => nanos(estimate.value),
    }
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
        assert_eq!(size_of_change(-0.4), "40 %");
    }

    #[test]
    fn times_have_three_digits() {
        for (ns, text) in [(424.4, "424"), (1234.0, "1234"), (42.44, "42.4"), (8.712, "8.71")] {
            assert_eq!(nanos(ns), text);
        }
    }
}
