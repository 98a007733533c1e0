//! What stands between us and the memory a backing needs.

use super::{Demand, Obstacle, Reserve, pool_need, spelled};
use crate::{
    host::{Host, Pool},
    setting::Backing,
    units::PageSize,
};

/// The part of available memory that a run may put into pools: taking more would starve everybody else on the host.
pub const RESERVE_SHARE: f64 = 0.5;

/// Why memory of this backing cannot be had.
pub(super) fn obstacle(host: &Host, backing: Backing, demand: Demand) -> Option<Obstacle> {
    let bytes = demand.arena.0 + demand.tables.0;
    match backing {
        Backing::Small => scarce(host, bytes),
        Backing::Thp => no_thp(host).or_else(|| scarce(host, bytes)),
        Backing::Huge2m | Backing::Huge1g => {
            let (page, pages) = pool_need(backing, demand.arena.0, demand.tables.0)?;
            pool(host, page, pages, demand.reserve)
        }
    }
}

fn scarce(host: &Host, bytes: u64) -> Option<Obstacle> {
    let limits = [(host.memory.available, "available"), (host.limits.memory, "allowed by the control group")];
    let (room, what) = limits.into_iter().find_map(|(room, what)| Some((room.filter(|r| r.0 < bytes)?, what)))?;
    Some(Obstacle::new(
        format!("{} MiB needed, {} MiB {what}", mib_up(bytes), mib(room.0)),
        fitting(room.0 / 2, PageSize::Large),
    ))
}

fn no_thp(host: &Host) -> Option<Obstacle> {
    let Some(thp) = &host.thp else {
        return Some(Obstacle::new(
            "this kernel has no transparent huge pages",
            "a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
        ));
    };
    let switch = thp.switch_for_2m();
    let reason = "transparent 2 MiB pages are switched off (never)";
    (!thp.grants_madvise()).then(|| Obstacle::new(reason, format!("echo madvise | sudo tee {switch}")))
}

fn pool(host: &Host, page: PageSize, pages: u64, reserve: Reserve) -> Option<Obstacle> {
    let Some(pool) = host.pools.iter().find(|p| p.page == page) else {
        return Some(no_pool(host, page));
    };
    if let Some(limit) = host.limits.hugetlb(page).filter(|limit| limit.0 < pages * page.bytes()) {
        let allowed = limit.0 / page.bytes();
        let reason = format!("{}, {allowed} allowed by the control group", needed(pages, page));
        let remedy = format!("raise hugetlb.{}.max of the control group", cgroup_name(page));
        return Some(Obstacle::new(reason, remedy));
    }
    let missing = pages.saturating_sub(pool.unclaimed());
    if missing == 0 {
        return None;
    }
    match reserve {
        Reserve::No => Some(short(pool, pages, missing)),
        Reserve::Yes => too_greedy(host, page, missing),
    }
}

fn no_pool(host: &Host, page: PageSize) -> Obstacle {
    if page == PageSize::Giant && !host.cpu.pdpe1gb {
        let remedy = if host.nested { "1 GiB pages (pdpe1gb) passed to this guest" } else { "another processor" };
        return Obstacle::new("this processor shows no 1 GiB pages (pdpe1gb)", remedy);
    }
    Obstacle::new(format!("this kernel has no pool of {} pages", page.prose()), "a kernel with CONFIG_HUGETLBFS")
}

/// The pool is too small as it stands. The command never shrinks it: pages in use by others stay in the sum.
fn short(pool: &Pool, pages: u64, missing: u64) -> Obstacle {
    let claimed = match pool.reserved {
        0 => String::new(),
        n => format!(" ({n} of them promised to others)"),
    };
    let reason = format!("{}, {} free{claimed}", needed(pages, pool.page), pool.free);
    let total = pool.total.saturating_sub(pool.surplus) + missing;
    let file = format!("/sys/kernel/mm/hugepages/hugepages-{}kB/nr_hugepages", pool.page.bytes() / 1024);
    Obstacle::new(reason, format!("add --reserve (as root), or: echo {total} | sudo tee {file}"))
}

fn too_greedy(host: &Host, page: PageSize, missing: u64) -> Option<Obstacle> {
    let available = host.memory.available?.0;
    let room = (available as f64 * RESERVE_SHARE) as u64;
    let bytes = missing * page.bytes();
    let reason = format!(
        "{missing} more {} of {} are over half of the {} MiB available",
        if missing == 1 { "page" } else { "pages" },
        page.prose(),
        mib(available)
    );
    (bytes > room).then(|| Obstacle::new(reason, fitting(room, page)))
}

fn needed(pages: u64, page: PageSize) -> String {
    let noun = if pages == 1 { "page" } else { "pages" };
    format!("{pages} {noun} of {} needed", page.prose())
}

/// The largest arena that is a power of two and fits, given in pages of this size.
fn fitting(room: u64, page: PageSize) -> String {
    match room.checked_ilog2() {
        Some(exponent) if 1 << exponent >= page.bytes() => format!("--size {}", spelled(1 << exponent)),
        Some(_) | None => "free some memory".to_owned(),
    }
}

fn cgroup_name(page: PageSize) -> &'static str {
    match page {
        PageSize::Small => "4KB",
        PageSize::Large => "2MB",
        PageSize::Giant => "1GB",
    }
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

fn mib_up(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}
