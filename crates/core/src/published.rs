//! What the authors of a study published, and what a run of ours says of it.
//!
//! `studies/<name>/published.toml` holds statements in our own words, each with the way in which it is judged
//! ([`Test`]). [`Published::judge`] sets each beside the figures of a run; it never judges without data: what cannot be
//! judged is [`Verdict::NotTested`], with the reason.
//!
//! ```toml
//! [source]
//! title = "Huge pages"
//! place = "huge-page section of a report on virtual memory"
//! machine = "not told"
//!
//! [[statement]]
//! id = "crossover"                 # stable: commands refer to it
//! says = "Small pages win from 32 KiB on."
//! place = "caption of the first figure"
//! remark = "what a reader of the study should know"
//! judge = "crossover"              # the test; the keys below are its own
//! workload = "walk"
//! metric = "ns_per_reference_1"
//! where = { size = "128M" }        # cells by the levels of factors and parameters: one level, or a list
//! along = "stride"
//! incumbent = { host = "2m" }
//! challenger = { host = "4k" }
//! names = "small pages"
//! at = "32K"
//! within = 2
//! ```
//! The other tests: `judge = "value"` with `below` or `above`; `"ratio"` with `of` and `over`, lists of cells each with
//! a metric of its own where it is not the statement's (several make a ratio of products, and so of ratios);
//! `"fact"` with `evidence` and `is`; `"walk-references"` with the levels of both page tables.
//!
//! A selection with a list of levels stands for all of its cells, averaged on the logarithmic scale within a block.
//! Levels that a plan does not have are left out of the average; a quick form of a study can so share the file.
//!
//! Tables of published figures will stand beside the statements as `[[table]]`: workload, metric, unit, and rows of
//! `{ levels…, value = }`, whose effects are those of [`crate::effects`] over one block.

mod judge;
mod judged;
mod read;
mod select;
#[cfg(test)]
mod tests;
mod words;

pub use judged::{Judged, Verdict};
pub use select::Selection;

use crate::{factor::Factor, plan::Diagnostics};

/// All that a study published, as far as it can be held against a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// Whose words they are.
    pub source: Source,
    /// In the order of the file; ids differ.
    pub statements: Vec<Statement>,
}

/// Where statements come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its title.
    pub title: String,
    /// Where it stands.
    pub place: String,
    /// What it was measured on, as far as it tells.
    pub machine: String,
}

/// Something that was published, in our own words.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// What commands refer to it by: never changed.
    pub id: String,
    /// The statement.
    pub says: String,
    /// Where in the source it stands.
    pub place: String,
    /// What a reader should know of it, where there is something.
    pub remark: Option<String>,
    /// How it is judged.
    pub test: Test,
}

/// How a statement is judged.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// By the place from which one curve wins.
    Crossover(Crossing),
    /// By a figure and its bound.
    Value(Value),
    /// By a ratio of figures and its bound.
    Ratio(Ratio),
    /// By what trials have observed.
    Fact(Fact),
    /// By arithmetic on two page tables.
    WalkReferences(WalkReferences),
}

/// From a published place on, one of two curves wins.
///
/// The published place `at` is one of a grid and was read from a figure, so it is known within a factor: where the grid
/// doubles, one doubling below (the curves may have crossed anywhere since the place before) and, for the reading,
/// one above: `within = 2`. Confirmed when our interval lies in `[at / within, at · within]`, or holds `at` and spans
/// less than [`VAGUE`](crate::prose::VAGUE) times; contradicted when it has nothing in common with that range.
#[derive(Debug, Clone, PartialEq)]
pub struct Crossing {
    /// The workload.
    pub workload: String,
    /// The cost.
    pub metric: String,
    /// The factor whose levels are the places.
    pub along: &'static Factor,
    /// The curve that wins at near places.
    pub incumbent: Selection,
    /// The curve that wins at far ones.
    pub challenger: Selection,
    /// The challenger in words, in the plural.
    pub names: String,
    /// The published place, in the unit of the factor: bytes for sizes.
    pub at: f64,
    /// The factor within which it is known, more than 1.
    pub within: f64,
}

/// A figure is below or above a bound: with all of its interval confirmed, with none of it contradicted.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// The workload.
    pub workload: String,
    /// The metric.
    pub metric: String,
    /// Its cells.
    pub of: Selection,
    /// Evidence that every trial must show for the figure to be what the statement is about, such as pages granted.
    pub demands: Vec<(String, String)>,
    /// The bound, in the unit of the metric.
    pub bound: Bound,
}

/// A ratio, paired in blocks, is below or above a bound. One no larger than the noise floor A′/A is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// The workload.
    pub workload: String,
    /// What the ratio is, in words: the change is printed behind them.
    pub measures: String,
    /// The numerator: a product.
    pub of: Vec<Term>,
    /// The denominator: a product.
    pub over: Vec<Term>,
    /// The bound.
    pub bound: Bound,
}

/// A metric of some cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// The metric.
    pub metric: String,
    /// The cells.
    pub cells: Selection,
}

/// Trials observed something: all of them confirm it, none contradicts it.
///
/// An observation that begins with [`NOT_TESTED`] is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The workload.
    pub workload: String,
    /// A key of [`Finding::evidence`](crate::experiment::Finding::evidence).
    pub evidence: String,
    /// Its value, or how that begins: `EPERM` stands for `EPERM (shmget)`.
    pub is: String,
}

/// How evidence begins that says why something was not tried; the reason follows.
pub const NOT_TESTED: &str = "not tested: ";

/// So many memory references to translate one address through two page tables.
///
/// With `g` levels in the guest and `h` in the host, each of the guest's `g` entries and the address they lead to is
/// translated by the host in `h` references, and the entries themselves are read: `(g + 1)(h + 1) − 1`; reading the data
/// is one more (Bhargava et al. 2008, ASPLOS XIII, 26-35).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkReferences {
    /// Levels of the guest's page table.
    pub guest: u32,
    /// Levels of the host's.
    pub host: u32,
    /// The number published.
    pub published: u32,
}

/// What a figure is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// It is said to be less.
    Below(f64),
    /// It is said to be more.
    Above(f64),
}

impl Published {
    /// Reads a file. `file` is its name, for the diagnostics alone.
    pub fn parse(file: &str, text: &str) -> Result<Published, Diagnostics> {
        read::published(text).map_err(|list| Diagnostics::new(file, text, list))
    }

    /// The statement of this id.
    pub fn statement(&self, id: &str) -> Option<&Statement> {
        self.statements.iter().find(|statement| statement.id == id)
    }
}

impl Test {
    /// The workload that it takes, where it takes one.
    pub fn workload(&self) -> Option<&str> {
        match self {
            Test::Crossover(crossing) => Some(&crossing.workload),
            Test::Value(value) => Some(&value.workload),
            Test::Ratio(ratio) => Some(&ratio.workload),
            Test::Fact(fact) => Some(&fact.workload),
            Test::WalkReferences(_) => None,
        }
    }
}

impl WalkReferences {
    /// The number there are, without that for the data.
    pub fn count(&self) -> u32 {
        (self.guest + 1) * (self.host + 1) - 1
    }
}
