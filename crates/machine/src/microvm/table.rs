//! The guest's page table: four levels, leaves of one size for the arena, small pages for code and task state.
//!
//! ```text
//!   guest-physical                                                guest-virtual
//!   0          code page: payload, then the `out` that ends it    CODE_GVA
//!   4 KiB      task-state segment, which permits all ports        TSS_GVA
//!   8 KiB …    page-table frames, PML4 first                      (not mapped)
//!   4 GiB …    the arena                                          its address on the host
//! ```
//!
//! Frames of the page table, and the code, lie in another 1 GiB of guest-physical memory than the arena, so that no large
//! page of the second stage holds both (Linux splits a large page in which it must write-protect a guest's page table, and
//! one that is executed under the iTLB multihit mitigation). The arena starts at 4 GiB, beyond the addresses KVM keeps
//! for itself on Intel (TSS, identity map, APIC).

use vm_memory::{Bytes as _, GuestAddress, GuestMemoryMmap};
use vmtax_core::{
    translation::{Entry, Level, Walk},
    units::{GIB, KIB, PageSize},
};

/// Guest-physical address of the code page.
pub const CODE_GPA: u64 = 0;
/// Guest-virtual address of the code page: far from any address the host gives an arena.
pub const CODE_GVA: u64 = GIB;
/// Guest-physical address of the task-state segment.
pub const TSS_GPA: u64 = CODE_GPA + FRAME;
/// Guest-virtual address of the task-state segment.
pub const TSS_GVA: u64 = CODE_GVA + FRAME;
/// Guest-physical address of the PML4, the root of the page table.
pub const PML4_GPA: u64 = TSS_GPA + FRAME;
/// Guest-physical address of the arena.
pub const ARENA_GPA: u64 = 4 * GIB;

const FRAME: u64 = 4 * KIB;
const ENTRIES: u64 = 512;

/// Bits of a paging-structure entry (Intel SDM vol. 3, 4.5, tables 4-15 to 4-20).
mod bit {
    pub const PRESENT: u64 = 1 << 0;
    pub const WRITABLE: u64 = 1 << 1;
    pub const USER: u64 = 1 << 2;
    pub const ACCESSED: u64 = 1 << 5;
    pub const DIRTY: u64 = 1 << 6;
    pub const PAGE_SIZE: u64 = 1 << 7;
    pub const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
}

/// A page table under construction in guest memory.
#[derive(Debug)]
pub struct Table<'m> {
    memory: &'m GuestMemoryMmap,
    next_frame: u64,
}

