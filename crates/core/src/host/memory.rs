//! Memory, its pools and its page policies.

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, PageSize};

/// Memory and swap (`/proc/meminfo`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// `MemTotal`.
    pub total: Option<Bytes>,
    /// `MemFree`.
    pub free: Option<Bytes>,
    /// `MemAvailable`: free, or can be freed without swapping.
    pub available: Option<Bytes>,
    /// `SwapTotal`.
    pub swap: Option<Bytes>,
}

/// One NUMA node (`/sys/devices/system/node/node*`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    /// Its number.
    pub id: u32,
    /// `MemTotal` of the node.
    pub memory: Option<Bytes>,
    /// Its CPUs, as the kernel lists them: `0-23,48-71`.
    pub cpus: String,
}

/// A hugetlb pool (`/sys/kernel/mm/hugepages/hugepages-*kB`), in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// The size of its pages.
    pub page: PageSize,
    /// Pages in the pool, surplus included.
    pub total: u64,
    /// Pages nobody has touched.
    pub free: u64,
    /// Free pages promised to a mapping.
    pub reserved: u64,
    /// Pages above the configured size, gone when freed.
    pub surplus: u64,
}

impl Pool {
    /// Pages that a new mapping can have.
    pub const fn unclaimed(&self) -> u64 {
        self.free.saturating_sub(self.reserved)
    }
}

/// Transparent huge pages (`/sys/kernel/mm/transparent_hugepage`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thp {
    /// `enabled`.
    pub enabled: ThpMode,
    /// `defrag`: how hard a fault tries, as the kernel spells it.
    pub defrag: Option<String>,
    /// `shmem_enabled`, as the kernel spells it.
    pub shmem: Option<String>,
    /// `hpage_pmd_size`.
    pub pmd: Option<Bytes>,
    /// Each size of its own (`hugepages-*kB/enabled`, from Linux 6.8), smallest first; empty before.
    pub sizes: Vec<ThpSize>,
}

/// Who gets transparent huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThpMode {
    /// Everybody.
    Always,
    /// Who asks with `madvise`.
    Madvise,
    /// Nobody.
    Never,
    /// For one size: as the common switch says.
    Inherit,
}

/// The switch of one size of transparent huge page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThpSize {
    /// The page's size.
    pub size: Bytes,
    /// Who gets it.
    pub mode: ThpMode,
}

impl Thp {
    /// Whether memory that asks for 2 MiB pages with `madvise` may have them: both switches count.
    pub fn grants_madvise(&self) -> bool {
        let own = self.sizes.iter().find(|s| s.size.0 == PageSize::Large.bytes()).map(|s| s.mode);
        match own.unwrap_or(ThpMode::Inherit) {
            ThpMode::Always | ThpMode::Madvise => true,
            ThpMode::Never => false,
            ThpMode::Inherit => match self.enabled {
                ThpMode::Always | ThpMode::Madvise => true,
                ThpMode::Never | ThpMode::Inherit => false,
            },
        }
    }

    /// The file whose `never` stands in the way of [`Thp::grants_madvise`].
    pub fn switch_for_2m(&self) -> &'static str {
        let own = self.sizes.iter().any(|s| s.size.0 == PageSize::Large.bytes() && s.mode == ThpMode::Never);
        match own {
            true => "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled",
            false => "/sys/kernel/mm/transparent_hugepage/enabled",
        }
    }
}

impl ThpMode {
    /// As the kernel spells it.
    pub const fn name(self) -> &'static str {
        match self {
            ThpMode::Always => "always",
            ThpMode::Madvise => "madvise",
            ThpMode::Never => "never",
            ThpMode::Inherit => "inherit",
        }
    }

    /// From the kernel's spelling.
    pub fn parse(text: &str) -> Option<ThpMode> {
        [ThpMode::Always, ThpMode::Madvise, ThpMode::Never, ThpMode::Inherit].into_iter().find(|m| m.name() == text)
    }
}

/// Limits of the control group this process is in, the tightest of its ancestors included; none is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// All memory.
    pub memory: Option<Bytes>,
    /// 2 MiB pages of the pool.
    pub hugetlb_2m: Option<Bytes>,
    /// 1 GiB pages of the pool.
    pub hugetlb_1g: Option<Bytes>,
}

impl Limits {
    /// The limit on pages of one size from the pool.
    pub const fn hugetlb(&self, page: PageSize) -> Option<Bytes> {
        match page {
            PageSize::Small => None,
            PageSize::Large => self.hugetlb_2m,
            PageSize::Giant => self.hugetlb_1g,
        }
    }
}
