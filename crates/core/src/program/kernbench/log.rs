//! Logs that kernbench 0.42 and 0.50 wrote: means with standard deviations, a section for each load.
//!
//! The deviations of a later section include the runs of the one before it in old versions; they are read and not used.

use crate::program::{
    Unreadable,
    text::{Line, Text, number},
};

/// How many jobs a section ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// One job (`-s`).
    Single,
    /// Half as many as CPUs.
    Half(u64),
    /// So many for each CPU.
    Optimal(u64),
    /// No limit.
    Maximal,
    /// As many as asked for with `-o`.
    Custom(u64),
}

/// The averages of one load.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// The load.
    pub load: Load,
    /// One for each of [`QUANTITIES`].
    pub figures: [Figure; 6],
}

/// A mean over runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figure {
    /// In seconds, percent or number.
    pub mean: f64,
    /// Its standard deviation as printed, in the same unit.
    pub deviation: f64,
}

/// What a section lists, in this order.
pub const QUANTITIES: [&str; 6] =
    ["Elapsed Time", "User Time", "System Time", "Percent CPU", "Context Switches", "Sleeps"];

/// Every section of a log, at least one.
pub fn read(log: &str) -> Result<Vec<Section>, Unreadable> {
    let text = Text::of("kernbench", log);
    let mut lines = text.lines();
    let mut sections = Vec::new();
    while let Some(line) = lines.by_ref().find(|line| line.text.starts_with("Average ")) {
        let load = load(&line)?;
        let mut figures = [Figure::default(); 6];
        for (quantity, figure) in QUANTITIES.iter().zip(&mut figures) {
            let line = lines.next().ok_or_else(|| text.missing(&format!("`{quantity}`")))?;
            *figure = self::figure(&line, quantity)?;
        }
        sections.push(Section { load, figures });
    }
    if sections.is_empty() { Err(text.missing("`Average … load`")) } else { Ok(sections) }
}

fn load(line: &Line<'_>) -> Result<Load, Unreadable> {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let jobs = || words.iter().skip_while(|word| **word != "-j").nth(1).and_then(|word| word.parse().ok());
    let load = match words.get(1).copied() {
        Some("Single") => Some(Load::Single),
        Some("Maximal") => Some(Load::Maximal),
        Some("Half") => jobs().map(Load::Half),
        Some("Optimal") => jobs().map(Load::Optimal),
        Some("Custom") => jobs().map(Load::Custom),
        _ => None,
    };
    load.ok_or_else(|| line.otherwise("`Average Half|Optimal|Custom load -j N`, `Single threaded` or `Maximal load`"))
}

fn figure(line: &Line<'_>, quantity: &str) -> Result<Figure, Unreadable> {
    let read = || {
        let mut words = line.text.strip_prefix(quantity)?.split_whitespace();
        let mean = number(words.next()?)?;
        let deviation = number(words.next()?.strip_prefix('(')?.strip_suffix(')')?)?;
        (mean > 0.0).then_some(Figure { mean, deviation })
    };
    read().ok_or_else(|| line.otherwise(format!("`{quantity} MEAN (DEVIATION)`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = include_str!("../../../testdata/programs/kernbench/half.txt");

    #[test]
    fn a_log_of_2007_is_read() {
        let sections = read(LOG).unwrap();
        assert_eq!(sections.len(), 1);
        assert_eq!(sections[0].load, Load::Half(4));
        assert_eq!(sections[0].figures[0], Figure { mean: 466.548, deviation: 47.6014 });
        assert_eq!(sections[0].figures[3], Figure { mean: 237.2, deviation: 23.2744 });
        assert_eq!(sections[0].figures[5], Figure { mean: 174003.0, deviation: 5031.94 });
    }

    #[test]
    fn several_loads_are_read_and_a_cut_one_is_refused() {
        let optimal = LOG.replace("Half load -j 4", "Optimal load -j 32").replace("174003", "2.2166e+06");
        let both = read(&format!("{LOG}{optimal}")).unwrap();
        assert_eq!((both[1].load, both[1].figures[5].mean), (Load::Optimal(32), 2.2166e6));
        let cut = &LOG[..LOG.find("Sleeps").unwrap()];
        assert_eq!(
            read(cut).unwrap_err().to_string(),
            "kernbench: no complete line with `Sleeps`; the output ends with `Context Switches 146351 (6539.91)`"
        );
        let comma = LOG.replace("466.548", "466,548");
        assert_eq!(
            read(&comma).unwrap_err().to_string(),
            "kernbench: expected `Elapsed Time MEAN (DEVIATION)` in line 4, found `Elapsed Time 466,548 (47.6014)`"
        );
    }
}
