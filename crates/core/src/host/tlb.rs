//! TLB geometry as CPUID publishes it, each array with the leaf that says so.
//!
//! Published is not physical. AMD describes one shared array once for each page size, with different ways (Zen 4:
//! 8-way for 4 KiB, 6-way for 2 MiB, the same 3072 entries); where timing is known to contradict CPUID the contradiction
//! is carried along in [`TlbArray::measured`]. A hypervisor may zero a leaf: it then stands in [`Tlb::masked`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::PageSize;

/// All the TLBs of a core.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tlb {
    /// What is published, first level first.
    pub arrays: Vec<TlbArray>,
    /// Leaves this processor should publish and which read zero: a hypervisor hides them.
    pub masked: Vec<u32>,
}

/// One array, or one page size's view of a shared array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlbArray {
    /// 1 is nearest to the core.
    pub level: u8,
    /// What it translates.
    pub kind: TlbKind,
    /// Page sizes it holds; 4 MiB pages of 32-bit paging are left out.
    pub pages: Vec<PageSize>,
    /// Its size, as CPUID says.
    pub shape: TlbShape,
    /// Its size by timing, where that is known to differ.
    pub measured: Option<TlbShape>,
    /// The CPUID leaf that says so.
    pub leaf: u32,
}

/// What a TLB translates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TlbKind {
    /// Loads and stores.
    Data,
    /// Loads only.
    Load,
    /// Stores only.
    Store,
    /// Instruction fetches.
    Instruction,
    /// All of them.
    Unified,
}

/// Entries and associativity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlbShape {
    /// Translations it holds.
    pub entries: u32,
    /// Its associativity.
    pub ways: Ways,
}

/// Associativity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ways {
    /// Any entry holds any translation.
    Full,
    /// So many places for each translation.
    Of(u16),
    /// CPUID uses a code that no manual explains.
    Unknown,
}

impl fmt::Display for TlbShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ways {
            Ways::Full => write!(f, "{} full", self.entries),
            Ways::Of(ways) => write!(f, "{} × {ways}-way", self.entries),
            Ways::Unknown => write!(f, "{}", self.entries),
        }
    }
}

impl TlbKind {
    /// As it stands before `TLB` in a table.
    pub const fn name(self) -> &'static str {
        match self {
            TlbKind::Data => "data",
            TlbKind::Load => "load",
            TlbKind::Store => "store",
            TlbKind::Instruction => "code",
            TlbKind::Unified => "all",
        }
    }
}