/// The page table does not fit the guest memory set aside for it.
#[derive(Debug, thiserror::Error)]
#[error("the guest's page table does not fit its memory")]
pub struct TableError(#[from] vm_memory::GuestMemoryError);

/// How many levels lie above the leaf, the PML4 included: 3 for 4 KiB, 2 for 2 MiB, 1 for 1 GiB.
const fn levels_above(leaf: PageSize) -> u32 {
    match leaf {
        PageSize::Small => 3,
        PageSize::Large => 2,
        PageSize::Giant => 1,
    }
}

/// An upper bound on the guest-physical bytes needed below the arena to map `bytes` with `leaf` pages: code and all frames.
pub fn low_bytes(bytes: u64, leaf: PageSize) -> u64 {
    let spans = (1..=3).map(|level| FRAME << (9 * level));
    let arena: u64 = spans.skip(3 - levels_above(leaf) as usize).map(|span| bytes / span + 2).sum();
    // Code, task state, PML4, and the three frames that lead to the first two.
    (2 + 1 + 3 + arena) * FRAME
}

impl<'m> Table<'m> {
    /// An empty page table.
    pub fn new(memory: &'m GuestMemoryMmap) -> Self {
        Table { memory, next_frame: PML4_GPA + FRAME }
    }

    /// Maps the code page and the task-state segment.
    pub fn map_low(&mut self) -> Result<(), TableError> {
        self.map(CODE_GVA, CODE_GPA, 2 * FRAME, PageSize::Small)
    }

    /// Maps `bytes` bytes from guest-virtual `gva` to guest-physical `gpa` with leaves of one size, for reading, writing
    /// and executing in ring 3. All three are multiples of the leaf. Accessed and dirty are set beforehand, so that the
    /// processor's setting them is not part of a measurement.
    pub fn map(&mut self, gva: u64, gpa: u64, bytes: u64, leaf: PageSize) -> Result<(), TableError> {
        let size = match leaf {
            PageSize::Small => 0,
            PageSize::Large | PageSize::Giant => bit::PAGE_SIZE,
        };
        let flags = bit::PRESENT | bit::WRITABLE | bit::USER | bit::ACCESSED | bit::DIRTY | size;
        let leaf_bytes = leaf.bytes();
        let mut mapped = 0;
        while mapped < bytes {
            // As many leaves as the last table has left, written in one go: a walk for each would take most of a VM's start.
            let first = index(gva + mapped, levels_above(leaf));
            let n = (ENTRIES - first).min((bytes - mapped) / leaf_bytes);
            let entries: Vec<u8> =
                (0..n).flat_map(|i| ((gpa + mapped + i * leaf_bytes) | flags).to_le_bytes()).collect();
            let entry = self.leaf_entry(gva + mapped, leaf)?;
            self.memory.write_slice(&entries, GuestAddress(entry))?;
            mapped += n * leaf_bytes;
        }
        Ok(())
    }

    /// The guest-physical address of the entry that ends the translation of `gva`; frames above it are made as needed.
    fn leaf_entry(&mut self, gva: u64, leaf: PageSize) -> Result<u64, TableError> {
        let mut frame = PML4_GPA;
        for depth in 0..levels_above(leaf) {
            let entry = frame + 8 * index(gva, depth);
            let present: u64 = self.memory.read_obj(GuestAddress(entry))?;
            frame = if present & bit::PRESENT != 0 {
                present & bit::ADDRESS
            } else {
                let fresh = self.next_frame;
                self.next_frame += FRAME;
                let flags = bit::PRESENT | bit::WRITABLE | bit::USER | bit::ACCESSED;
                self.memory.write_obj(fresh | flags, GuestAddress(entry))?;
                fresh
            };
        }
        Ok(frame + 8 * index(gva, levels_above(leaf)))
    }
}

/// Walks the page table in `memory` as the processor does; none where nothing is mapped.
pub fn walk(memory: &GuestMemoryMmap, gva: u64) -> Result<Option<Walk>, TableError> {
    let mut frame = PML4_GPA;
    let mut entries = Vec::new();
    for level in Level::ALL {
        let at = frame + 8 * u64::from(level.index(gva));
        let value: u64 = memory.read_obj(GuestAddress(at))?;
        if value & bit::PRESENT == 0 {
            return Ok(None);
        }
        entries.push(Entry { level, at, value });
        let is_leaf = level == Level::Pt || value & bit::PAGE_SIZE != 0;
        if let Some(leaf) = level.leaf().filter(|_| is_leaf) {
            let gpa = (value & bit::ADDRESS) + gva % leaf.bytes();
            return Ok(Some(Walk { entries, leaf, gpa }));
        }
        frame = value & bit::ADDRESS;
    }
    unreachable!("an entry of the last level is a leaf")
}

/// The index of `gva` in the table at `depth` below the PML4: bits 47:39, 38:30, 29:21, 20:12.
const fn index(gva: u64, depth: u32) -> u64 {
    (gva >> (39 - 9 * depth)) % ENTRIES
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmtax_core::units::MIB;

    #[test]
    fn every_address_of_the_arena_translates_to_its_place_by_a_leaf_of_the_size_asked_for() {
        // The last 512 MiB before a PML4 entry ends and as much after it, where it matters: two of everything.
        let arenas = [0x7f12_4000_0000, (1 << 39) - 512 * MIB];
        for gva in arenas {
            for leaf in PageSize::ALL {
                let gva = gva / leaf.bytes() * leaf.bytes();
                let bytes = 1024 * MIB;
                let low = low_bytes(bytes, leaf).next_multiple_of(2 * MIB) as usize;
                let memory = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), low)]).unwrap();
                let mut table = Table::new(&memory);
                table.map_low().unwrap();
                table.map(gva, ARENA_GPA, bytes, leaf).unwrap();
                assert!(table.next_frame <= low_bytes(bytes, leaf), "{leaf}: {:#x}", table.next_frame);
                let ends = |gva| walk(&memory, gva).unwrap().map(|walk| (walk.gpa, walk.leaf));
                for offset in (0..bytes).step_by(12_345_678) {
                    assert_eq!(ends(gva + offset), Some((ARENA_GPA + offset, leaf)));
                }
                assert_eq!(ends(gva + bytes), None);
                assert_eq!(ends(CODE_GVA + 5), Some((CODE_GPA + 5, PageSize::Small)));
                assert_eq!(ends(TSS_GVA + 5), Some((TSS_GPA + 5, PageSize::Small)));
            }
        }
    }
}
