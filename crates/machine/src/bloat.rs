//! Memory really used after touching a few bytes of a large mapping: the price of pages that are larger than what is needed.
//!
//! "For large data not frequently referenced, using large pages may not get benefits": one byte in each 2 MiB takes 4 KiB on
//! small pages and all of it on large ones.

use std::io;

use serde::Serialize;
use vmtax_core::units::{Bytes, PageSize};

use crate::{
    backing::{BackingError, Foundation, Memory, Usage},
    knob::{self, Host, Pool, available_memory},
};

/// Which bytes of a mapping are touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// One in each so many, from the first.
    Every(Bytes),
    /// So many from the start.
    First(Bytes),
}

/// What is mapped and touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// Size of the mapping, a multiple of the page.
    pub bytes: Bytes,
    /// What of it is touched.
    pub pattern: Pattern,
}

/// What a mapping took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bloat {
    /// Bytes touched.
    pub touched: Bytes,
    /// Of this mapping alone.
    pub usage: Usage,
    /// Pages that left the free ones of the pool, of the whole machine; none where no pool was used.
    pub pool_pages: Option<u64>,
}

/// Why it could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum BloatError {
    /// More memory than vmtax takes from a host.
    #[error("touching {needed} is more than half of the {available} that are available")]
    TooMuch {
        /// What would be used if every page touched were of the size asked for.
        needed: Bytes,
        /// `MemAvailable`.
        available: Bytes,
    },
    /// There is no such memory.
    #[error(transparent)]
    Backing(#[from] BackingError),
    /// The pool cannot be read.
    #[error(transparent)]
    Knob(#[from] knob::Error),
    /// smaps cannot be read.
    #[error("cannot read /proc/self/smaps")]
    Smaps(#[source] io::Error),
}

impl Bloat {
    /// Memory in use.
    pub fn used(&self) -> Bytes {
        Bytes(self.usage.resident.0 + self.usage.pool.0)
    }

    /// Memory in use for each byte touched.
    pub fn ratio(&self) -> f64 {
        self.used().0 as f64 / self.touched.0 as f64
    }
}

impl Touch {
    /// Bytes touched.
    pub fn touched(self) -> Bytes {
        match self.pattern {
            Pattern::Every(gap) => Bytes(self.bytes.0.div_ceil(gap.0.max(1))),
            Pattern::First(bytes) => Bytes(bytes.0.min(self.bytes.0)),
        }
    }

    /// Offsets that bring in every page which the pattern touches.
    fn offsets(self) -> impl Iterator<Item = u64> {
        let (end, step) = match self.pattern {
            Pattern::Every(gap) => (self.bytes.0, gap.0.max(1)),
            Pattern::First(bytes) => (bytes.0.min(self.bytes.0), PageSize::Small.bytes()),
        };
        (0..end).step_by(step as usize)
    }

    /// What it takes in pages of `page` bytes, each whole.
    fn worst_case(self, page: u64) -> Bytes {
        let pages = match self.pattern {
            Pattern::Every(gap) => self.bytes.0.div_ceil(gap.0.max(page)),
            Pattern::First(_) => self.touched().0.div_ceil(page),
        };
        Bytes(pages.saturating_mul(page))
    }
}

/// Maps fresh memory on `foundation`, touches it, reads back what that took, and unmaps it.
///
/// Pages of a pool must be there: `touch.bytes` of them are promised to the mapping, however few are touched.
///
/// # Errors
/// The memory cannot be had, or is more than half of what is available.
pub fn measure(host: &Host, foundation: impl Into<Foundation>, touch: Touch) -> Result<Bloat, BloatError> {
    let foundation = foundation.into();
    let pool = foundation.backing().pool();
    let (needed, available) = (touch.worst_case(foundation.page_bytes()), available_memory(host)?);
    if pool.is_none() && needed.0 > available.0 / 2 {
        return Err(BloatError::TooMuch { needed, available });
    }
    let free = |page| Pool::read(host, page).map(|pool| pool.free);
    let before = pool.map(free).transpose()?;
    let memory = Memory::map(foundation, touch.bytes)?;
    touch.offsets().for_each(|offset| memory.touch(offset));
    let usage = memory.usage().map_err(BloatError::Smaps)?;
    let after = pool.map(free).transpose()?;
    let pool_pages = before.zip(after).map(|(before, after)| before.saturating_sub(after));
    Ok(Bloat { touched: touch.touched(), usage, pool_pages })
}

#[cfg(test)]
mod tests {
    use vmtax_core::{
        setting::Backing,
        units::{GIB, KIB, MIB},
    };

    use super::*;

    #[test]
    fn small_pages_take_4_kib_for_each_byte_far_from_others() {
        let check = |pattern, touched, used| {
            let bloat = measure(&Host::default(), Backing::Small, Touch { bytes: Bytes(16 * MIB), pattern }).unwrap();
            assert_eq!((bloat.touched.0, bloat.used().0), (touched, used), "{pattern:?}");
        };
        check(Pattern::Every(Bytes(4 * KIB)), 4096, 16 * MIB);
        check(Pattern::Every(Bytes(64 * KIB)), 256, MIB);
        check(Pattern::Every(Bytes(3 * MIB)), 6, 24 * KIB);
        check(Pattern::Every(Bytes(GIB)), 1, 4 * KIB);
        check(Pattern::First(Bytes(100)), 100, 4 * KIB);
        check(Pattern::First(Bytes(5000)), 5000, 8 * KIB);
        check(Pattern::First(Bytes(GIB)), 16 * MIB, 16 * MIB);
    }

    #[test]
    fn one_byte_brings_in_a_whole_transparent_page_where_there_are_any() {
        let touch = Touch { bytes: Bytes(64 * MIB), pattern: Pattern::Every(Bytes(2 * MIB)) };
        match measure(&Host::default(), Backing::Thp, touch) {
            Ok(bloat) if bloat.usage.huge.0 < 64 * MIB => {
                println!("skipped: only {} in transparent huge pages were to be had", bloat.usage.huge)
            }
            Ok(bloat) => assert_eq!((bloat.used(), bloat.ratio()), (Bytes(64 * MIB), 2.0 * MIB as f64)),
            Err(e) => println!("skipped: {e}"),
        }
    }

    #[test]
    fn what_would_take_the_host_is_refused() {
        let touch = Touch { bytes: Bytes(1 << 46), pattern: Pattern::Every(Bytes(4 * KIB)) };
        assert!(matches!(measure(&Host::default(), Backing::Small, touch), Err(BloatError::TooMuch { .. })));
    }
}
