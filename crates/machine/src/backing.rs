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

mod error;
mod foundation;
mod ground;
mod reservation;
mod standing;

use std::io;

use vmtax_core::{
    setting::Backing,
    units::{Bytes, PageSize},
};

pub use error::BackingError;
pub use foundation::Foundation;
pub use ground::Ground;
use reservation::Reservation;
pub use standing::{Standing, Usage};

use crate::{
    knob::{Host, Switch},
    mthp::Mthp,
};

/// Memory of this process. Unmapped when dropped.
#[derive(Debug)]
pub struct Memory {
    /// Unmaps everything when dropped.
    _reservation: Reservation,
    start: *mut u8,
    bytes: usize,
    foundation: Foundation,
}

// SAFETY: the mapping belongs to this value alone; the pointer is an address, good on any thread.
unsafe impl Send for Memory {}
// SAFETY: a shared reference gives out nothing but addresses and sizes.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps and populates `bytes` bytes, a multiple of the backing's page size.
    pub fn allocate(foundation: impl Into<Foundation>, bytes: Bytes) -> Result<Self, BackingError> {
        let memory = Memory::map(foundation, bytes)?;
        memory.populate()?;
        if memory.foundation == Foundation::Backing(Backing::Thp) && !is_ruled_out() {
            memory.collapse();
        }
        Ok(memory)
    }

    /// Maps `bytes` bytes, a multiple of the backing's page size: each page comes with the first access to it. Pages of a
    /// pool are promised already, so that none of these accesses fails for want of them.
    pub fn map(foundation: impl Into<Foundation>, bytes: Bytes) -> Result<Self, BackingError> {
        let foundation = foundation.into();
        let kernel = |operation, source| BackingError::Kernel { bytes, foundation, operation, source };
        let size = bytes.0 as usize;
        let reservation = Reservation::new(size).map_err(|e| kernel("reserving addresses", e))?;
        let start = reservation.aligned_start();
        let memory = Memory { _reservation: reservation, start, bytes: size, foundation };
        map_fixed(start, size, foundation).map_err(|e| memory.error("mmap", e))?;
        match foundation {
            Foundation::Backing(Backing::Small) => match memory.advise(libc::MADV_NOHUGEPAGE) {
                // A kernel without transparent huge pages has none to rule out.
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {}
                outcome => outcome.map_err(|e| kernel("MADV_NOHUGEPAGE", e))?,
            },
            Foundation::Backing(Backing::Thp) | Foundation::Mthp(_) => {
                memory.advise(libc::MADV_HUGEPAGE).map_err(|e| kernel("MADV_HUGEPAGE", e))?;
            }
            Foundation::Backing(Backing::Huge2m | Backing::Huge1g) => {}
        }
        Ok(memory)
    }

    /// Faults every page in for writing, so that no first touch on the host's side is left for a trial. By one thread, so that
    /// all of it comes from the caller's NUMA node; two were no faster where fresh memory comes from a hypervisor below.
    pub fn populate(&self) -> Result<(), BackingError> {
        self.populate_range(0, self.bytes)
    }

    /// The address, the same for this process and for a guest that runs on it.
    pub fn address(&self) -> u64 {
        self.start as u64
    }

    /// The size.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// What was asked for; transparent pages of every size are `thp`.
    pub fn backing(&self) -> Backing {
        self.foundation.backing()
    }

    /// What was asked for, exactly.
    pub fn foundation(&self) -> Foundation {
        self.foundation
    }

    /// The start, to read and write through.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// Writes one byte at `offset`.
    pub fn touch(&self, offset: u64) {
        assert!(offset < self.bytes(), "an offset within the mapping");
        // SAFETY: within the mapping, which is writable; volatile, and nobody holds a reference into it.
        unsafe { self.start.add(offset as usize).write_volatile(1) };
    }

    /// Faults in `len` bytes from `offset`, both multiples of 4 KiB.
    pub(crate) fn populate_range(&self, offset: usize, len: usize) -> Result<(), BackingError> {
        match self.advise_range(offset, len, libc::MADV_POPULATE_WRITE) {
            // Before Linux 5.14.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                let step = PageSize::Small.bytes();
                (offset as u64..(offset + len) as u64).step_by(step as usize).for_each(|page| self.touch(page));
                Ok(())
            }
            outcome => outcome.map_err(|e| self.error("populating", e)),
        }
    }

    /// Gives `len` bytes from `offset` back to the kernel, both multiples of 4 KiB: they read as zero afterwards.
    pub(crate) fn discard_range(&mut self, offset: usize, len: usize) -> Result<(), BackingError> {
        self.advise_range(offset, len, libc::MADV_DONTNEED).map_err(|e| self.error("MADV_DONTNEED", e))
    }

    /// The pool was drained between mmap, which reserves, and here; or memory is short.
    fn error(&self, operation: &'static str, source: io::Error) -> BackingError {
        let (bytes, foundation) = (Bytes(self.bytes()), self.foundation);
        match source.raw_os_error() {
            Some(libc::ENOMEM | libc::EFAULT) => BackingError::Exhausted { bytes, foundation },
            _ => BackingError::Kernel { bytes, foundation, operation, source },
        }
    }

    fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        self.advise_range(0, self.bytes, advice)
    }

    fn advise_range(&self, offset: usize, len: usize, advice: libc::c_int) -> io::Result<()> {
        assert!(offset + len <= self.bytes, "a range within the mapping");
        // SAFETY: the range is within a mapping of ours. The one advice that discards contents comes from `discard_range`,
        // which has the memory to itself.
        match unsafe { libc::madvise(self.start.add(offset).cast(), len, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
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

/// Whether the host's switches say `never` to 2 MiB pages. `MADV_COLLAPSE` does not ask them (`mm/khugepaged.c`, 6.18), so
/// that memory under `thp = never` would stand on the very pages that are ruled out.
fn is_ruled_out() -> bool {
    let host = Host::default();
    let own = Mthp::new(Bytes(PageSize::Large.bytes())).and_then(|size| Switch::Mthp(size).read(&host).ok());
    match own.as_deref() {
        Some("never") => true,
        Some("always" | "madvise") => false,
        Some(_) | None => Switch::Thp.read(&host).is_ok_and(|word| word == "never"),
    }
}

fn map_fixed(start: *mut u8, size: usize, foundation: Foundation) -> io::Result<()> {
    let pool = match foundation.backing() {
        Backing::Small | Backing::Thp => 0,
        Backing::Huge2m => libc::MAP_HUGETLB | libc::MAP_HUGE_2MB,
        Backing::Huge1g => libc::MAP_HUGETLB | libc::MAP_HUGE_1GB,
    };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | pool;
    // SAFETY: the range lies within a reservation made for it; nothing else is mapped there.
    let mapped = unsafe { libc::mmap(start.cast(), size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmtax_core::units::{GIB, MIB};

    #[test]
    fn memory_is_aligned_to_a_gibibyte_and_stands_on_what_was_asked() {
        let memory = Memory::allocate(Backing::Small, Bytes(8 * MIB)).unwrap();
        assert_eq!(memory.address() % GIB, 0);
        let standing = memory.standing().unwrap();
        assert_eq!(standing, Standing { kernel_page_kb: 4, thp_coverage: 0.0, thp_ruled_out: true });
    }

    #[test]
    fn mapped_memory_takes_nothing_until_it_is_touched() {
        let mut memory = Memory::map(Backing::Small, Bytes(8 * MIB)).unwrap();
        let resident = |memory: &Memory| memory.usage().unwrap().resident;
        assert_eq!(resident(&memory), Bytes(0));
        memory.touch(3 * MIB);
        assert_eq!(resident(&memory), Bytes(4096));
        memory.populate().unwrap();
        assert_eq!(memory.usage().unwrap(), Usage { resident: Bytes(8 * MIB), huge: Bytes(0), pool: Bytes(0) });
        memory.discard_range(0, 8192).unwrap();
        assert_eq!(resident(&memory), Bytes(8 * MIB - 8192));
    }

    #[test]
    fn a_pool_without_pages_is_said_to_be_exhausted() {
        let error = Memory::allocate(Backing::Huge2m, Bytes(1 << 46)).unwrap_err();
        assert!(matches!(error, BackingError::Exhausted { .. } | BackingError::Kernel { .. }), "{error}");
    }
}
