//! Allocator stress: blocks of random sizes taken and given back, until free memory lies in pieces.
//!
//! One mapping of small pages is the arena, so that no more than its size is ever taken, and dropping it gives everything
//! back, whatever has happened. A block is a range of it: populated to take it, `MADV_DONTNEED` to free it. Sizes are
//! log-uniform, 4 KiB to 4 MiB: as many blocks between 8 and 16 KiB as between 1 and 2 MiB.
//!
//! ```text
//!   after churn     ██████···████·██████████······███████·····██
//!   after thinning  █······█·····█···········█··········█·····     what stays while pages are prepared
//! ```
//!
//! The kernel can move these pages, as it can most of a program's. Kernel memory, which it cannot, is not imitated.

use rand::RngExt;
use rand_pcg::Pcg64;
use vmtax_core::{
    setting::Backing,
    units::{Bytes, KIB, MIB},
};

use crate::backing::{BackingError, Memory};

const PAGE: usize = 4 * KIB as usize;
/// Pages of the largest block, as a power of two: 4 MiB.
const LARGEST: f64 = ((4 * MIB) as usize / PAGE).ilog2() as f64;

/// What one round did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Churn {
    /// Blocks taken.
    pub taken: u64,
    /// Blocks freed.
    pub freed: u64,
}

/// Memory under stress. All of it goes back to the kernel when dropped.
#[derive(Debug)]
pub struct Stress {
    memory: Memory,
    random: Pcg64,
}

impl Stress {
    /// An arena of `bytes`, none of it taken yet.
    pub fn new(bytes: Bytes, random: Pcg64) -> Result<Stress, BackingError> {
        let bytes = Bytes(bytes.0.next_multiple_of(4 * MIB));
        Ok(Stress { memory: Memory::map(Backing::Small, bytes)?, random })
    }

    /// Takes and frees blocks, by the toss of a coin, until as many bytes as the arena has were taken or freed.
    pub fn churn(&mut self) -> Result<Churn, BackingError> {
        let mut churn = Churn::default();
        let mut left = self.memory.bytes() as usize;
        while left > 0 {
            let (offset, len) = self.block();
            if self.random.random() {
                self.memory.populate_range(offset, len)?;
                churn.taken += 1;
            } else {
                self.memory.discard_range(offset, len)?;
                churn.freed += 1;
            }
            left = left.saturating_sub(len);
        }
        Ok(churn)
    }

    /// Frees all but a random `share` of the pages, 0 to 1.
    pub fn thin(&mut self, share: f64) -> Result<(), BackingError> {
        let pages = self.memory.bytes() as usize / PAGE;
        let mut page = 0;
        while page < pages {
            let gap = self.gap(share).min(pages - page);
            if gap > 0 {
                self.memory.discard_range(page * PAGE, gap * PAGE)?;
            }
            page += gap + 1;
        }
        Ok(())
    }

    /// Bytes taken now; none where smaps cannot be read.
    pub fn resident(&self) -> Option<Bytes> {
        self.memory.usage().ok().map(|usage| usage.resident)
    }

    fn block(&mut self) -> (usize, usize) {
        let pages = self.memory.bytes() as usize / PAGE;
        let len = (self.random.random_range(0.0..LARGEST).exp2() as usize).min(pages);
        let offset = self.random.random_range(0..=pages - len);
        (offset * PAGE, len * PAGE)
    }

    /// Pages before the next that stays: geometric, by inversion.
    fn gap(&mut self, share: f64) -> usize {
        if share <= 0.0 {
            return usize::MAX;
        }
        if share >= 1.0 {
            return 0;
        }
        let uniform: f64 = self.random.random_range(f64::MIN_POSITIVE..1.0);
        (uniform.ln() / (1.0 - share).ln()) as usize
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn stress(seed: u64) -> Stress {
        Stress::new(Bytes(32 * MIB), Pcg64::seed_from_u64(seed)).unwrap()
    }

    #[test]
    fn stress_takes_some_of_its_arena_and_never_more() {
        let mut stress = stress(1);
        for _ in 0..4 {
            let churn = stress.churn().unwrap();
            assert!(churn.taken > 0 && churn.freed > 0, "{churn:?}");
            let resident = stress.resident().unwrap().0;
            assert!(resident > MIB && resident <= 32 * MIB, "{resident}");
        }
        stress.thin(1.0 / 16.0).unwrap();
        let kept = stress.resident().unwrap().0;
        assert!(kept > 0 && kept < 4 * MIB, "{kept}");
        stress.thin(0.0).unwrap();
        assert_eq!(stress.resident(), Some(Bytes(0)));
    }

    #[test]
    fn the_same_seed_takes_the_same_blocks() {
        let [mut a, mut b, mut c] = [7, 7, 8].map(stress);
        let rounds = [&mut a, &mut b, &mut c].map(|stress| (stress.churn().unwrap(), stress.resident()));
        assert_eq!(rounds[0], rounds[1]);
        assert_ne!(rounds[0], rounds[2]);
    }
}
