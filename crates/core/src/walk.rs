//! A region walked at a stride, pass after pass, from the first touch on: where small pages beat huge ones.
//!
//! The huge-page study's definition: the time per reference is that of all passes so far, the first touches included.
//! Huge pages pay for whole pages on the first pass and win on the later ones, so small pages win where few references
//! share a page, from a stride on that grows with the number of passes.
//!
//! A trial tells [`LEADING`], over all of its passes, and the average after 1, 2, 4 … of them ([`metric`]).

use serde::{Deserialize, Serialize};

use crate::{
    crossover::{Crossover, Point},
    experiment::Record,
    plan::{Job, Walk},
    probe::Probe,
    setting::Backing,
    units::{Bytes, PageSize},
};

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

/// The metric that leads: the average per reference over all passes of a trial.
pub const LEADING: &str = "ns_per_reference";

/// The metric of the average after so many passes: `ns_per_reference_1`, `ns_per_reference_2` …
pub fn metric(passes: u32) -> String {
    format!("{LEADING}_{passes}")
}

/// 1, 2, 4 … up to `passes`.
pub fn pass_counts(passes: u32) -> Vec<u32> {
    (0..32).map(|log| 1 << log).take_while(|n| *n <= passes).collect()
}

/// What walks have in common that can be drawn over their strides in one picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panel {
    /// The leaf of the guest; none natively.
    pub guest: Option<PageSize>,
    /// The region.
    pub size: Bytes,
    /// The order.
    pub order: Order,
    /// Passes asked for.
    pub passes: u32,
}

impl Panel {
    /// Of one walk.
    pub const fn of(walk: &Walk) -> Panel {
        Panel { guest: walk.setting.guest, size: walk.size, order: walk.order, passes: walk.passes }
    }
}

/// The cells of a workload that walk, by name, in the order of the plan; none where it is another kind.
pub fn walks(record: &Record, workload: &str) -> Vec<(String, Walk)> {
    let walk = |job| if let Job::Walk(walk) = job { Some(walk) } else { None };
    let jobs = record.plan.jobs(workload).into_iter();
    jobs.filter_map(|(cell, job)| Some((cell.name(), walk(job)?))).collect()
}

/// Where 4 KiB pages begin to win against `host` after so many passes, natively and in this order: of the first panel that
/// has them. None where either was not measured at two strides.
pub fn crossover(record: &Record, workload: &str, order: Order, host: Backing, passes: u32) -> Option<Crossover> {
    let walks = walks(record, workload);
    let is_meant = |panel: &Panel| panel.guest.is_none() && panel.order == order && panel.passes >= passes;
    let panel = walks.iter().map(|(_, walk)| Panel::of(walk)).find(is_meant)?;
    crossover_in(record, &walks, panel, host, passes)
}

/// The same within one panel, over cells that [`walks`] found.
pub fn crossover_in(
    record: &Record,
    walks: &[(String, Walk)],
    panel: Panel,
    host: Backing,
    passes: u32,
) -> Option<Crossover> {
    let metric = metric(passes);
    let curve = |backing| {
        let own = walks.iter().filter(|(_, walk)| walk.setting.host == backing && Panel::of(walk) == panel);
        let points = own.flat_map(|(cell, walk)| {
            let at = walk.stride.0 as f64;
            record.findings(cell).map(move |(block, found)| (block, at, found))
        });
        let points = points.filter_map(|(block, at, found)| Some(Point { block, at, cost: found.value(&metric)? }));
        points.collect::<Vec<_>>()
    };
    Crossover::of(&curve(host), &curve(Backing::Small))
}
