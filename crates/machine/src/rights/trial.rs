//! One attempt at one huge page, in a process of its own. Whatever it takes is gone when it ends.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
    process::{self, ExitCode},
    ptr,
};

use rustix::{
    fs::{MemfdFlags, ftruncate, memfd_create},
    mm::{MapFlags, ProtFlags, mmap, mmap_anonymous},
};
use vmtax_core::units::PageSize;

use super::Way;

/// The call that failed, and what it said.
pub(super) type Refusal = (&'static str, io::Error);

/// `MAP_HUGE_SHIFT`, `SHM_HUGE_SHIFT`, `MFD_HUGE_SHIFT` (include/uapi/asm-generic/hugetlb_encode.h).
const SHIFT: u32 = 26;

/// Takes one page by `way`, and writes to it.
pub(super) fn attempt(way: Way, page: PageSize, directory: &Path) -> Result<(), Refusal> {
    match way {
        Way::Mmap => by_mmap(page),
        Way::Shmget => by_shmget(page),
        Way::File => by_file(page, directory),
        Way::Memfd => by_memfd(page),
    }
}

/// Tells the parent.
pub(super) fn say(outcome: Result<(), Refusal>) -> ExitCode {
    let text = match outcome {
        Ok(()) => "granted".to_owned(),
        Err((operation, error)) => format!("refused {operation} {}", error.raw_os_error().unwrap_or(libc::EIO)),
    };
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn by_mmap(page: PageSize) -> Result<(), Refusal> {
    let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::from_bits_retain(size_bits(page));
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: no address is asked for, so no memory of this process is replaced.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), page.bytes() as usize, access, flags) };
    let start = start.map_err(|e| ("mmap", e.into()))?;
    // SAFETY: the mapping just made, writable and known to nobody else.
    unsafe { start.cast::<u8>().write_volatile(1) };
    Ok(())
}

fn by_shmget(page: PageSize) -> Result<(), Refusal> {
    let flags = libc::IPC_CREAT | libc::SHM_HUGETLB | size_bits(page) as libc::c_int | 0o600;
    // SAFETY: makes a new segment, and touches no memory of ours.
    let segment = unsafe { libc::shmget(libc::IPC_PRIVATE, page.bytes() as usize, flags) };
    if segment < 0 {
        return Err(("shmget", io::Error::last_os_error()));
    }
    // SAFETY: no address is asked for, so no memory of this process is replaced.
    let start = unsafe { libc::shmat(segment, ptr::null(), 0) };
    let attached = if start as isize == -1 { Err(("shmat", io::Error::last_os_error())) } else { Ok(start) };
    // Removed at once: it lives as long as it is attached, also if writing to it ends this process.
    // SAFETY: the segment is ours; with IPC_RMID the kernel does not read the buffer.
    unsafe { libc::shmctl(segment, libc::IPC_RMID, ptr::null_mut()) };
    // SAFETY: the segment just attached, writable and known to nobody else.
    unsafe { attached?.cast::<u8>().write_volatile(1) };
    Ok(())
}

fn by_file(page: PageSize, directory: &Path) -> Result<(), Refusal> {
    let path = directory.join(format!("vmtax-rights-{}", process::id()));
    let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
    let file = opened.map_err(|e| ("open", e))?;
    fs::remove_file(&path).map_err(|e| ("unlink", e))?;
    write_through(file.as_fd(), page)
}

fn by_memfd(page: PageSize) -> Result<(), Refusal> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::from_bits_retain(size_bits(page));
    let file = memfd_create(c"vmtax-rights", flags).map_err(|e| ("memfd_create", e.into()))?;
    write_through(file.as_fd(), page)
}

/// Makes the file one page long, maps it shared, and writes to it.
fn write_through(file: BorrowedFd<'_>, page: PageSize) -> Result<(), Refusal> {
    ftruncate(file, page.bytes()).map_err(|e| ("ftruncate", e.into()))?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: no address is asked for, so no memory of this process is replaced.
    let start = unsafe { mmap(ptr::null_mut(), page.bytes() as usize, access, MapFlags::SHARED, file, 0) };
    let start = start.map_err(|e| ("mmap", e.into()))?;
    // SAFETY: the mapping just made, writable; the file behind it has been unlinked or never had a name.
    unsafe { start.cast::<u8>().write_volatile(1) };
    Ok(())
}

/// The page's size as all three calls want it: its logarithm, shifted.
const fn size_bits(page: PageSize) -> u32 {
    page.bytes().trailing_zeros() << SHIFT
}
