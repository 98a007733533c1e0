//! What the kernel says of memory: `/proc/self/smaps`, of its mapping alone.

use std::{fs::File, io};

use procfs_core::{
    FromRead,
    process::{MemoryMap, MemoryMaps, VmFlags},
};
use vmtax_core::units::Bytes;

use super::Memory;

/// Memory really in use behind a mapping (`/proc/self/smaps`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// `Rss`, which leaves out pages of a pool.
    pub resident: Bytes,
    /// `AnonHugePages`: that part of it which is in transparent 2 MiB pages.
    pub huge: Bytes,
    /// `Private_Hugetlb` and `Shared_Hugetlb`: pages of a pool.
    pub pool: Bytes,
}

/// What the kernel says this memory stands on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// `KernelPageSize`, in KiB.
    pub kernel_page_kb: u64,
    /// Share in transparent 2 MiB pages, 0 to 1.
    pub thp_coverage: f64,
    /// Transparent huge pages of every size are ruled out (`nh` in `VmFlags`).
    pub thp_ruled_out: bool,
}

impl Usage {
    /// Of these mappings together.
    pub(super) fn of(areas: &[MemoryMap]) -> Usage {
        let sum = |name: &str| Bytes(areas.iter().filter_map(|area| area.extension.map.get(name)).sum());
        let pool = Bytes(sum("Private_Hugetlb").0 + sum("Shared_Hugetlb").0);
        Usage { resident: sum("Rss"), huge: sum("AnonHugePages"), pool }
    }
}

impl Memory {
    /// Reads back what it stands on from `/proc/self/smaps`.
    pub fn standing(&self) -> io::Result<Standing> {
        let areas = self.areas()?;
        let fields = |name: &'static str| areas.iter().filter_map(move |a| a.extension.map.get(name).copied());
        Ok(Standing {
            kernel_page_kb: fields("KernelPageSize").min().unwrap_or(0) / 1024,
            thp_coverage: fields("AnonHugePages").sum::<u64>() as f64 / self.bytes as f64,
            thp_ruled_out: areas.iter().all(|a| a.extension.vm_flags.contains(VmFlags::NH)),
        })
    }

    /// Reads from `/proc/self/smaps` how much memory it takes now.
    pub fn usage(&self) -> io::Result<Usage> {
        Ok(Usage::of(&self.areas()?))
    }

    /// What smaps says of this mapping alone.
    fn areas(&self) -> io::Result<Vec<MemoryMap>> {
        let maps = MemoryMaps::from_read(File::open("/proc/self/smaps")?).map_err(io::Error::other)?;
        let ours =
            |area: &MemoryMap| area.address.0 >= self.address() && area.address.1 <= self.address() + self.bytes();
        Ok(maps.0.into_iter().filter(ours).collect())
    }
}
