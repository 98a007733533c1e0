//! What the memory of another process stands on: a guest's, as its virtual machine monitor has mapped it.

use std::{fs::File, io};

use procfs_core::{
    FromRead,
    process::{MemoryMap, MemoryMaps},
};
use vmtax_core::units::Bytes;

use super::Usage;

/// One mapping of another process (`/proc/PID/smaps`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ground {
    /// The addresses that it takes, the end excluded.
    pub addresses: (u64, u64),
    /// `KernelPageSize`, in KiB.
    pub kernel_page_kb: u64,
    /// Memory behind it.
    pub usage: Usage,
}

impl Ground {
    /// The mapping of process `pid` that is a guest's memory of `bytes`: the smallest that holds it.
    ///
    /// # Errors
    /// The process is gone, or somebody else's.
    pub fn of_process(pid: u32, bytes: Bytes) -> io::Result<Option<Ground>> {
        let maps = MemoryMaps::from_read(File::open(format!("/proc/{pid}/smaps"))?).map_err(io::Error::other)?;
        let size = |area: &MemoryMap| area.address.1 - area.address.0;
        let holding = maps.0.into_iter().filter(|area| size(area) >= bytes.0 && is_writable(area));
        Ok(holding.min_by_key(size).map(|area| Ground {
            addresses: area.address,
            kernel_page_kb: area.extension.map.get("KernelPageSize").map_or(0, |bytes| bytes / 1024),
            usage: Usage::of(&[area]),
        }))
    }
}

/// Reservations of address space are larger than any memory, and nobody may write to them.
fn is_writable(area: &MemoryMap) -> bool {
    area.perms.contains(procfs_core::process::MMPermissions::WRITE)
}

#[cfg(test)]
mod tests {
    use vmtax_core::{setting::Backing, units::MIB};

    use super::*;
    use crate::backing::Memory;

    #[test]
    fn memory_of_a_process_is_found_by_its_size() {
        let size = Bytes(77 * MIB);
        let memory = Memory::allocate(Backing::Small, size).unwrap();
        let ground = Ground::of_process(std::process::id(), size).unwrap().unwrap();
        assert_eq!(ground.kernel_page_kb, 4);
        assert_eq!(ground.usage, memory.usage().unwrap());
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        assert!(Ground::of_process(u32::MAX, Bytes(MIB)).is_err());
    }
}
