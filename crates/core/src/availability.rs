//! Which settings can be measured on a host, and for each that cannot: why, and the command that would enable it.
//!
//! Pure: it sees a [`Host`] and what is asked for, and touches nothing. "Available" is a promise about the facts as they
//! were read; the evidence of the trial decides. One obstacle is named for each setting, the most fundamental first:
//! there is no use in a huge page for a VM that cannot be created.

mod kvm;
mod memory;

use serde::{Deserialize, Serialize};

use crate::{
    host::Host,
    setting::{Backing, Setting},
    trial::Unavailable,
    units::{Bytes, GIB, MIB, PageSize},
};

pub use memory::RESERVE_SHARE;

/// Whether vmtax may borrow hugetlb pages for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reserve {
    /// The pools are used as they stand.
    No,
    /// The pools are grown for the run and put back (`--reserve`).
    Yes,
}

/// What a run asks of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// The memory that is walked.
    pub arena: Bytes,
    /// The guest's page tables and code, on memory of the same backing (of 2 MiB pages where that is 1 GiB).
    pub tables: Bytes,
    /// Virtual CPUs; native trials use as many threads.
    pub vcpus: u32,
    /// Whether pools may be grown.
    pub reserve: Reserve,
}

/// What can be measured, and what not, in the order it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Availability {
    /// What was asked of the host.
    pub demand: Demand,
    /// Each setting, or what stands in its way.
    pub settings: Vec<Result<Setting, Unavailable>>,
}

impl Availability {
    /// The answer for one setting; none when it was not asked for.
    pub fn of(&self, setting: Setting) -> Option<Result<(), &Unavailable>> {
        self.settings.iter().find_map(|answer| match answer {
            Ok(found) => (*found == setting).then_some(Ok(())),
            Err(found) => (found.setting == setting).then_some(Err(found)),
        })
    }

    /// Settings that can be measured.
    pub fn available(&self) -> impl Iterator<Item = Setting> + '_ {
        self.settings.iter().filter_map(|answer| answer.as_ref().ok().copied())
    }

    /// Settings that cannot.
    pub fn unavailable(&self) -> impl Iterator<Item = &Unavailable> + '_ {
        self.settings.iter().filter_map(|answer| answer.as_ref().err())
    }
}

/// Every setting of the full matrix: native first, then guest leaves, smallest first.
pub fn matrix() -> Vec<Setting> {
    let guests = PageSize::ALL.map(Some);
    let rows = [None].into_iter().chain(guests);
    rows.flat_map(|guest| Backing::ALL.map(|host| Setting { guest, host })).collect()
}

/// Judges `settings` on `host`. Page tables count towards a backing only where one of the settings on it is a guest.
pub fn availability(host: &Host, settings: &[Setting], demand: Demand) -> Availability {
    let needs_tables = |backing| settings.iter().any(|s| s.host == backing && s.guest.is_some());
    let judge = |&setting: &Setting| {
        let tables = if needs_tables(setting.host) { demand.tables } else { Bytes(0) };
        match obstacle(host, setting, Demand { tables, ..demand }) {
            None => Ok(setting),
            Some(Obstacle { reason, remedy }) => Err(Unavailable { setting, reason, remedy }),
        }
    };
    Availability { demand, settings: settings.iter().map(judge).collect() }
}

/// The pages a run takes from a hugetlb pool: the page size and how many. None where the backing takes none.
///
/// Sizes are rounded up to whole pages. On `1g` only the arena counts: tables stand on 2 MiB pages of the pool where it has
/// some, else on transparent ones, never on a gibibyte of their own.
pub fn pool_need(backing: Backing, arena_bytes: u64, table_bytes: u64) -> Option<(PageSize, u64)> {
    let page = backing.pool()?;
    let tables = match backing {
        Backing::Small | Backing::Thp | Backing::Huge1g => 0,
        Backing::Huge2m => table_bytes.div_ceil(page.bytes()),
    };
    Some((page, arena_bytes.div_ceil(page.bytes()) + tables))
}

/// Why a setting cannot be measured, and what would help.
#[derive(Debug, PartialEq, Eq)]
struct Obstacle {
    reason: String,
    remedy: String,
}

impl Obstacle {
    fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Obstacle {
        Obstacle { reason: reason.into(), remedy: remedy.into() }
    }
}

fn obstacle(host: &Host, setting: Setting, demand: Demand) -> Option<Obstacle> {
    let guest = || setting.guest.and_then(|leaf| kvm::obstacle(host, leaf));
    crowded(host, demand)
        .or_else(|| uneven(setting, demand.arena))
        .or_else(guest)
        .or_else(|| memory::obstacle(host, setting.host, demand))
}

/// More vCPUs than CPUs would measure the scheduler.
fn crowded(host: &Host, demand: Demand) -> Option<Obstacle> {
    let online = host.cpu.logical?;
    let reason = format!("{} vCPUs need as many CPUs, {online} online", demand.vcpus);
    (demand.vcpus > online).then(|| Obstacle::new(reason, format!("--vcpus {online}")))
}

/// An arena must be whole pages of both stages, and at least one.
fn uneven(setting: Setting, arena: Bytes) -> Option<Obstacle> {
    let page = setting.guest.map_or(setting.host.page(), |leaf| leaf.max(setting.host.page()));
    let whole = arena.0.next_multiple_of(page.bytes()).max(page.bytes());
    let reason = format!("{arena} is not a whole number of {} pages", page.prose());
    (whole != arena.0).then(|| Obstacle::new(reason, format!("--size {}", spelled(whole))))
}

/// A size as the command line takes it: `512M`.
fn spelled(bytes: u64) -> String {
    match bytes {
        n if n >= GIB && n % GIB == 0 => format!("{}G", n / GIB),
        n if n >= MIB && n % MIB == 0 => format!("{}M", n / MIB),
        n => n.to_string(),
    }
}

#[cfg(test)]
mod tests;
