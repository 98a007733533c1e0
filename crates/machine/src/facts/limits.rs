//! What the control group of this process allows: its own limits and those of its ancestors, the tightest first.
//!
//! Version 2 has one hierarchy (`0::/path`), version 1 one for each controller (`4:memory:/path`). In a container the path
//! may be one of the host's, which is not visible inside: what exists on the way up counts.

use std::path::Path;

use vmtax_core::{host::Limits, units::Bytes};

use super::tree::Tree;

/// Version 1 says "no limit" with the largest multiple of a page; nobody limits anything to an exbibyte.
const UNLIMITED: u64 = 1 << 60;

/// The limits.
pub(super) fn read(tree: &Tree) -> Limits {
    let groups = tree.text("proc/self/cgroup").unwrap_or_default();
    let tightest = |controller, files: &[(&str, &str)]| {
        let limits = groups.lines().flat_map(|group| limits_of(tree, group, controller, files));
        limits.filter(|&bytes| bytes < UNLIMITED).min().map(Bytes)
    };
    let hugetlb = |size: &str| {
        let v2 = [format!("hugetlb.{size}.max"), format!("hugetlb.{size}.rsvd.max")];
        let v1 = [format!("hugetlb.{size}.limit_in_bytes"), format!("hugetlb.{size}.rsvd.limit_in_bytes")];
        tightest("hugetlb", &[(&v2[0], &v1[0]), (&v2[1], &v1[1])])
    };
    Limits {
        memory: tightest("memory", &[("memory.max", "memory.limit_in_bytes")]),
        hugetlb_2m: hugetlb("2MB"),
        hugetlb_1g: hugetlb("1GB"),
    }
}

/// Limits along one line of `/proc/self/cgroup`; `files` are names in version 2 and version 1.
fn limits_of(tree: &Tree, group: &str, controller: &str, files: &[(&str, &str)]) -> Vec<u64> {
    let mut fields = group.splitn(3, ':');
    let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
        return Vec::new();
    };
    let unified = controllers.is_empty();
    if !unified && !controllers.split(',').any(|name| name == controller) {
        return Vec::new();
    }
    let mount = if unified { "sys/fs/cgroup".to_owned() } else { format!("sys/fs/cgroup/{controllers}") };
    let read = |directory: &Path| {
        let name = |&(v2, v1): &(&str, &str)| if unified { v2.to_owned() } else { v1.to_owned() };
        let relative = directory.strip_prefix("/").unwrap_or(directory).to_string_lossy().into_owned();
        let file = |name: String| format!("{mount}/{relative}/{name}").replace("//", "/");
        files.iter().filter_map(|f| tree.number(&file(name(f)))).collect::<Vec<u64>>()
    };
    Path::new(path).ancestors().flat_map(read).collect()
}
