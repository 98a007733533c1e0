//! What became of the published statement.

use serde::{Deserialize, Serialize};

use super::{Order, crossover, walks};
use crate::{
    crossover::Reach,
    experiment::Record,
    setting::Backing,
    units::{Bytes, KIB, MIB},
};

/// The statement of the huge-page study, for one pass in order over 128 MiB on 2 MiB hugetlb pages.
pub const STATEMENT: &str = "small pages beat huge ones from 32 KiB stride";

/// What a published statement is worth here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Our interval holds a crossover the study may have seen.
    Confirmed,
    /// It does not.
    Contradicted,
    /// Nothing can be said.
    NotTested {
        /// Why.
        reason: String,
    },
}

impl Verdict {
    /// `confirmed`, `contradicted` or `not tested here: why`.
    pub fn words(&self) -> String {
        match self {
            Verdict::Confirmed => "confirmed".to_owned(),
            Verdict::Contradicted => "contradicted".to_owned(),
            Verdict::NotTested { reason } => format!("not tested here: {reason}"),
        }
    }
}

/// Strides double in the study: one that sees small pages win at 32 KiB first has its crossover between 16 and 32 KiB.
pub fn verdict(record: &Record, workload: &str) -> Verdict {
    let not_tested = |reason: &str| Verdict::NotTested { reason: reason.to_owned() };
    if walks(record, workload).iter().any(|(_, walk)| walk.size != Bytes(128 * MIB)) {
        return not_tested("the study walks 128 MiB");
    }
    let Some(found) = crossover(record, workload, Order::Sequential, Backing::Huge2m, 1) else {
        return not_tested("2 MiB hugetlb and 4 KiB pages were not both walked in order");
    };
    let Some(interval) = found.interval else { return not_tested("a single block has no interval") };
    let place = |reach: Reach| match reach {
        Reach::Before(_) => 0.0,
        Reach::At(place) => place,
        Reach::Beyond(_) => f64::INFINITY,
    };
    let published = (16.0 * KIB as f64, 32.0 * KIB as f64);
    match place(interval.lo) <= published.1 && place(interval.hi) >= published.0 {
        true => Verdict::Confirmed,
        false => Verdict::Contradicted,
    }
}
