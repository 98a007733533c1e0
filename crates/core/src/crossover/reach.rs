//! Crossovers that may lie outside of what was measured: their order, their middle and their interval.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::{
    stats::{Basis, End},
    units::Bytes,
};

/// Where a crossover, or an end of its interval, lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// Before the first place, which is this: the challenger wins everywhere.
    Before(f64),
    /// At this place, among those measured or between two of them.
    At(f64),
    /// Beyond the last place, which is this: the challenger wins nowhere.
    Beyond(f64),
}

/// A 95 % interval; `lo` is not behind `hi`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReachInterval {
    /// Lower end.
    pub lo: Reach,
    /// Upper end.
    pub hi: Reach,
    /// What the ends rest on.
    pub basis: Basis,
}

impl Reach {
    /// The place, if it is among those measured.
    pub fn inside(self) -> Option<f64> {
        match self {
            Reach::At(place) => Some(place),
            Reach::Before(_) | Reach::Beyond(_) => None,
        }
    }

    /// `31.2 KiB`, `< 4 B`, `> 2 MiB`: for places in bytes.
    pub fn in_bytes(self) -> String {
        match self {
            Reach::Before(first) => format!("< {}", bytes(first)),
            Reach::At(place) => bytes(place),
            Reach::Beyond(last) => format!("> {}", bytes(last)),
        }
    }

    pub(super) fn order(&self, other: &Reach) -> Ordering {
        let rank = |reach: &Reach| match reach {
            Reach::Before(_) => (0, 0.0),
            Reach::At(place) => (1, *place),
            Reach::Beyond(_) => (2, 0.0),
        };
        let (own, others) = (rank(self), rank(other));
        own.0.cmp(&others.0).then(own.1.total_cmp(&others.1))
    }
}

/// Half way between the middle two, on the logarithmic scale; the one inside, if only one of them is.
pub(super) fn middle(lower: Reach, upper: Reach) -> Reach {
    match (lower.inside(), upper.inside()) {
        (Some(a), Some(b)) => Reach::At((a * b).sqrt()),
        (None, Some(_)) => upper,
        (Some(_), None) | (None, None) => lower,
    }
}

impl ReachInterval {
    /// The interval of the median of crossovers in their order; none for fewer than two.
    ///
    /// The ends of [`crate::stats`], except that none is said to lie where nothing was measured.
    pub(super) fn of_sorted(sorted: &[Reach], (first, last): (f64, f64)) -> Option<ReachInterval> {
        let n = sorted.len();
        let End { base, weight } = End::of(n)?;
        let end = |from: Reach, to: Reach, outside: Reach| match (from.inside(), to.inside()) {
            (Some(from), Some(to)) => match from * (to / from).powf(weight) {
                place if place < first => Reach::Before(first),
                place if place > last => Reach::Beyond(last),
                place => Reach::At(place),
            },
            // The gap to a neighbour of unknown place is unknown: inwards nothing of it is taken, outwards all.
            (Some(_), None) if weight < 0.0 => outside,
            (Some(_), None) | (None, _) => from,
        };
        Some(ReachInterval {
            lo: end(sorted[base], sorted[base + 1], Reach::Before(first)),
            hi: end(sorted[n - 1 - base], sorted[n - 2 - base], Reach::Beyond(last)),
            basis: if weight < 0.0 { Basis::Extrapolated } else { Basis::Interpolated },
        })
    }
}

/// Three digits, in the largest unit that leaves a whole part.
fn bytes(place: f64) -> String {
    let unit = 1u64 << (10 * (place.max(1.0).log2() as u32 / 10).min(3));
    let number = place / unit as f64;
    let digits = if number.fract() == 0.0 { 0 } else { 2usize.saturating_sub(number.log10() as usize) };
    format!("{number:.digits$} {}", Bytes(unit).to_string().trim_start_matches("1 "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_bytes_have_three_digits() {
        for (place, text) in
            [(4.0, "4 B"), (32768.0, "32 KiB"), (31234.0, "30.5 KiB"), (1.5e6, "1.43 MiB"), (5.1e5, "498 KiB")]
        {
            assert_eq!(Reach::At(place).in_bytes(), text);
        }
    }
}
