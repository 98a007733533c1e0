//! Time to prepare huge pages, after the memory has been fragmented.
//!
//! ```text
//!   stress: churn, then thin ─► fragmentation ─► (compact) ─► raise the pool ─► fragmentation ─► pool put back ─► next round
//! ```
//!
//! What is timed is the write to `nr_hugepages` alone. Part of the stress may stay while it lasts ([`Plan::kept`]): given back
//! in full before, as the published study did it, the kernel merges the pages again and next to no fragmentation is left.
//! After the last round, and on any error, all of it is given back.

pub mod stress;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde::Serialize;
use vmtax_core::units::{Bytes, PageSize};

use crate::{
    backing::BackingError,
    fragmentation::Fragmentation,
    knob::{self, Host, Lease, Pool, Want, available_memory, compact},
};
use stress::{Churn, Stress};

/// Pages of 2 MiB that the published study prepared.
const PUBLISHED_PAGES: u64 = 5000;
/// At least so much of available memory stays free beside stress and pages.
const SPARED: f64 = 0.1;

/// What is measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Size of the pages.
    pub page: PageSize,
    /// How many are asked for, beyond those the pool has; never more than half of available memory is.
    pub pages: u64,
    /// How often.
    pub rounds: u32,
    /// Share of available memory that the stress may take, 0 to 1; 0 is no stress.
    pub stress: f64,
    /// Share of that which stays, scattered, while the pages are prepared.
    pub kept: f64,
    /// Whether memory is compacted before.
    pub compaction: Compaction,
    /// Of the stress.
    pub seed: u64,
}

/// What is done between stress and pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compaction {
    /// Nothing.
    Off,
    /// All memory is compacted: `/proc/sys/vm/compact_memory`.
    Before,
}

/// One round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Round {
    /// From 1.
    pub round: u32,
    /// Pages asked for.
    pub asked: u64,
    /// Pages granted.
    pub granted: u64,
    /// How long that took.
    pub seconds: f64,
    /// Blocks that the stress took and freed.
    pub churn: Churn,
    /// Memory of the stress that stayed meanwhile.
    pub held: Option<Bytes>,
    /// How long compaction took, where it was asked for.
    pub compaction_seconds: Option<f64>,
    /// Free memory after the stress (and before compaction).
    pub before: Option<Fragmentation>,
    /// Free memory when the pages were prepared.
    pub after: Option<Fragmentation>,
}

/// Why it could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// The stress could not take its memory.
    #[error("the allocator stress failed")]
    Stress(#[from] BackingError),
    /// The pool could not be changed, or memory not be compacted.
    #[error(transparent)]
    Knob(#[from] knob::Error),
}

impl Plan {
    /// The published study's: 5000 pages of 2 MiB (of 1 GiB as many as make that up), or what fits half of the memory
    /// available beside what the stress keeps; five rounds, a sixteenth of the stress kept.
    ///
    /// # Errors
    /// `/proc/meminfo` cannot be read.
    pub fn published(host: &Host, page: PageSize, seed: u64) -> Result<Plan, knob::Error> {
        let (stress, kept) = (0.5, 1.0 / 16.0);
        let wanted = PUBLISHED_PAGES * PageSize::Large.bytes() / page.bytes();
        let left = available_memory(host)?.0 as f64 * (1.0 - stress * kept - SPARED);
        let pages = wanted.min((left / 2.0) as u64 / page.bytes());
        Ok(Plan { page, pages, rounds: 5, stress, kept, compaction: Compaction::Off, seed })
    }
}

impl Round {
    /// Pages prepared in a second.
    pub fn pages_per_second(&self) -> f64 {
        self.granted as f64 / self.seconds
    }
}

/// Measures every round, handing each to `observe` as it ends, until all are made or `stop` is true. The pool is as it was
/// after each.
///
/// # Errors
/// The stress, or the pool. Pages that are not granted are no error.
pub fn run(
    lease: &mut Lease,
    plan: &Plan,
    stop: &AtomicBool,
    mut observe: impl FnMut(&Round),
) -> Result<Vec<Round>, ReserveError> {
    let available = available_memory(lease.host())?;
    let arena = Bytes((available.0 as f64 * plan.stress.clamp(0.0, 1.0 - SPARED)) as u64);
    let random = Pcg64::seed_from_u64(plan.seed);
    let mut stress = if arena.0 > 0 { Some(Stress::new(arena, random)?) } else { None };
    let mut rounds = Vec::new();
    for round in 1..=plan.rounds {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let churn = match &mut stress {
            Some(stress) => {
                let churn = stress.churn()?;
                stress.thin(plan.kept)?;
                churn
            }
            None => Churn::default(),
        };
        let held = stress.as_ref().and_then(Stress::resident);
        let measured = measure(lease, plan)?;
        let done = Round { round, churn, held, ..measured };
        observe(&done);
        rounds.push(done);
    }
    Ok(rounds)
}

/// Prepares the pages once, and puts the pool back.
fn measure(lease: &mut Lease, plan: &Plan) -> Result<Round, ReserveError> {
    let Plan { page, pages: asked, .. } = *plan;
    let before = Fragmentation::read(lease.host(), page);
    let compaction = match plan.compaction {
        Compaction::Off => None,
        Compaction::Before => Some(compact(lease.host())?),
    };
    let present = Pool::read(lease.host(), page)?.available();
    let grant = lease.borrow_up_to(Want { page, pages: present + asked })?;
    let after = Fragmentation::read(lease.host(), page);
    lease.give_back(grant)?;
    Ok(Round {
        round: 0,
        asked,
        granted: grant.available.saturating_sub(present),
        seconds: grant.elapsed.as_secs_f64(),
        churn: Churn::default(),
        held: None,
        compaction_seconds: compaction.as_ref().map(Duration::as_secs_f64),
        before,
        after,
    })
}

#[cfg(test)]
mod tests;
