//! The facts of a host as rows of label and value, in groups.

use vmtax_core::{
    host::{Cache, CacheKind, Host, Ksm, Kvm, KvmAccess, NumaNode, Pmu, Pool, Thp, ThpMode, TlbArray, Vendor},
    units::{Bytes, GIB, KIB, MIB, PageSize},
};

/// Rows under a title.
pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) rows: Vec<(String, String)>,
}

/// All groups, in the order they are printed.
pub(super) fn groups(host: &Host) -> Vec<Group> {
    let group = |title, rows: Vec<(&str, Option<String>)>| Group {
        title,
        rows: rows.into_iter().map(|(label, value)| (label.to_owned(), value.unwrap_or_else(unknown))).collect(),
    };
    vec![
        group("Host", host_rows(host)),
        group("CPU", cpu_rows(host)),
        Group { title: "TLB (as CPUID publishes it)", rows: tlb_rows(host) },
        group("Memory", memory_rows(host)),
        Group { title: "Huge pages", rows: huge_rows(host) },
        group("KVM", kvm_rows(host)),
        group("Noise", noise_rows(host)),
    ]
}

fn unknown() -> String {
    "not known".to_owned()
}

fn yes_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

fn host_rows(host: &Host) -> Vec<(&'static str, Option<String>)> {
    let nested = match &host.below {
        Some(below) if host.emulated => format!("yes, emulated: {below}"),
        Some(below) => format!("yes: {below}"),
        None => "no".to_owned(),
    };
    vec![("kernel", host.kernel.clone()), ("itself a guest", Some(nested))]
}

fn cpu_rows(host: &Host) -> Vec<(&'static str, Option<String>)> {
    let cpu = &host.cpu;
    let vendor = match &cpu.vendor {
        Vendor::Intel => "Intel",
        Vendor::Amd => "AMD",
        Vendor::Other(name) => name,
        Vendor::Unknown => "unknown vendor",
    };
    let identity = format!("{vendor}, family {}, model {}, stepping {}", cpu.family, cpu.model, cpu.stepping);
    let smt = match cpu.smt {
        Some(true) => ", two threads a core",
        Some(false) => ", one thread a core",
        None => "",
    };
    let cache = |c: &Cache| (c.kind != CacheKind::Instruction).then(|| cache_text(c));
    let caches: Vec<String> = host.caches.iter().filter_map(cache).collect();
    vec![
        ("model", cpu.brand.clone()),
        ("identity", Some(identity)),
        ("logical CPUs", cpu.logical.map(|n| format!("{n}{smt}"))),
        ("caches", (!caches.is_empty()).then(|| caches.join(", "))),
        ("1 GiB pages", Some(yes_no(cpu.pdpe1gb))),
    ]
}

/// `L3 35.75 MiB`: caches come in odd multiples of a KiB.
fn cache_text(cache: &Cache) -> String {
    let kind = if cache.kind == CacheKind::Data { "d" } else { "" };
    let (kib, mib) = (cache.size.0 / KIB, cache.size.0 as f64 / MIB as f64);
    let size = if mib < 1.0 { format!("{kib} KiB") } else { format!("{} MiB", (mib * 100.0).round() / 100.0) };
    format!("L{}{kind} {size}", cache.level)
}

/// One row for each level and kind: `L1 data   4k 64 full, 2m 64 full`.
fn tlb_rows(host: &Host) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    for array in &host.tlb.arrays {
        let label = format!("L{} {}", array.level, array.kind.name());
        match rows.iter_mut().find(|row| row.0 == label) {
            Some((_, value)) => value.push_str(&format!(", {}", tlb_value(array))),
            None => rows.push((label, tlb_value(array))),
        }
    }
    let hidden: Vec<String> = host.tlb.masked.iter().map(|leaf| format!("leaf {leaf:#x}")).collect();
    match (rows.is_empty(), hidden.is_empty()) {
        (true, true) => rows.push(("arrays".to_owned(), unknown())),
        (_, false) => rows.push(("hidden".to_owned(), format!("{} reads zero here", hidden.join(", ")))),
        (false, true) => {}
    }
    rows
}

fn tlb_value(array: &TlbArray) -> String {
    let pages: Vec<&str> = array.pages.iter().map(|page| page.name()).collect();
    let measured = array.measured.map(|shape| format!(" (by timing {shape})")).unwrap_or_default();
    format!("{} {}{measured}", pages.join("+"), array.shape)
}

fn memory_rows(host: &Host) -> Vec<(&'static str, Option<String>)> {
    let memory = &host.memory;
    let total = memory.total.zip(memory.available).map(|(t, a)| format!("{}, {} available", size(t), size(a)));
    let swap = memory.swap.map(|s| if s.0 == 0 { "none".to_owned() } else { size(s) });
    let limit = host.limits.memory.map_or("none".to_owned(), size);
    let node = |n: &NumaNode| format!("node {}: {}, CPUs {}", n.id, n.memory.map_or_else(unknown, size), n.cpus);
    let nodes: Vec<String> = host.numa.iter().map(node).collect();
    vec![
        ("total", total),
        ("swap", swap),
        ("cgroup limit", Some(limit)),
        ("NUMA", (!nodes.is_empty()).then(|| nodes.join("; "))),
    ]
}

