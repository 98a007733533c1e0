//! UnixBench's report: a line for each test, the table of indexes, and the index under it.

use super::index::{BASELINE_INDEX, BASELINES, Baseline, geometric_mean};
use crate::program::{
    Unreadable,
    text::{Line, Text, number},
};

pub(super) const PROGRAM: &str = "UnixBench";

/// A report whose index is right for its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Copies that ran side by side.
    pub copies: u64,
    /// The tests of its table, in its order.
    pub scores: Vec<Score>,
    /// The index, recomputed from the rows.
    pub index: f64,
    /// As printed: in tenths, from rows that were not rounded yet.
    pub printed: f64,
}

/// What one test reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// The test.
    pub baseline: &'static Baseline,
    /// In the unit of the test.
    pub rate: f64,
}

/// Half of the last digit printed.
const ROUNDING: f64 = 0.05;

impl Report {
    /// Reads a report of one run of the tests, as `Run -c N` prints it.
    pub fn read(text: &str) -> Result<Report, Unreadable> {
        let text = Text::of(PROGRAM, text);
        let copies = copies(text)?;
        let head = text.labelled("System Benchmarks").find(|line| line.text.ends_with("INDEX"));
        let head = head.ok_or_else(|| text.missing("`System Benchmarks … BASELINE RESULT INDEX`"))?;
        let is_partial = head.rest.starts_with("Partial Index");
        let mut scores = Vec::new();
        let mut lines = text.lines().skip_while(|line| line.text != head.text).skip(1);
        let end = loop {
            let line = lines.next().ok_or_else(|| text.missing("`System Benchmarks Index Score`"))?;
            if line.text.starts_with("System Benchmarks Index Score") {
                break line;
            }
            if line.text.contains("====") || line.text.is_empty() {
                continue;
            }
            scores.push(score(text, &line)?);
        };
        if !is_partial && scores.len() != BASELINES.len() {
            return Err(head.otherwise(format!("{} tests under it, not {}", BASELINES.len(), scores.len())));
        }
        let printed = end.text.split_whitespace().last().and_then(number);
        let printed = printed.ok_or_else(|| end.otherwise("the index"))?;
        let index = index(&scores).ok_or_else(|| end.otherwise("tests above it, each with a rate above 0"))?;
        let slack =
            ROUNDING + index * scores.iter().map(|score| ROUNDING / score.rate).sum::<f64>() / scores.len() as f64;
        if (index - printed).abs() > slack + 1e-9 {
            let contradiction = format!("its index is {printed}, and that of its rows {index:.1}");
            return Err(Unreadable::Contradiction { program: PROGRAM, contradiction });
        }
        Ok(Report { copies, scores, index, printed })
    }
}

fn copies(text: Text<'_>) -> Result<u64, Unreadable> {
    let mut lines = text.lines().filter_map(|line| Some((line, line.text.split_once("; running ")?.1)));
    let (line, rest) = lines.next().ok_or_else(|| text.missing("`N CPUs in system; running N parallel copies`"))?;
    if let Some((second, _)) = lines.next() {
        return Err(second.otherwise("one run: give Run the option -c"));
    }
    rest.split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| line.otherwise("the number of copies"))
}

/// A row of the table, whose index must be right and whose result must be the one measured.
fn score(text: Text<'_>, line: &Line<'_>) -> Result<Score, Unreadable> {
    let baseline = BASELINES.iter().find(|baseline| line.text.starts_with(baseline.name));
    let baseline = baseline.ok_or_else(|| line.otherwise("a test of the index"))?;
    let figures: Option<Vec<f64>> = line.text[baseline.name.len()..].split_whitespace().map(number).collect();
    let Some([base, rate, printed]) = figures.as_deref().and_then(|figures| <[f64; 3]>::try_from(figures).ok()) else {
        return Err(line.otherwise("baseline, result and index"));
    };
    if base != baseline.rate {
        return Err(line.otherwise(format!("the baseline {}", baseline.rate)));
    }
    let index = BASELINE_INDEX * baseline.ratio(rate);
    if rate <= 0.0 || (index - printed).abs() > ROUNDING + BASELINE_INDEX * baseline.ratio(ROUNDING) + 1e-9 {
        return Err(line.otherwise(format!("an index of {index:.1}")));
    }
    let measured = text.labelled(baseline.name).find(|line| line.text.ends_with("samples)"));
    let measured = measured.ok_or_else(|| text.missing(&format!("the samples of `{}`", baseline.name)))?;
    if measured.word(0).and_then(number) != Some(rate) || measured.word(1) != Some(baseline.unit) {
        return Err(measured.otherwise(format!("{rate:.1} {}, as in the table of indexes", baseline.unit)));
    }
    Ok(Score { baseline, rate })
}

/// The index of some scores; none of no scores.
fn index(scores: &[Score]) -> Option<f64> {
    geometric_mean(scores.iter().map(|score| score.baseline.ratio(score.rate))).map(|mean| BASELINE_INDEX * mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFF: &str = include_str!("../../../testdata/programs/unixbench/ept-off.txt");
    const ON: &str = include_str!("../../../testdata/programs/unixbench/ept-on.txt");

    #[test]
    fn the_published_indexes_follow_from_the_published_rows() {
        for (text, printed, index) in [(OFF, 221.7, 221.736), (ON, 1146.3, 1146.315)] {
            let report = Report::read(text).unwrap();
            assert_eq!((report.copies, report.scores.len(), report.printed), (1, 12, printed));
            assert_eq!(format!("{:.1}", report.index), format!("{printed:.1}"));
            assert!((report.index - index).abs() < 0.001, "{}", report.index);
        }
        let ratio = Report::read(ON).unwrap().index / Report::read(OFF).unwrap().index;
        assert!((ratio - 5.17).abs() < 0.005, "{ratio}");
    }

    #[track_caller]
    fn refuse(text: &str, expected: &str) {
        let error = Report::read(text).unwrap_err().to_string();
        assert_eq!(error.split_whitespace().collect::<Vec<_>>().join(" "), expected);
    }

    /// The report with one figure changed.
    fn with(from: &str, to: &str) -> String {
        assert!(OFF.contains(from), "{from}");
        OFF.replacen(from, to, 1)
    }

    #[test]
    fn a_report_that_contradicts_itself_is_refused() {
        refuse(&with("  221.7", "  227.1"), "UnixBench: its index is 227.1, and that of its rows 221.7");
        refuse(
            &with("407.1     94.7", "407.1     97.4"),
            "UnixBench: expected an index of 94.7 in line 20, found `Execl Throughput 43.0 407.1 97.4`",
        );
        refuse(
            &with("    407.1 lps", "    417.1 lps"),
            "UnixBench: expected 407.1 lps, as in the table of indexes in line 6, found `Execl Throughput 417.1 lps \
             (29.6 s, 2 samples)`",
        );
        refuse(
            &with("43.0        407.1", "44.0        407.1"),
            "UnixBench: expected the baseline 43 in line 20, found `Execl Throughput 44.0 407.1 94.7`",
        );
        let short =
            OFF.lines().filter(|line| !line.starts_with("Pipe Throughput")).collect::<Vec<_>>().join("\n") + "\n";
        refuse(
            &short,
            "UnixBench: expected 12 tests under it, not 11 in line 16, found `System Benchmarks Index Values BASELINE \
             RESULT INDEX`",
        );
    }
}
