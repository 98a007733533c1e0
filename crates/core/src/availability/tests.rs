use std::{fs, path::Path};

use super::*;
use crate::host::{KvmAccess, KvmKind, Limits, Virtualization};

fn machine(name: &str) -> Host {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/machines");
    serde_json::from_str(&fs::read_to_string(directory.join(name).join("host.json")).unwrap()).unwrap()
}

const DEMAND: Demand = Demand { arena: Bytes(GIB), tables: Bytes(2 * MIB), vcpus: 1, reserve: Reserve::No };

/// What stands in the way of one setting: `reason | remedy`, or `ok`.
fn answer(host: &Host, setting: Setting, demand: Demand) -> String {
    match availability(host, &[setting], demand).settings.remove(0) {
        Ok(_) => "ok".to_owned(),
        Err(u) => format!("{} | {}", u.reason, u.remedy),
    }
}

fn check(name: &str, setting: Setting, demand: Demand, expected: &str) {
    assert_eq!(answer(&machine(name), setting, demand), expected, "{setting} on {name}");
}

const NATIVE_4K: Setting = Setting::native(Backing::Small);
const GUEST_4K: Setting = Setting::microvm(PageSize::Small, Backing::Small);
const GUEST_1G: Setting = Setting::microvm(PageSize::Giant, Backing::Small);
const ON_THP: Setting = Setting::microvm(PageSize::Large, Backing::Thp);
const ON_2M: Setting = Setting::microvm(PageSize::Large, Backing::Huge2m);
const ON_1G: Setting = Setting::microvm(PageSize::Large, Backing::Huge1g);

#[test]
fn everything_works_where_everything_is_there() {
    for name in ["intel-ept", "intel-shadow"] {
        let all = availability(&machine(name), &matrix(), DEMAND);
        assert_eq!((all.available().count(), all.unavailable().count()), (16, 0), "{name}");
    }
}

#[test]
fn a_guest_needs_a_kvm_that_opens() {
    check("amd-no-module", NATIVE_4K, DEMAND, "ok");
    check("amd-no-module", GUEST_4K, DEMAND, "no /dev/kvm: module kvm_amd is not loaded | sudo modprobe kvm_amd");
    let firmware = "no /dev/kvm: the firmware forbids VT-x | switch on VT-x in the firmware setup";
    check("intel-firmware-off", GUEST_4K, DEMAND, firmware);
    let nested = "no /dev/kvm: this is a VM without nested virtualization | \
                  kvm_amd nested=1 and -cpu host on the host below; or a bare-metal host";
    check("vm-without-nesting", GUEST_4K, DEMAND, nested);
    let group = "no permission to open /dev/kvm (errno 13) | sudo usermod -aG kvm $USER, then log in again";
    check("amd-no-permission", GUEST_4K, DEMAND, group);
    let container = "no /dev/kvm here, though the kernel has AMD NPT | \
                     if this is a container, give it the device: --device /dev/kvm";
    check("amd-container", GUEST_4K, DEMAND, container);

    let mut bare = machine("amd-no-module");
    bare.cpu.virtualization = Virtualization::None;
    let none = "no /dev/kvm: this processor announces no virtualization | \
                switch on VT-x or SVM in the firmware setup; else another machine";
    assert_eq!(answer(&bare, GUEST_4K, DEMAND), none);
    bare.kvm.access = KvmAccess::from_errno(1);
    let forbidden = "the control group forbids /dev/kvm (errno 1) | \
                     if this is a container, give it the device: --device /dev/kvm";
    assert_eq!(answer(&bare, GUEST_4K, DEMAND), forbidden);
    bare.kvm.access = KvmAccess::Failed { errno: 16 };
    let busy = "/dev/kvm does not open (errno 16) | the kernel may say why: sudo dmesg | grep -i kvm";
    assert_eq!(answer(&bare, GUEST_4K, DEMAND), busy);
}

#[test]
fn a_guest_with_1g_leaves_needs_a_kvm_that_offers_them() {
    check("pvm", GUEST_1G, DEMAND, "software KVM (kvm_pvm) offers guests no 1 GiB pages | a host with EPT or NPT");
    check("amd-shadow", GUEST_1G, DEMAND, "ok");
    let mut old = machine("intel-ept");
    old.kvm.guest_1g = Some(false);
    let processor = "Intel EPT offers guests no 1 GiB pages | a processor with 1 GiB pages (pdpe1gb)";
    assert_eq!(answer(&old, GUEST_1G, DEMAND), processor);
    (old.kvm.kind, old.kvm.guest_1g) = (KvmKind::Unknown, None);
    assert_eq!(answer(&old, GUEST_1G, DEMAND), "ok", "what is not known to be missing is tried");
}

#[test]
fn a_pool_that_is_too_small_comes_with_the_command_that_fills_it() {
    let two = "513 pages of 2 MiB needed, 0 free | add --reserve (as root), or: \
               echo 513 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    check("pvm", ON_2M, DEMAND, two);
    let native = two.replace("513", "512");
    check("pvm", Setting::native(Backing::Huge2m), DEMAND, &native);
    let one = "1 page of 1 GiB needed, 0 free | add --reserve (as root), or: \
               echo 1 | sudo tee /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
    check("pvm", ON_1G, DEMAND, one);
    check("pvm", ON_2M, Demand { reserve: Reserve::Yes, ..DEMAND }, "ok");
    // 3000 are free, 100 of them promised; the command keeps what others use in the sum: 4096 + 4097 - 2900.
    let shared = "4097 pages of 2 MiB needed, 3000 free (100 of them promised to others) | add --reserve (as root), or: \
                  echo 5293 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    check("intel-ept", ON_2M, Demand { arena: Bytes(8 * GIB), ..DEMAND }, shared);
}

