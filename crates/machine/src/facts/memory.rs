//! Memory, nodes, pools and transparent huge pages.

use std::io::Cursor;

use procfs_core::{FromBufRead, Meminfo};
use vmtax_core::{
    host::{Memory, NumaNode, Pool, Thp, ThpMode, ThpSize},
    units::{Bytes, KIB, PageSize},
};

use super::tree::Tree;

const THP: &str = "sys/kernel/mm/transparent_hugepage";
const POOLS: &str = "sys/kernel/mm/hugepages";
const NODES: &str = "sys/devices/system/node";

/// `/proc/meminfo`. `procfs-core` turns its kilobytes into bytes.
pub(super) fn read(tree: &Tree) -> Memory {
    let parse = |text: String| Meminfo::from_buf_read(Cursor::new(text)).ok();
    match tree.text("proc/meminfo").and_then(parse) {
        None => Memory::default(),
        Some(info) => Memory {
            total: Some(Bytes(info.mem_total)),
            free: Some(Bytes(info.mem_free)),
            available: info.mem_available.map(Bytes),
            swap: Some(Bytes(info.swap_total)),
        },
    }
}

/// Nodes in order of their number.
pub(super) fn numa(tree: &Tree) -> Vec<NumaNode> {
    let number = |name: String| name.strip_prefix("node")?.parse::<u32>().ok();
    let mut ids: Vec<u32> = tree.names(NODES).into_iter().filter_map(number).collect();
    ids.sort_unstable();
    let node = |id| NumaNode {
        id,
        memory: tree.text(&format!("{NODES}/node{id}/meminfo")).as_deref().and_then(node_total),
        cpus: tree.text(&format!("{NODES}/node{id}/cpulist")).unwrap_or_default(),
    };
    ids.into_iter().map(node).collect()
}

/// `Node 0 MemTotal:       7170260 kB`
fn node_total(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find(|line| line.contains(" MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().rev().nth(1)?.parse().ok()?;
    Some(Bytes(kilobytes * KIB))
}

/// Transparent huge pages; none where the kernel was built without.
pub(super) fn thp(tree: &Tree) -> Option<Thp> {
    Some(Thp {
        enabled: ThpMode::parse(&tree.chosen(&format!("{THP}/enabled"))?)?,
        defrag: tree.chosen(&format!("{THP}/defrag")),
        shmem: tree.chosen(&format!("{THP}/shmem_enabled")),
        pmd: tree.number(&format!("{THP}/hpage_pmd_size")).map(Bytes),
        sizes: thp_sizes(tree),
    })
}

fn thp_sizes(tree: &Tree) -> Vec<ThpSize> {
    let size = |name: &String| {
        let mode = ThpMode::parse(&tree.chosen(&format!("{THP}/{name}/enabled"))?)?;
        Some(ThpSize { size: page_bytes(name)?, mode })
    };
    let mut sizes: Vec<ThpSize> = tree.names(THP).iter().filter_map(size).collect();
    sizes.sort_by_key(|s| s.size);
    sizes
}

/// The hugetlb pools of both sizes, as far as the kernel has them.
pub(super) fn pools(tree: &Tree) -> Vec<Pool> {
    let pool = |page: PageSize| {
        let file = |name| tree.number(&format!("{POOLS}/hugepages-{}kB/{name}", page.bytes() / KIB));
        Some(Pool {
            page,
            total: file("nr_hugepages")?,
            free: file("free_hugepages")?,
            reserved: file("resv_hugepages")?,
            surplus: file("surplus_hugepages")?,
        })
    };
    [PageSize::Large, PageSize::Giant].into_iter().filter_map(pool).collect()
}

/// The size in a name such as `hugepages-2048kB`.
fn page_bytes(name: &str) -> Option<Bytes> {
    let kilobytes: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
    Some(Bytes(kilobytes * KIB))
}
