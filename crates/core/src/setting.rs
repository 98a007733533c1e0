//! What a trial is a trial of: a guest leaf (or none: native) on a host backing.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::PageSize;

/// What host memory a buffer or a guest stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Backing {
    /// Anonymous memory in 4 KiB pages: no transparent huge page of any size.
    #[serde(rename = "4k")]
    Small,
    /// Anonymous memory in transparent 2 MiB pages.
    #[serde(rename = "thp")]
    Thp,
    /// 2 MiB pages from the hugetlb pool.
    #[serde(rename = "2m")]
    Huge2m,
    /// 1 GiB pages from the hugetlb pool.
    #[serde(rename = "1g")]
    Huge1g,
}

impl Backing {
    /// All of them, in the order tables show them.
    pub const ALL: [Backing; 4] = [Backing::Small, Backing::Thp, Backing::Huge2m, Backing::Huge1g];

    /// `4k`, `thp`, `2m` or `1g`.
    pub const fn name(self) -> &'static str {
        match self {
            Backing::Small => "4k",
            Backing::Thp => "thp",
            Backing::Huge2m => "2m",
            Backing::Huge1g => "1g",
        }
    }

    /// The size of the pages it is made of, when it is what it says.
    pub const fn page(self) -> PageSize {
        match self {
            Backing::Small => PageSize::Small,
            Backing::Thp | Backing::Huge2m => PageSize::Large,
            Backing::Huge1g => PageSize::Giant,
        }
    }

    /// The size of page in the hugetlb pool it is taken from, if it is taken from one.
    pub const fn pool(self) -> Option<PageSize> {
        match self {
            Backing::Small | Backing::Thp => None,
            Backing::Huge2m => Some(PageSize::Large),
            Backing::Huge1g => Some(PageSize::Giant),
        }
    }
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One level for each factor of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Setting {
    /// The leaf of the guest's page table; none is the native venue.
    pub guest: Option<PageSize>,
    /// What the memory stands on.
    pub host: Backing,
}

impl Setting {
    /// A process of this host on `host` memory.
    pub const fn native(host: Backing) -> Self {
        Setting { guest: None, host }
    }

    /// A micro-VM with `guest` leaves on `host` memory.
    pub const fn microvm(guest: PageSize, host: Backing) -> Self {
        Setting { guest: Some(guest), host }
    }

    /// Where it runs.
    pub const fn venue(self) -> Venue {
        match self.guest {
            None => Venue::Native,
            Some(_) => Venue::Microvm,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.guest {
            None => write!(f, "native on {}", self.host),
            Some(leaf) => write!(f, "guest {leaf} on {}", self.host),
        }
    }
}

/// Where a workload runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Venue {
    /// A process on this host.
    Native,
    /// Our own KVM virtual machine: one page table, one probe, no operating system.
    Microvm,
}

impl Venue {
    /// `native` or `microvm`.
    pub const fn name(self) -> &'static str {
        match self {
            Venue::Native => "native",
            Venue::Microvm => "microvm",
        }
    }
}

/// The baseline is measured twice in every block, so that their ratio shows what "no difference" looks like here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Replica {
    /// The trial that counts.
    #[serde(rename = "A")]
    A,
    /// The same again, on the same memory, at another random place in the block.
    #[serde(rename = "A'")]
    APrime,
}

impl Replica {
    /// `A` or `A'`.
    pub const fn name(self) -> &'static str {
        match self {
            Replica::A => "A",
            Replica::APrime => "A'",
        }
    }
}

/// A setting, told apart from its twin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// What is set.
    pub setting: Setting,
    /// Which of the two, where there are two.
    pub replica: Replica,
}
