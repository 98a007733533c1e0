//! The sizes in which memory is really handed out: `/proc/self/pagemap` and `/proc/kpageflags`.
//!
//! smaps counts transparent pages of 2 MiB only. Here every page frame of the mapping is looked up: a folio is a head and its
//! tails in frames one after another.
//!
//! ```text
//!   flags    head tail tail tail | head tail tail tail | (none) | (none)
//!   frame     40   41   42   43  |  96   97   98   99  |   7    |  12      two pieces of 16 KiB, two of 4 KiB
//! ```
//!
//! Both files are for CAP_SYS_ADMIN: to others frames read as 0. (Rejected: `PAGEMAP_SCAN`, which needs no right, but tells
//! only which pages are mapped by a 2 MiB entry.)

use std::{collections::BTreeMap, fs::File, io, os::unix::fs::FileExt as _};

use vmtax_core::{
    translation::Frame,
    units::{Bytes, PageSize},
};

use crate::backing::Memory;

/// include/uapi/linux/kernel-page-flags.h: KPF_COMPOUND_HEAD, KPF_COMPOUND_TAIL.
const HEAD: u64 = 1 << 15;
const TAIL: u64 = 1 << 16;
/// Documentation/admin-guide/mm/pagemap.rst: bit 63 is present, bits 0 to 54 are the frame.
const PRESENT: u64 = 1 << 63;
const NUMBER: u64 = (1 << 55) - 1;

const PAGE: u64 = PageSize::Small.bytes();

/// How many bytes of `memory` stand in pieces of each size; what is not present is not counted.
///
/// # Errors
/// `PermissionDenied` without CAP_SYS_ADMIN; whatever else the two files give.
pub fn sizes(memory: &Memory) -> io::Result<BTreeMap<Bytes, Bytes>> {
    let entries = words(&File::open("/proc/self/pagemap")?, memory.address() / PAGE, memory.bytes() / PAGE)?;
    let frames: Vec<u64> = entries.into_iter().filter(|e| e & PRESENT != 0).map(|e| e & NUMBER).collect();
    if frames.contains(&0) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let flags = File::open("/proc/kpageflags")?;
    let mut pages = Vec::with_capacity(frames.len());
    for run in frames.chunk_by(|a, b| a + 1 == *b) {
        let flags = words(&flags, run[0], run.len() as u64)?;
        pages.extend(run.iter().copied().zip(flags));
    }
    Ok(pieces(&pages))
}

/// The page of this process that `address` lies in: where it is, and the piece of memory it belongs to. Both are unknown
/// without CAP_SYS_ADMIN.
///
/// # Errors
/// `NotFound` where no page is present; whatever else the two files give.
pub fn frame(address: u64) -> io::Result<Frame> {
    frame_in(&File::open("/proc/self/pagemap")?, address)
}

/// As [`frame`], of another process.
///
/// # Errors
/// As [`frame`]; the process is gone, or somebody else's.
pub fn frame_of(pid: u32, address: u64) -> io::Result<Frame> {
    frame_in(&File::open(format!("/proc/{pid}/pagemap"))?, address)
}

fn frame_in(pagemap: &File, address: u64) -> io::Result<Frame> {
    let entry = words(pagemap, address / PAGE, 1)?[0];
    if entry & PRESENT == 0 {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no page is present"));
    }
    let number = entry & NUMBER;
    if number == 0 {
        return Ok(Frame { hpa: None, page: None });
    }
    let page = File::open("/proc/kpageflags").and_then(|flags| piece(&flags, number)).ok();
    Ok(Frame { hpa: Some(number * PAGE + address % PAGE), page })
}

/// The size of the piece that frame `number` belongs to: its head, and all tails behind that.
fn piece(flags: &File, number: u64) -> io::Result<Bytes> {
    // No piece is larger than a page of 1 GiB, and each is aligned to its size.
    let most = PageSize::Giant.bytes() / PAGE;
    let from = number / most * most;
    let window = window(flags, from, most)?;
    let at = (number - from) as usize;
    if window.get(at).is_none_or(|word| word & (HEAD | TAIL) == 0) {
        return Ok(Bytes(PAGE));
    }
    let head = window[..=at].iter().rposition(|word| word & HEAD != 0).unwrap_or(at);
    let tails = window[head + 1..].iter().take_while(|word| *word & TAIL != 0).count() as u64;
    Ok(Bytes((1 + tails) * PAGE))
}

/// As [`words`], but as far as there are any: memory may end within the window.
fn window(file: &File, first: u64, count: u64) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; count as usize * 8];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], first * 8 + filled as u64)? {
            0 => break,
            n => filled += n,
        }
    }
    let word = |chunk: &[u8]| u64::from_ne_bytes(chunk.try_into().expect("chunks of eight bytes"));
    Ok(bytes[..filled].chunks_exact(8).map(word).collect())
}

/// Reads `count` words of eight bytes, from word `first`.
fn words(file: &File, first: u64, count: u64) -> io::Result<Vec<u64>> {
    let words = window(file, first, count)?;
    if words.len() as u64 == count { Ok(words) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Frames with their flags, in the order they are mapped, to bytes by size of piece.
fn pieces(pages: &[(u64, u64)]) -> BTreeMap<Bytes, Bytes> {
    let mut sizes = BTreeMap::new();
    let is_same = |a: &(u64, u64), b: &(u64, u64)| a.0 + 1 == b.0 && a.1 & (HEAD | TAIL) != 0 && b.1 & TAIL != 0;
    for piece in pages.chunk_by(is_same) {
        let bytes = piece.len() as u64 * PAGE;
        sizes.entry(Bytes(bytes)).or_insert(Bytes(0)).0 += bytes;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use vmtax_core::{setting::Backing, units::MIB};

    use super::*;

    #[test]
    fn a_piece_is_a_head_with_its_tails_in_frames_one_after_another() {
        let check = |pages: &[(u64, u64)], expected: &[(u64, u64)]| {
            let got: Vec<(u64, u64)> = pieces(pages).into_iter().map(|(size, bytes)| (size.0, bytes.0)).collect();
            assert_eq!(got, expected, "{pages:?}");
        };
        check(&[], &[]);
        check(&[(7, 0), (8, 0), (12, 0)], &[(4096, 3 * 4096)]);
        check(&[(40, HEAD), (41, TAIL), (42, TAIL), (43, TAIL)], &[(4 * 4096, 4 * 4096)]);
        check(&[(40, HEAD), (41, TAIL), (42, HEAD), (43, TAIL)], &[(2 * 4096, 4 * 4096)]);
        check(&[(40, HEAD), (41, TAIL), (44, TAIL), (45, 0)], &[(4096, 2 * 4096), (2 * 4096, 2 * 4096)]);
    }

    #[test]
    fn a_page_is_the_same_seen_from_within_and_from_without() {
        let memory = Memory::allocate(Backing::Small, Bytes(2 * MIB)).unwrap();
        let at = memory.address() + 5 * PAGE + 7;
        let frame = frame(at).unwrap();
        assert_eq!(frame_of(std::process::id(), at).unwrap(), frame);
        assert!(frame.hpa.is_none_or(|hpa| hpa % PAGE == 7));
    }

    #[test]
    fn memory_in_small_pages_stands_in_pieces_of_4_kib() {
        let memory = Memory::allocate(Backing::Small, Bytes(2 * MIB)).unwrap();
        match sizes(&memory) {
            Ok(sizes) => assert_eq!(sizes, BTreeMap::from([(Bytes(4096), Bytes(2 * MIB))])),
            Err(e) => println!("skipped: the frames of memory are not shown: {e}"),
        }
    }
}
