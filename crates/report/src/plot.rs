//! Curves in a terminal: letters on two logarithmic scales, within 80 columns.
//!
//! A library of braille dots (textplots) was tried on paper and rejected: its scales are linear, its axes have no units, and a
//! curve is told from another by colour alone, which must not carry meaning here.

use vmtax_core::prose::nanos;

/// Lines between the frame's.
const HEIGHT: usize = 14;
/// Places that fit 80 columns.
pub(crate) const MOST_PLACES: usize = 22;
/// Columns a place takes.
const PITCH: usize = 3;

/// One curve: its letter, and its value at each place.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    pub letter: char,
    pub values: Vec<Option<f64>>,
}

/// The curves over the places named (in up to 5 letters), at most 22 of them; `*` where several meet.
pub(crate) fn text(places: &[String], curves: &[Curve]) -> String {
    let all = || curves.iter().flat_map(|curve| curve.values.iter().flatten().copied());
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    if high <= 0.0 {
        return String::new();
    }
    let scale = (high / low).ln().max(f64::MIN_POSITIVE);
    let line = |value: f64| (((high / value).ln() / scale) * (HEIGHT - 1) as f64).round() as usize;
    let mut lines = vec![vec![' '; places.len() * PITCH]; HEIGHT];
    for curve in curves {
        for (place, value) in curve.values.iter().enumerate().filter_map(|(place, value)| Some((place, (*value)?))) {
            let mark = &mut lines[line(value)][place * PITCH + 1];
            *mark = if *mark == ' ' { curve.letter } else { '*' };
        }
    }
    let label = |nth: usize| nanos(high * (-scale * nth as f64 / (HEIGHT - 1) as f64).exp());
    let drawn = lines.into_iter().enumerate().map(|(nth, marks)| {
        let label = if nth % 3 == 0 || nth == HEIGHT - 1 { label(nth) } else { String::new() };
        format!("{label:>8} │{}", marks.into_iter().collect::<String>()).trim_end().to_owned() + "\n"
    });
    // Every second place has room for its name, from below its mark on.
    let names: String = places.iter().step_by(2).map(|place| format!("{place:<width$}", width = 2 * PITCH)).collect();
    let axis = "─".repeat(places.len() * PITCH);
    drawn.collect::<String>() + &format!("{:8} └{axis}\n{:11}{}\n", "", "", names.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_its_ends_at_the_frame_and_fits_the_terminal() {
        let places: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let falling = Curve { letter: '4', values: (0..20).map(|n| Some(1000.0 / f64::from(1 << n))).collect() };
        let text = text(&places, &[falling]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "    1000 │ 4");
        assert!(lines[HEIGHT - 1].ends_with('4') && lines[HEIGHT - 1].starts_with("    0.00"), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
    }
}
