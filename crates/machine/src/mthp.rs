//! Transparent huge pages of other sizes than 2 MiB (mTHP, Linux 6.8), written `thp-64k`.
//!
//! Asking for one takes two things: the size's own switch, with all others off, because the kernel takes the largest that is
//! on ([`isolate`]); and `MADV_HUGEPAGE`, which [`crate::backing::Memory::map`] gives. What was got is read back
//! ([`Mthp::standing`]), from the page frames or, where these are not shown, from the size's count of faults.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use vmtax_core::units::{Bytes, KIB, MIB};

use crate::{
    backing::Memory,
    folio,
    knob::{self, Host, Lease, Switch, Turn},
};

/// One size of transparent huge page: a power of two from 8 KiB to 2 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mthp(Bytes);

/// How much of some memory stands on one size, and how that is known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Standing {
    /// Share of the memory, 0 to 1.
    pub coverage: f64,
    /// How it is known.
    pub evidence: Evidence,
}

/// How a share is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// From the frame of every page: exact.
    Frames,
    /// From `stats/anon_fault_alloc` before and after: of the whole machine, so at most this much is ours.
    Faults,
}

/// Faults that were answered with one page of this size, by the whole machine since it booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults(u64);

impl Mthp {
    /// Every size there can be, smallest first.
    pub fn all() -> impl Iterator<Item = Mthp> {
        (3..=11).filter_map(|order| Mthp::new(Bytes(KIB << order)))
    }

    /// The size's count of faults, to be taken before the memory is; none where the kernel does not count them.
    pub fn faults(self, host: &Host) -> Option<Faults> {
        let name = format!("kernel/mm/transparent_hugepage/hugepages-{}kB/stats/anon_fault_alloc", self.0.0 / KIB);
        host.kernel.read(&host.sys.join(name)).ok()?.trim().parse().ok().map(Faults)
    }

    /// How much of `memory` stands on this size; none where neither evidence can be had.
    pub fn standing(self, host: &Host, memory: &Memory, before: Option<Faults>) -> Option<Standing> {
        let share = |bytes: u64| (bytes as f64 / memory.bytes() as f64).min(1.0);
        if let Ok(sizes) = folio::sizes(memory) {
            let bytes = sizes.get(&self.0).map_or(0, |bytes| bytes.0);
            return Some(Standing { coverage: share(bytes), evidence: Evidence::Frames });
        }
        let faults = self.faults(host)?.0.saturating_sub(before?.0);
        Some(Standing { coverage: share(faults * self.0.0), evidence: Evidence::Faults })
    }

    /// Transparent huge pages of `bytes`, if there are such.
    pub const fn new(bytes: Bytes) -> Option<Mthp> {
        let is_size = bytes.0.is_power_of_two() && bytes.0 >= 8 * KIB && bytes.0 <= 2 * MIB;
        if is_size { Some(Mthp(bytes)) } else { None }
    }

    /// Its size.
    pub const fn bytes(self) -> Bytes {
        self.0
    }
}

impl fmt::Display for Mthp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.0 {
            bytes if bytes >= MIB => write!(f, "thp-{}m", bytes / MIB),
            bytes => write!(f, "thp-{}k", bytes / KIB),
        }
    }
}

impl FromStr for Mthp {
    type Err = String;

    fn from_str(text: &str) -> Result<Mthp, String> {
        let size = text.strip_prefix("thp-").and_then(|size| size.parse().ok()).and_then(Mthp::new);
        size.ok_or_else(|| {
            format!("`{text}` is no size of transparent huge page, such as thp-64k: 8k to 2m, a power of two")
        })
    }
}

/// Leaves transparent pages of `size` alone switched on, for memory that asks; returns what was turned for it.
///
/// # Errors
/// This kernel does not have the size, or its switches cannot be turned.
pub fn isolate(lease: &mut Lease, size: Mthp) -> Result<Vec<Turn>, knob::Error> {
    Switch::Mthp(size).check(lease.host(), "madvise")?;
    let switches = isolation(lease.host(), size);
    let turns = switches.into_iter().map(|(switch, word)| lease.turn(switch, word)).collect::<Result<Vec<_>, _>>()?;
    Ok(turns.into_iter().filter(|turn| turn.from != turn.to).collect())
}

/// The switches that leave transparent pages of `size` alone switched on, for memory that asks, with their words.
pub fn isolation(host: &Host, size: Mthp) -> Vec<(Switch, &'static str)> {
    let others = Mthp::all().map(Switch::Mthp).filter(|other| *other != Switch::Mthp(size));
    let present = others.filter(|other| other.read(host).is_ok()).map(|other| (other, "never"));
    present.chain([(Switch::Mthp(size), "madvise")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_spelled_as_it_is_read() {
        for text in ["thp-8k", "thp-64k", "thp-1m", "thp-2m"] {
            assert_eq!(text.parse::<Mthp>().unwrap().to_string(), text);
        }
        for text in ["thp", "64k", "thp-4k", "thp-48k", "thp-4m", "thp-"] {
            assert!(text.parse::<Mthp>().is_err(), "{text}");
        }
        assert_eq!(Mthp::all().count(), 9);
    }
}
