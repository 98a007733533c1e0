use std::fs;

use super::*;

const BUDDYINFO: &str = "\
Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 
Node 0, zone    DMA32      1      3      4      2      5      4      3      4      5      3    751 
Node 0, zone   Normal   9070   1945    499    136     99     74     27     15      4     38    524 
Node 1, zone   Normal   9070   1945    499    136     99     74     27     15      4      0      0 
";

fn host(root: &std::path::Path) -> Host {
    fs::create_dir_all(root.join("proc")).unwrap();
    fs::write(root.join("proc/buddyinfo"), BUDDYINFO).unwrap();
    Host::at(root.join("state"), root.join("sys"), root.join("proc"))
}

#[test]
fn a_zones_free_pages_are_counted_by_order() {
    let zones = parse(BUDDYINFO);
    assert_eq!((zones[1].node, zones[1].name.as_str()), (0, "DMA32"));
    assert_eq!(zones[0].free_pages(), 256 + 512 + 3 * 1024);
    assert_eq!(zones[0].suitable_pages(9), 512 + 3 * 1024);
    assert_eq!(zones[2].suitable_pages(9), 38 * 512 + 524 * 1024);
}

#[test]
fn the_index_is_the_kernels() {
    let zone = |blocks: &[u64]| Zone { node: 0, name: "Normal".to_owned(), blocks: blocks.to_owned() };
    let check =
        |blocks: &[u64], order, index| assert_eq!(zone(blocks).index(order), index, "{blocks:?}, order {order}");
    check(&[0; 11], 9, 0.0);
    check(&[5, 0, 0, 1], 3, -1.0);
    // 512 free pages in single ones: 1000 - (1000 + 1000) / 512 = 997.
    check(&[512, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 9, 0.997);
    // 256 in one block: 1000 - (1000 + 500) / 1 = -500, memory is what lacks.
    check(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], 9, -0.5);
    // 24668 pages in 11869 blocks: 1000 - (1000 + 48179) / 11869 = 996.
    check(&[9070, 1945, 499, 136, 99, 74, 27, 15, 4, 0, 0], 9, 0.996);
}

#[test]
fn what_an_allocation_sees_is_computed_where_debugfs_is_not_to_be_read() {
    let root = tempfile::tempdir().unwrap();
    let host = host(root.path());
    let seen = Fragmentation::read(&host, PageSize::Large).unwrap();
    assert_eq!((seen.order, seen.source), (9, Source::Computed));
    assert_eq!(seen.zones.iter().map(|zone| zone.index).collect::<Vec<_>>(), [-1.0, -1.0, -1.0, 0.996]);
    assert_eq!(Fragmentation::read(&host, PageSize::Giant).unwrap().order, 10);
    let extfrag = host.sys.join("kernel/debug/extfrag");
    fs::create_dir_all(&extfrag).unwrap();
    let line = |zone: &str, index: &str| format!("Node {zone} {}{index} \n", "-1.000 ".repeat(9));
    let text = line("0, zone      DMA", "0.5") + &line("0, zone    DMA32", "0.25") + &line("0, zone   Normal", "0.125");
    fs::write(extfrag.join("extfrag_index"), &text).unwrap();
    assert_eq!(Fragmentation::read(&host, PageSize::Large).unwrap().source, Source::Computed, "a zone is missing");
    fs::write(extfrag.join("extfrag_index"), text + &line("1, zone   Normal", "0.995")).unwrap();
    let seen = Fragmentation::read(&host, PageSize::Large).unwrap();
    assert_eq!(seen.source, Source::Kernel);
    assert_eq!(seen.zones.iter().map(|zone| zone.index).collect::<Vec<_>>(), [0.5, 0.25, 0.125, 0.995]);
}

#[test]
fn the_share_of_free_memory_in_small_blocks_is_unusable() {
    let zone = |free_pages, suitable_pages| ZoneState {
        node: 0,
        zone: "Normal".to_owned(),
        free_pages,
        suitable_pages,
        index: -1.0,
    };
    let seen = Fragmentation { order: 9, source: Source::Computed, zones: vec![zone(1000, 512), zone(3000, 2488)] };
    assert_eq!((seen.free_pages(), seen.unusable()), (4000, 0.25));
}

#[test]
fn this_hosts_memory_can_be_seen() {
    let seen = Fragmentation::read(&Host::default(), PageSize::Large);
    assert!(seen.is_none_or(|seen| seen.free_pages() > 0));
}
