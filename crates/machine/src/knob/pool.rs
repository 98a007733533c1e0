//! A hugetlb pool: what it holds, what it lacks, and whether the host can spare that.
//!
//! `nr_hugepages` reads as all pages of the pool, surplus ones included, but is written as the *persistent* ones
//! (`mm/hugetlb.c`, 6.18: `nr_hugepages_show_common`, `set_max_huge_pages`). A raise first turns surplus pages into
//! persistent ones, which makes no page available; so a raise aims at all pages plus what is lacking. Pages still in use
//! when the pool is lowered become surplus and leave it by themselves when their user ends.
//!
//! The global files are used: the kernel spreads a raise evenly over the NUMA nodes that have memory. A host with
//! several nodes may therefore have the pages, but not all on the node of the vCPU.

use std::{
    io,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use procfs_core::{FromBufRead, Meminfo};
use vmtax_core::units::{Bytes, KIB, PageSize};

use super::{Error, Host};

/// How often a pool is read again because it changed while it was read.
const READS: usize = 10;

/// Huge pages that have to be available in a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// The page size.
    pub page: PageSize,
    /// Pages, not counting those in use or reserved by others.
    pub pages: u64,
}

/// A hugetlb pool at one moment, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// All pages: `nr_hugepages`.
    pub total: u64,
    /// Those in no use: `free_hugepages`.
    pub free: u64,
    /// Free ones that are promised to a mapping: `resv_hugepages`.
    pub reserved: u64,
    /// Those above the pool's size, which go when their user ends: `surplus_hugepages`.
    pub surplus: u64,
}

impl Pool {
    /// The pool of `page` pages on `host`.
    pub fn read(host: &Host, page: PageSize) -> Result<Pool, Error> {
        let mut pool = Pool::read_files(host, page)?;
        // Four files are no snapshot: a surplus page freed between two reads would look like a persistent one.
        for _ in 0..READS {
            let again = Pool::read_files(host, page)?;
            if again == pool {
                break;
            }
            pool = again;
        }
        Ok(pool)
    }

    fn read_files(host: &Host, page: PageSize) -> Result<Pool, Error> {
        let read = |name| {
            let path = directory(host, page).join(name);
            let text = host.kernel.read(&path).map_err(|source| match source.kind() {
                io::ErrorKind::NotFound => Error::NoPool { page },
                _ => Error::io("read", &path, source),
            })?;
            text.trim()
                .parse::<u64>()
                .map_err(|e| Error::io("read", &path, io::Error::new(io::ErrorKind::InvalidData, e)))
        };
        Ok(Pool {
            total: read("nr_hugepages")?,
            free: read("free_hugepages")?,
            reserved: read("resv_hugepages")?,
            surplus: read("surplus_hugepages")?,
        })
    }

    /// Pages that stay when nobody uses them: what `nr_hugepages` was last set to, as far as it was granted.
    pub fn persistent(self) -> u64 {
        self.total.saturating_sub(self.surplus)
    }

    /// Pages a new mapping can have.
    pub fn available(self) -> u64 {
        self.free.saturating_sub(self.reserved)
    }

    /// Pages that lack until `needed` are available.
    pub fn shortfall(self, needed: u64) -> u64 {
        needed.saturating_sub(self.available())
    }
}

/// Refuses when what all the pools lack together is more than half of `MemAvailable`. Changes nothing.
///
/// To be asked once for all pools of a run, before the first is borrowed: each alone may be small enough. A pool is named
/// once.
pub fn check_memory(host: &Host, wants: &[Want]) -> Result<(), Error> {
    let mut needed = 0_u64;
    for want in wants {
        let lacking = Pool::read(host, want.page)?.shortfall(want.pages);
        needed = needed.saturating_add(lacking.saturating_mul(want.page.bytes()));
    }
    check_bytes(host, Bytes(needed))
}

/// Refuses to put more than half of `MemAvailable` into pools.
pub(super) fn check_bytes(host: &Host, needed: Bytes) -> Result<(), Error> {
    if needed.0 == 0 {
        return Ok(());
    }
    let available = available_memory(host)?;
    if needed.0 > available.0 / 2 { Err(Error::TooMuch { needed, available }) } else { Ok(()) }
}

/// The size that `shmget` takes where a program names none: `Hugepagesize`.
pub fn default_page(host: &Host) -> Result<PageSize, Error> {
    let kib = meminfo(host)?.hugepagesize;
    Ok(PageSize::ALL.into_iter().find(|page| kib == Some(page.bytes())).unwrap_or(PageSize::Large))
}

/// `MemAvailable`: what can be had without swapping.
pub fn available_memory(host: &Host) -> Result<Bytes, Error> {
    let meminfo = meminfo(host)?;
    // MemAvailable came with Linux 3.14; MemFree is the careful guess before it.
    Ok(Bytes(meminfo.mem_available.unwrap_or(meminfo.mem_free)))
}

fn meminfo(host: &Host) -> Result<Meminfo, Error> {
    let path = host.proc.join("meminfo");
    let unreadable = |source| Error::io("read", &path, source);
    let text = host.kernel.read(&path).map_err(unreadable)?;
    Meminfo::from_buf_read(text.as_bytes()).map_err(|e| unreadable(io::Error::other(e.to_string())))
}

/// Waits, at most `patience`, until no more than `surplus` pages are above the pool's size; returns how many more are.
pub(super) fn wait_for_surplus(host: &Host, page: PageSize, surplus: u64, patience: Duration) -> Result<u64, Error> {
    let deadline = Instant::now() + patience;
    loop {
        let above = Pool::read(host, page)?.surplus.saturating_sub(surplus);
        if above == 0 || Instant::now() >= deadline {
            return Ok(above);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

pub(super) fn directory(host: &Host, page: PageSize) -> PathBuf {
    host.sys.join(format!("kernel/mm/hugepages/hugepages-{}kB", page.bytes() / KIB))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::fake::FakeHost;

    #[test]
    fn both_pools_together_take_at_most_half_of_available_memory() {
        let fake = FakeHost::new(100, 100);
        fake.set_available_mib(8192);
        let check = |large, giant, expected: Result<(), (u64, u64)>| {
            let wants = [Want { page: PageSize::Large, pages: large }, Want { page: PageSize::Giant, pages: giant }];
            let got = check_memory(&fake.host(), &wants).map_err(|e| match e {
                Error::TooMuch { needed, available } => (needed.0 >> 20, available.0 >> 20),
                other => panic!("{other}"),
            });
            assert_eq!(got, expected, "{large} x 2 MiB, {giant} x 1 GiB");
        };
        check(1024, 2, Ok(()));
        check(1025, 2, Err((4098, 8192)));
        check(0, 5, Err((5120, 8192)));
        check(u64::MAX, u64::MAX, Err((u64::MAX >> 20, 8192)));
        fake.pool(PageSize::Giant, |pool| (pool.total, pool.free) = (4, 4));
        check(2048, 4, Ok(()));
    }
}
