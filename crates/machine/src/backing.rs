//! Memory on a backing of choice, and the proof of what it really stands on.
//!
//! ```text
//!      reserved, no access           the memory                 reserved, no access
//!   |·························|██████████████████████████████|·······················|
//!                             ^ multiple of 1 GiB
//! ```
//!
//! Aligned to 1 GiB, because KVM maps a large page only where guest-physical and host-virtual addresses agree in their low
//! bits. The reservation around it stays, so that the kernel never merges this mapping with a neighbour and what smaps
//! says of it is said of it alone.

use std::{fs::File, io};

use procfs_core::{
    FromRead,
    process::{MemoryMaps, VmFlags},
};
use vmtax_core::{
    setting::Backing,
    units::{Bytes, GIB, PageSize},
};

/// Memory of this process, all of it populated. Unmapped when dropped.
#[derive(Debug)]
pub struct Memory {
    /// Unmaps everything when dropped.
    _reservation: Reservation,
    start: *mut u8,
    bytes: usize,
    backing: Backing,
}

// SAFETY: the mapping belongs to this value alone; the pointer is an address, good on any thread.
unsafe impl Send for Memory {}
// SAFETY: a shared reference gives out nothing but addresses and sizes.
unsafe impl Sync for Memory {}

/// Why memory could not be had.
#[derive(Debug, thiserror::Error)]
pub enum BackingError {
    /// There are not enough free pages.
    #[error("cannot back {bytes} with {backing} pages: the kernel has not enough of them free")]
    Exhausted {
        /// How much was wanted.
        bytes: Bytes,
        /// On what.
        backing: Backing,
    },
    /// Anything else the kernel said.
    #[error("cannot back {bytes} with {backing} pages: {operation}")]
    Kernel {
        /// How much was wanted.
        bytes: Bytes,
        /// On what.
        backing: Backing,
        /// The system call that failed.
        operation: &'static str,
        /// What it said.
        #[source]
        source: io::Error,
    },
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

impl Memory {
    /// Maps and populates `bytes` bytes, a multiple of the backing's page size.
    pub fn allocate(backing: Backing, bytes: Bytes) -> Result<Self, BackingError> {
        let kernel = |operation, source| BackingError::Kernel { bytes, backing, operation, source };
        let exhausted = |source: io::Error, operation| match source.raw_os_error() {
            // The pool was drained between mmap, which reserves, and here; or memory is short.
            Some(libc::ENOMEM | libc::EFAULT) => BackingError::Exhausted { bytes, backing },
            _ => kernel(operation, source),
        };
        let size = bytes.0 as usize;
        let reservation = Reservation::new(size).map_err(|e| kernel("reserving addresses", e))?;
        let start = reservation.aligned_start();
        map_fixed(start, size, backing).map_err(|e| exhausted(e, "mmap"))?;
        let memory = Memory { _reservation: reservation, start, bytes: size, backing };
        match backing {
            Backing::Small => match memory.advise(libc::MADV_NOHUGEPAGE) {
                // A kernel without transparent huge pages has none to rule out.
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {}
                outcome => outcome.map_err(|e| kernel("MADV_NOHUGEPAGE", e))?,
            },
            Backing::Thp => memory.advise(libc::MADV_HUGEPAGE).map_err(|e| kernel("MADV_HUGEPAGE", e))?,
            Backing::Huge2m | Backing::Huge1g => {}
        }
        memory.populate().map_err(|e| exhausted(e, "populating"))?;
        if backing == Backing::Thp {
            memory.collapse();
        }
        Ok(memory)
    }

    /// The address, the same for this process and for a guest that runs on it.
    pub fn address(&self) -> u64 {
        self.start as u64
    }

    /// The size.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// What was asked for.
    pub fn backing(&self) -> Backing {
        self.backing
    }