#[test]
fn native_and_guests_on_one_backing_name_the_same_need() {
    let settings = [Setting::native(Backing::Huge2m), ON_2M];
    let answers = availability(&machine("pvm"), &settings, DEMAND);
    let reasons: Vec<&str> = answers.unavailable().map(|u| u.reason.as_str()).collect();
    assert_eq!(reasons, ["513 pages of 2 MiB needed, 0 free"; 2]);
}

#[test]
fn a_reservation_leaves_the_host_half_of_its_memory() {
    let demand = Demand { arena: Bytes(16 * GIB), reserve: Reserve::Yes, ..DEMAND };
    check("pvm", ON_2M, demand, "8193 more pages of 2 MiB are over half of the 23583 MiB available | --size 8G");
    check("pvm", ON_1G, demand, "16 more pages of 1 GiB are over half of the 23583 MiB available | --size 8G");
}

#[test]
fn a_pool_that_cannot_exist_says_why() {
    let mut host = machine("pvm");
    host.pools.clear();
    assert_eq!(answer(&host, ON_1G, DEMAND), "this kernel has no pool of 1 GiB pages | a kernel with CONFIG_HUGETLBFS");
    host.cpu.pdpe1gb = false;
    let nested = "this processor shows no 1 GiB pages (pdpe1gb) | 1 GiB pages (pdpe1gb) passed to this guest";
    assert_eq!(answer(&host, ON_1G, DEMAND), nested);
    host.nested = false;
    assert_eq!(answer(&host, ON_1G, DEMAND), "this processor shows no 1 GiB pages (pdpe1gb) | another processor");
}

#[test]
fn limits_of_the_control_group_count() {
    check("amd-container", NATIVE_4K, DEMAND, "1024 MiB needed, 512 MiB allowed by the control group | --size 256M");
    let mut host = machine("intel-ept");
    host.limits = Limits { hugetlb_2m: Some(Bytes(10 * MIB)), ..Limits::default() };
    let limit = "513 pages of 2 MiB needed, 5 allowed by the control group | \
                 raise hugetlb.2MB.max of the control group";
    assert_eq!(answer(&host, ON_2M, DEMAND), limit);
}

#[test]
fn transparent_pages_need_both_switches() {
    let off = "transparent 2 MiB pages are switched off (never) | \
               echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage";
    check("amd-npt", ON_THP, DEMAND, "ok");
    check("amd-thp-never", ON_THP, DEMAND, &format!("{off}/hugepages-2048kB/enabled"));
    let mut host = machine("amd-npt");
    let thp = host.thp.as_mut().expect("this kernel has THP");
    thp.enabled = crate::host::ThpMode::Never;
    assert_eq!(answer(&host, ON_THP, DEMAND), format!("{off}/enabled"));
    host.thp = None;
    let none = "this kernel has no transparent huge pages | a kernel with CONFIG_TRANSPARENT_HUGEPAGE";
    assert_eq!(answer(&host, ON_THP, DEMAND), none);
}

#[test]
fn an_arena_is_whole_pages_of_both_stages() {
    let odd = Demand { arena: Bytes(1536 * MIB), ..DEMAND };
    check("intel-ept", ON_2M, odd, "ok");
    check("intel-ept", ON_1G, odd, "1536 MiB is not a whole number of 1 GiB pages | --size 2G");
    check("intel-ept", GUEST_1G, odd, "1536 MiB is not a whole number of 1 GiB pages | --size 2G");
    check(
        "intel-ept",
        NATIVE_4K,
        Demand { arena: Bytes(0), ..DEMAND },
        "0 B is not a whole number of 4 KiB pages | --size 4096",
    );
}

#[test]
fn memory_and_cpus_must_be_there() {
    let big = Demand { arena: Bytes(64 * GIB), ..DEMAND };
    check("pvm", NATIVE_4K, big, "65536 MiB needed, 23583 MiB available | --size 8G");
    check("pvm", GUEST_4K, Demand { vcpus: 4, ..DEMAND }, "4 vCPUs need as many CPUs, 2 online | --vcpus 2");
}

#[test]
fn the_need_of_a_pool_is_rounded_up() {
    let check = |backing, arena, tables, expected| assert_eq!(pool_need(backing, arena, tables), expected);
    check(Backing::Small, GIB, MIB, None);
    check(Backing::Thp, GIB, MIB, None);
    check(Backing::Huge2m, GIB, 0, Some((PageSize::Large, 512)));
    check(Backing::Huge2m, GIB, 1, Some((PageSize::Large, 513)));
    check(Backing::Huge2m, 1, 2 * MIB, Some((PageSize::Large, 2)));
    check(Backing::Huge1g, GIB, 16 * MIB, Some((PageSize::Giant, 1)));
    check(Backing::Huge1g, GIB + 1, 0, Some((PageSize::Giant, 2)));
}
