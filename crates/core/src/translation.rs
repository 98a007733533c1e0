//! One address on its way through both stages of translation.
//!
//! ```text
//!   gva ──guest's page table──► gpa ──memory slot──► hva ──host's page table──► hpa
//!        PML4 PDPT PD PT             one addition         a page of the host
//! ```
//! The processor does not go by way of the host-virtual address: KVM maps gpa to hpa in a table of its own (EPT, NPT, or
//! merged with the first stage into a shadow page table). But that table follows the slots and the host's page table,
//! and no page of it is larger than the smallest of: the guest's leaf (under shadow paging), the slot's alignment, the
//! host's page.

use serde::Serialize;

use crate::units::{Bytes, PageSize};

/// A level of the guest's page table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Bits 47 to 39.
    Pml4,
    /// Bits 38 to 30; an entry may map 1 GiB.
    Pdpt,
    /// Bits 29 to 21; an entry may map 2 MiB.
    Pd,
    /// Bits 20 to 12.
    Pt,
}

impl Level {
    /// In the order of a walk.
    pub const ALL: [Level; 4] = [Level::Pml4, Level::Pdpt, Level::Pd, Level::Pt];

    /// As the manuals write it.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Pml4 => "PML4",
            Level::Pdpt => "PDPT",
            Level::Pd => "PD",
            Level::Pt => "PT",
        }
    }

    /// The index of an address in a table of this level (Intel SDM vol. 3, 4.5).
    pub const fn index(self, gva: u64) -> u16 {
        let shift = match self {
            Level::Pml4 => 39,
            Level::Pdpt => 30,
            Level::Pd => 21,
            Level::Pt => 12,
        };
        ((gva >> shift) % 512) as u16
    }

    /// The page that an entry of this level maps where it is a leaf; none where it cannot be one.
    pub const fn leaf(self) -> Option<PageSize> {
        match self {
            Level::Pml4 => None,
            Level::Pdpt => Some(PageSize::Giant),
            Level::Pd => Some(PageSize::Large),
            Level::Pt => Some(PageSize::Small),
        }
    }
}

/// One entry that a walk reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// In a table of this level.
    pub level: Level,
    /// Its guest-physical address.
    pub at: u64,
    /// What it holds.
    pub value: u64,
}

/// The first stage: what the guest's page table says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Walk {
    /// Entries in the order of the walk, the leaf last; none where a guest's own kernel tells the outcome alone.
    pub entries: Vec<Entry>,
    /// The page that the last of them maps.
    pub leaf: PageSize,
    /// The guest-physical address.
    pub gpa: u64,
}

/// A memory slot: guest-physical memory that is a piece of the host process's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Slot {
    /// KVM's number of it; none where another program than vmtax has made the guest.
    pub number: Option<u32>,
    /// Where it begins for the guest.
    pub gpa: u64,
    /// Where it begins for the process.
    pub hva: u64,
    /// Its size.
    pub bytes: u64,
}

impl Slot {
    /// The host-virtual address of a guest-physical one; none outside the slot.
    pub fn hva_of(&self, gpa: u64) -> Option<u64> {
        gpa.checked_sub(self.gpa).filter(|offset| *offset < self.bytes).map(|offset| self.hva + offset)
    }

    /// The largest page that can be mapped in it: in larger ones gpa and hva lie at different offsets.
    pub fn largest_page(&self) -> PageSize {
        let suits = |page: &PageSize| (self.gpa ^ self.hva).is_multiple_of(page.bytes()) && self.bytes >= page.bytes();
        PageSize::ALL.into_iter().filter(suits).max().unwrap_or(PageSize::Small)
    }
}

/// The last stage: the host's page that an address lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// The host-physical address; none where the kernel does not show it, which takes CAP_SYS_ADMIN.
    pub hpa: Option<u64>,
    /// The page: that of a pool, or the piece of contiguous memory that the kernel handles as one; none where unknown.
    pub page: Option<Bytes>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Translation {
    /// The guest-virtual address.
    pub gva: u64,
    /// To guest-physical.
    pub walk: Walk,
    /// To host-virtual.
    pub slot: Slot,
    /// The host-virtual address.
    pub hva: u64,
    /// To host-physical.
    pub frame: Frame,
    /// The guest-physical address as KVM translates the same one (KVM_TRANSLATE); none where it cannot.
    pub kvm_gpa: Option<u64>,
}

impl Translation {
    /// Whether KVM contradicts the walk.
    pub fn is_contradicted(&self) -> bool {
        self.kvm_gpa.is_some_and(|gpa| gpa != self.walk.gpa)
    }

    /// The largest page by which all stages together can be mapped, and so the most one TLB entry can reach; none where
    /// the host's page is not known.
    pub fn effective_page(&self) -> Option<Bytes> {
        let pages = [Bytes(self.walk.leaf.bytes()), Bytes(self.slot.largest_page().bytes()), self.frame.page?];
        pages.into_iter().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{GIB, MIB};

    #[test]
    fn indices_are_the_nine_bits_of_their_level() {
        let gva = 1 << 39 | 2 << 30 | 3 << 21 | 4 << 12 | 5;
        assert_eq!(Level::ALL.map(|level| level.index(gva)), [1, 2, 3, 4]);
    }

    #[test]
    fn a_slot_is_one_addition_within_its_bounds() {
        let slot = Slot { number: Some(1), gpa: 4 * GIB, hva: 7 * GIB, bytes: 2 * MIB };
        assert_eq!(slot.hva_of(4 * GIB + 5), Some(7 * GIB + 5));
        assert_eq!(slot.hva_of(4 * GIB + 2 * MIB), None);
        assert_eq!(slot.hva_of(0), None);
        assert_eq!(slot.largest_page(), PageSize::Large);
        assert_eq!(Slot { hva: 7 * GIB + 4096, ..slot }.largest_page(), PageSize::Small);
    }

    #[test]
    fn no_page_is_larger_than_the_smallest_of_all_stages() {
        let slot = Slot { number: Some(1), gpa: 4 * GIB, hva: 7 * GIB, bytes: GIB };
        let check = |leaf, page: Option<u64>, expected: Option<u64>| {
            let walk = Walk { entries: Vec::new(), leaf, gpa: 4 * GIB };
            let frame = Frame { hpa: None, page: page.map(Bytes) };
            let translation = Translation { gva: 7 * GIB, walk, slot, hva: 7 * GIB, frame, kvm_gpa: Some(4 * GIB) };
            assert_eq!(translation.effective_page(), expected.map(Bytes));
            assert!(!translation.is_contradicted());
        };
        check(PageSize::Large, Some(4096), Some(4096));
        check(PageSize::Large, Some(GIB), Some(2 * MIB));
        check(PageSize::Giant, Some(GIB), Some(GIB));
        check(PageSize::Giant, None, None);
    }
}