fn huge_rows(host: &Host) -> Vec<(String, String)> {
    let mut rows = match &host.thp {
        None => vec![("transparent".to_owned(), "none in this kernel".to_owned())],
        Some(thp) => vec![("transparent".to_owned(), thp_text(thp)), ("other sizes".to_owned(), sizes_text(thp))],
    };
    for page in [PageSize::Large, PageSize::Giant] {
        let pool = host.pools.iter().find(|pool| pool.page == page);
        let value = pool.map_or("none in this kernel".to_owned(), pool_text);
        rows.push((format!("pool of {page}"), value));
    }
    rows
}

fn pool_text(pool: &Pool) -> String {
    match pool {
        Pool { total: 0, .. } => "empty".to_owned(),
        Pool { total, free, reserved, surplus, .. } => {
            format!("{total} pages: {free} free, {reserved} reserved, {surplus} surplus")
        }
    }
}

fn thp_text(thp: &Thp) -> String {
    let defrag = thp.defrag.as_ref().map(|d| format!(", defrag {d}")).unwrap_or_default();
    let shmem = thp.shmem.as_ref().map(|s| format!(", shared memory {s}")).unwrap_or_default();
    format!("{}{defrag}{shmem}", thp.enabled.name())
}

/// Sizes between 4 KiB and 2 MiB that somebody gets.
fn sizes_text(thp: &Thp) -> String {
    let on = thp.sizes.iter().filter(|s| s.size.0 != PageSize::Large.bytes() && s.mode != ThpMode::Never);
    let names: Vec<String> = on.map(|s| format!("{} {}", s.size, s.mode.name())).collect();
    match (thp.sizes.is_empty(), names.is_empty()) {
        (true, _) => "not in this kernel".to_owned(),
        (false, true) => "all off".to_owned(),
        (false, false) => names.join(", "),
    }
}

fn kvm_rows(host: &Host) -> Vec<(&'static str, Option<String>)> {
    let kvm = &host.kvm;
    vec![
        ("kind", Some(kvm.kind.to_string())),
        ("/dev/kvm", Some(access(kvm.access))),
        ("1 GiB guests", kvm.guest_1g.map(yes_no)),
        ("parameters", Some(parameters(kvm))),
        ("iTLB multihit", host.itlb_multihit.clone()),
    ]
}

fn access(access: KvmAccess) -> String {
    match access {
        KvmAccess::Ok => "opens".to_owned(),
        KvmAccess::NoDevice { errno } => format!("not there (errno {errno})"),
        KvmAccess::NoPermission { errno } => format!("no permission (errno {errno})"),
        KvmAccess::Failed { errno } => format!("does not open (errno {errno})"),
        KvmAccess::Untried => "not tried".to_owned(),
    }
}

/// The few that change the second stage, if they were read: `ept=Y tdp_mmu=Y`.
fn parameters(kvm: &Kvm) -> String {
    const SHOWN: [&str; 5] =
        ["kvm_intel.ept", "kvm_amd.npt", "kvm.tdp_mmu", "kvm.eager_page_split", "kvm.nx_huge_pages"];
    let shown =
        SHOWN.iter().filter_map(|name| Some(format!("{}={}", name.split('.').next_back()?, kvm.parameter(name)?)));
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(" ") }
}

fn noise_rows(host: &Host) -> Vec<(&'static str, Option<String>)> {
    let frequency = &host.frequency;
    let governor = frequency.governor.as_ref().map(|governor| {
        let driver = frequency.driver.as_ref().map(|d| format!(" ({d})")).unwrap_or_default();
        let boost = match frequency.boost {
            Some(true) => ", boost on",
            Some(false) => ", boost off",
            None => "",
        };
        format!("{governor}{driver}{boost}")
    });
    let ksm = host.noise.ksm.map(|ksm| match ksm {
        Ksm::Stopped => "stopped".to_owned(),
        Ksm::Running => "running".to_owned(),
        Ksm::Unmerged => "stopped and unmerged".to_owned(),
    });
    let counters = match host.pmu {
        Pmu::Ok => "yes".to_owned(),
        Pmu::Absent { errno } => format!("none (perf_event_open: errno {errno})"),
        Pmu::NoPermission { errno } => format!("no permission (errno {errno}; kernel.perf_event_paranoid)"),
        Pmu::Untried => "not tried".to_owned(),
    };
    vec![
        ("governor", Some(governor.unwrap_or_else(|| "none: this host does not set its frequency".to_owned()))),
        ("stolen time", host.noise.steal.map(|share| format!("{:.1} % since boot", share * 100.0))),
        ("KSM", ksm),
        ("counters", Some(counters)),
    ]
}

/// To one decimal of the largest unit: a whole number of KiB says nothing about memory.
fn size(bytes: Bytes) -> String {
    let gib = bytes.0 as f64 / GIB as f64;
    if gib >= 1.0 { format!("{gib:.1} GiB") } else { format!("{:.0} MiB", gib * 1024.0) }
}