    /// The start, to read and write through.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// Reads back what it stands on from `/proc/self/smaps`.
    pub fn standing(&self) -> io::Result<Standing> {
        let maps = MemoryMaps::from_read(File::open("/proc/self/smaps")?).map_err(io::Error::other)?;
        let ours = |&(from, to): &(u64, u64)| from >= self.address() && to <= self.address() + self.bytes();
        let areas: Vec<_> = maps.0.iter().filter(|area| ours(&area.address)).collect();
        let fields = |name: &'static str| areas.iter().filter_map(move |a| a.extension.map.get(name).copied());
        Ok(Standing {
            kernel_page_kb: fields("KernelPageSize").min().unwrap_or(0) / 1024,
            thp_coverage: fields("AnonHugePages").sum::<u64>() as f64 / self.bytes as f64,
            thp_ruled_out: areas.iter().all(|a| a.extension.vm_flags.contains(VmFlags::NH)),
        })
    }

    fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the range is a mapping of ours, and none of the advices used here discards its contents.
        match unsafe { libc::madvise(self.start.cast(), self.bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Faults every page in for writing, so that no first touch on the host's side is left for a trial. By one thread, so that
    /// all of it comes from the caller's NUMA node; two were no faster where fresh memory comes from a hypervisor below.
    fn populate(&self) -> io::Result<()> {
        match self.advise(libc::MADV_POPULATE_WRITE) {
            // Before Linux 5.14.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                for offset in (0..self.bytes).step_by(PageSize::Small.bytes() as usize) {
                    // SAFETY: within the mapping, which is writable and private to us.
                    unsafe { self.start.add(offset).write_volatile(0) };
                }
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Asks for transparent huge pages at once (Linux 6.1), where populating did not find any. What came of it is
    /// read back; a refusal is therefore not an error.
    fn collapse(&self) {
        /// `include/uapi/asm-generic/mman-common.h`.
        const MADV_COLLAPSE: libc::c_int = 25;
        let _ = self.advise(MADV_COLLAPSE);
    }
}

fn map_fixed(start: *mut u8, size: usize, backing: Backing) -> io::Result<()> {
    let pool = match backing {
        Backing::Small | Backing::Thp => 0,
        Backing::Huge2m => libc::MAP_HUGETLB | libc::MAP_HUGE_2MB,
        Backing::Huge1g => libc::MAP_HUGETLB | libc::MAP_HUGE_1GB,
    };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | pool;
    // SAFETY: the range lies within a reservation made for it; nothing else is mapped there.
    let mapped = unsafe { libc::mmap(start.cast(), size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A range of addresses kept free of other mappings, with room to align and a margin on either side.
#[derive(Debug)]
struct Reservation {
    start: *mut libc::c_void,
    bytes: usize,
}

impl Reservation {
    fn new(size: usize) -> io::Result<Self> {
        let bytes = size.checked_add(3 * GIB as usize).ok_or(io::ErrorKind::InvalidInput)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Reservation { start, bytes }) }
    }

    /// The first multiple of 1 GiB that leaves a margin before it; as much again is left after.
    fn aligned_start(&self) -> *mut u8 {
        let margin = self.start as usize + PageSize::Large.bytes() as usize;
        margin.next_multiple_of(GIB as usize) as *mut u8
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the whole range is ours, whatever was mapped inside; its owner is being dropped.
        let unmapped = unsafe { libc::munmap(self.start, self.bytes) };
        debug_assert_eq!(unmapped, 0, "munmap of a range of our own");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmtax_core::units::MIB;

    #[test]
    fn memory_is_aligned_to_a_gibibyte_and_stands_on_what_was_asked() {
        let memory = Memory::allocate(Backing::Small, Bytes(8 * MIB)).unwrap();
        assert_eq!(memory.address() % GIB, 0);
        let standing = memory.standing().unwrap();
        assert_eq!(standing, Standing { kernel_page_kb: 4, thp_coverage: 0.0, thp_ruled_out: true });
    }

    #[test]
    fn a_pool_without_pages_is_said_to_be_exhausted() {
        let error = Memory::allocate(Backing::Huge2m, Bytes(1 << 46)).unwrap_err();
        assert!(matches!(error, BackingError::Exhausted { .. } | BackingError::Kernel { .. }), "{error}");
    }
}
