//! A region walked at a stride, pass after pass, from the first touch on: where small pages beat huge ones.
//!
//! The huge-page study's definition: the time per reference is that of all passes so far, the first touches included.
//! Huge pages pay for whole pages on the first pass and win on the later ones, so small pages win where few references
//! share a page, from a stride on that grows with the number of passes.

mod verdict;

use serde::{Deserialize, Serialize};

use crate::{
    crossover::{Crossover, Point},
    probe::Probe,
    series::Series,
    setting::Backing,
    units::{Bytes, MIB},
};

pub use verdict::{STATEMENT, Verdict, verdict};

/// The order of the references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// One stride after the other.
    Sequential,
    /// As many, at random slots of the stride.
    Random,
}

impl Order {
    /// `sequential` or `random`.
    pub const fn name(self) -> &'static str {
        match self {
            Order::Sequential => "sequential",
            Order::Random => "random",
        }
    }

    /// The probe that walks so.
    pub const fn probe(self) -> Probe {
        match self {
            Order::Sequential => Probe::Walk,
            Order::Random => Probe::WalkRandom,
        }
    }
}

/// What a trial is a trial of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// What the region stands on.
    pub host: Backing,
    /// The order.
    pub order: Order,
    /// The distance of references.
    pub stride: Bytes,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The region.
    pub size: Bytes,
    /// Strides, ascending.
    pub strides: Vec<Bytes>,
    /// Passes at most.
    pub passes: u32,
    /// Backings.
    pub hosts: Vec<Backing>,
    /// Orders.
    pub orders: Vec<Order>,
}

/// References of a trial at most: one pass at 4 bytes over 128 MiB, and 64 of them from 256 bytes on. Without it a random
/// walk at 4 bytes would take a minute a trial.
pub const MOST_REFERENCES: u64 = 32 * MIB;

impl Request {
    /// Every cell: by order, then backing, then stride.
    pub fn cells(&self) -> Vec<Cell> {
        let rows = self.orders.iter().flat_map(|&order| self.hosts.iter().map(move |&host| (order, host)));
        rows.flat_map(|(order, host)| self.strides.iter().map(move |&stride| Cell { host, order, stride })).collect()
    }

    /// The numbers of passes after which a trial at this stride reports: 1, 2, 4 … within [`MOST_REFERENCES`].
    pub fn passes_at(&self, stride: Bytes) -> Vec<u32> {
        let references = self.size.0 / stride.0;
        let fits = |n: &u32| *n == 1 || u64::from(*n) * references <= MOST_REFERENCES;
        self.pass_counts().into_iter().filter(fits).collect()
    }

    /// 1, 2, 4 … up to what was asked for.
    pub fn pass_counts(&self) -> Vec<u32> {
        (0..32).map(|log| 1 << log).take_while(|n| *n <= self.passes).collect()
    }
}

/// The metric of the average after so many passes: `ns_per_reference_1`, `ns_per_reference_2` …
pub fn metric(passes: u32) -> String {
    format!("ns_per_reference_{passes}")
}

/// Where 4 KiB pages begin to win against `host` after so many passes; none where either was not measured.
pub fn crossover(series: &Series<Cell>, order: Order, host: Backing, passes: u32) -> Option<Crossover> {
    let curve = |backing| {
        let cells = series.cells.iter().filter(move |cell| cell.order == order && cell.host == backing);
        let points = cells.flat_map(|&cell| {
            series.findings(cell).filter_map(move |(block, finding)| {
                Some(Point { block, at: cell.stride.0 as f64, cost: finding.value(&metric(passes))? })
            })
        });
        points.collect::<Vec<_>>()
    };
    Crossover::of(&curve(host), &curve(Backing::Small))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_end_where_a_trial_would_take_too_long() {
        let strides = vec![Bytes(4), Bytes(64), Bytes(256), Bytes(2 * MIB)];
        let request = Request {
            size: Bytes(128 * MIB),
            strides,
            passes: 64,
            hosts: vec![Backing::Small],
            orders: vec![Order::Random],
        };
        let last = |stride| request.passes_at(Bytes(stride)).last().copied();
        assert_eq!([4, 64, 256, 2 * MIB].map(last), [Some(1), Some(16), Some(64), Some(64)]);
        assert_eq!(request.cells().len(), 4);
    }
}
