//! Where the lines of an arena lie, and in which order a chase visits them.
//!
//! An arena is cut into slots of one stride; each slot holds one *node*, a line whose first word points to the next
//! node. Two traps shape the layout:
//!
//! - Lines at offset 0 of every page share one set of a virtually indexed L1 cache, so a page-aligned chase measures L1
//!   conflicts from a dozen pages on, and not the TLB.
//! - Advancing the offset by one line a page (`i * 64 mod 4096`) cures L1 but not L2: on huge pages the set index there is
//!   made of address bits 6 to 15, of which bits 6 to 11 would repeat bits 12 to 15, and only 64 of 1,024 sets would be
//!   used. Memory in 4 KiB pages scatters bits 12 to 15 and would not suffer: a difference that is not translation.
//!
//! So the offset follows the golden ratio (Fibonacci hashing, Knuth vol. 3, 6.4): evenly spread in every run of slots,
//! and unrelated to the slot's low bits.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::{
    probe::Probe,
    units::{Bytes, LINE},
};

/// Where the nodes of an arena lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    bytes: u64,
    stride: u64,
}

/// Why an arena cannot be laid out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A node of a chase needs a line of its own, a word must be aligned.
    #[error("a stride of {stride} does not suit {probe}; use a multiple of {}", .probe.grain())]
    Stride {
        /// What goes over the arena.
        probe: Probe,
        /// The stride asked for.
        stride: Bytes,
    },
    /// A cycle of one node never leaves its line.
    #[error("{bytes} hold fewer than two slots of {stride}")]
    TooSmall {
        /// The arena.
        bytes: Bytes,
        /// The slot.
        stride: Bytes,
    },
}

impl Layout {
    /// One node in each `stride` bytes of an arena of `bytes` bytes: 4096 for one a page, 64 for every line.
    pub fn new(probe: Probe, bytes: Bytes, stride: Bytes) -> Result<Self, LayoutError> {
        if stride.0 == 0 || !stride.0.is_multiple_of(probe.grain().0) {
            return Err(LayoutError::Stride { probe, stride });
        }
        if bytes.0 / stride.0 < 2 {
            return Err(LayoutError::TooSmall { bytes, stride });
        }
        Ok(Layout { bytes: bytes.0, stride: stride.0 })
    }

    /// The size of the arena.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }

    /// The size of a slot.
    pub const fn stride(self) -> u64 {
        self.stride
    }

    /// How many nodes it has.
    pub const fn nodes(self) -> u64 {
        self.bytes / self.stride
    }

    /// The offset in bytes of a node's line from the start of the arena. Strides hold whole lines where there are nodes.
    pub const fn offset(self, node: u64) -> u64 {
        // 2^64 divided by the golden ratio, made odd.
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let lines = (self.stride / LINE) as u128;
        let line = (node.wrapping_mul(GOLDEN) as u128 * lines) >> 64;
        node * self.stride + line as u64 * LINE
    }
}

/// Makes one random cycle through all `nodes` (Sattolo 1986) by exchanging successors.
///
/// The caller holds the successors, wherever they are, and begins with each node its own successor; `exchange(i, j)`
/// exchanges those of nodes `i` and `j`. Each of the (n - 1)! cycles is equally likely as far as the generator allows.
pub fn tie_cycle(nodes: u64, seed: u64, mut exchange: impl FnMut(u64, u64)) {
    let mut rng = Pcg64::seed_from_u64(seed);
    for node in (1..nodes).rev() {
        exchange(node, rng.random_range(0..node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{GIB, KIB, MIB};

    fn successors(nodes: u64, seed: u64) -> Vec<u64> {
        let mut next: Vec<u64> = (0..nodes).collect();
        tie_cycle(nodes, seed, |i, j| next.swap(i as usize, j as usize));
        next
    }

    #[test]
    fn the_cycle_visits_every_node_once_before_it_returns() {
        for nodes in [2, 3, 7, 64, 1000, 4096] {
            let next = successors(nodes, nodes);
            let mut at = 0;
            for step in 1..=nodes {
                at = next[at as usize];
                assert_eq!(at == 0, step == nodes, "{nodes} nodes, step {step}");
            }
        }
    }

    #[test]
    fn a_seed_gives_the_same_cycle_and_another_seed_another() {
        assert_eq!(successors(500, 1), successors(500, 1));
        assert_ne!(successors(500, 1), successors(500, 2));
    }

    #[test]
    fn nodes_lie_in_their_slots_on_lines() {
        for stride in [64, 192, 4 * KIB, 2 * MIB] {
            let layout = Layout::new(Probe::Chase, Bytes(16 * MIB), Bytes(stride)).unwrap();
            for node in 0..layout.nodes() {
                let offset = layout.offset(node);
                assert_eq!((offset / stride, offset % LINE), (node, 0));
            }
        }
    }

    /// 1,024 sets of 64-byte lines: the second-level cache of most servers. Contiguous memory, as with huge pages.
    #[test]
    fn lines_spread_over_all_sets_of_a_second_level_cache() {
        let layout = Layout::new(Probe::Chase, Bytes(GIB), Bytes(4 * KIB)).unwrap();
        let mut sets = vec![0u64; 1024];
        for node in 0..layout.nodes() {
            sets[(layout.offset(node) / LINE % 1024) as usize] += 1;
        }
        let (min, max) = (sets.iter().min().unwrap(), sets.iter().max().unwrap());
        assert!(*min >= 240 && *max <= 272, "256 lines a set on average, {min} to {max} found");
    }

    #[test]
    fn impossible_layouts_are_refused() {
        let check = |probe, bytes, stride, text: &str| {
            assert_eq!(Layout::new(probe, Bytes(bytes), Bytes(stride)).unwrap_err().to_string(), text);
        };
        check(Probe::Chase, GIB, 8, "a stride of 8 B does not suit chase; use a multiple of 64 B");
        check(Probe::Stride, GIB, 0, "a stride of 0 B does not suit stride; use a multiple of 8 B");
        check(Probe::Touch, GIB, 64, "a stride of 64 B does not suit touch; use a multiple of 4 KiB");
        check(Probe::Chase, 4 * KIB, 4 * KIB, "4 KiB hold fewer than two slots of 4 KiB");
    }
}
