//! Addresses around memory, which no other mapping may touch.

use std::io;

use vmtax_core::units::{GIB, PageSize};

/// A range of addresses kept free of other mappings, with room to align and a margin on either side.
#[derive(Debug)]
pub(super) struct Reservation {
    start: *mut libc::c_void,
    bytes: usize,
}

impl Reservation {
    pub fn new(size: usize) -> io::Result<Self> {
        let bytes = size.checked_add(3 * GIB as usize).ok_or(io::ErrorKind::InvalidInput)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Reservation { start, bytes }) }
    }

    /// The first multiple of 1 GiB that leaves a margin before it; as much again is left after.
    pub fn aligned_start(&self) -> *mut u8 {
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
