use std::{env, fs, path::PathBuf};

use vmtax_core::{
    host::{Host, Ksm, KvmAccess, KvmKind, Pmu, ThpMode, Vendor, Virtualization},
    units::{Bytes, KIB, MIB, PageSize},
};

use super::*;

fn machines() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/machines")
}

fn machine(name: &str) -> Host {
    recorded(&machines().join(name))
}

#[test]
fn every_machine_gives_exactly_the_host_beside_it() {
    for entry in fs::read_dir(machines()).unwrap().flatten().filter(|e| e.path().is_dir()) {
        let file = entry.path().join("host.json");
        let host = recorded(&entry.path());
        let text = serde_json::to_string_pretty(&host).unwrap() + "\n";
        if env::var_os("VMTAX_UPDATE").is_some() {
            fs::write(&file, &text).unwrap();
        }
        assert_eq!(text, fs::read_to_string(&file).unwrap(), "{}", file.display());
        assert_eq!(host, serde_json::from_str(&text).unwrap(), "{} does not survive JSON", file.display());
    }
}

#[test]
fn an_intel_host_with_ept_is_read_in_full() {
    let host = machine("intel-ept");
    assert_eq!(host.cpu.vendor, Vendor::Intel);
    assert_eq!(host.cpu.brand.as_deref(), Some("Intel(R) Xeon(R) Gold 6252 CPU @ 2.10GHz"));
    assert_eq!((host.cpu.family, host.cpu.model, host.cpu.stepping), (6, 0x55, 7));
    assert_eq!((host.cpu.logical, host.cpu.smt, host.cpu.pdpe1gb), (Some(96), Some(true), true));
    assert_eq!((host.cpu.virtualization, host.cpu.virtualization_usable), (Virtualization::Vmx, Some(true)));
    assert_eq!((host.kvm.kind, host.kvm.access, host.kvm.guest_1g), (KvmKind::IntelEpt, KvmAccess::Ok, Some(true)));
    assert!(host.kvm.splits_huge_pages());
    assert_eq!(host.itlb_multihit.as_deref(), Some("KVM: Mitigation: Split huge pages"));
    assert_eq!((host.nested, host.emulated, host.below), (false, false, None));
    assert_eq!(host.numa.iter().map(|n| n.cpus.as_str()).collect::<Vec<_>>(), ["0-23,48-71", "24-47,72-95"]);
    assert_eq!(host.numa[1].memory, Some(Bytes(98_791_264 * KIB)));
    assert_eq!((host.pools[0].page, host.pools[0].total, host.pools[0].unclaimed()), (PageSize::Large, 4096, 2900));
    assert_eq!((host.pools[1].page, host.pools[1].free), (PageSize::Giant, 8));
    assert_eq!(host.frequency.governor.as_deref(), Some("powersave"));
    assert_eq!((host.frequency.boost, host.noise.ksm, host.noise.steal), (Some(true), Some(Ksm::Running), Some(0.0)));
    assert_eq!(host.pmu, Pmu::Ok);
    let caches: Vec<String> = host.caches.iter().map(ToString::to_string).collect();
    assert_eq!(caches, ["L1d 32 KiB", "L1i 32 KiB", "L2 1 MiB", "L3 36608 KiB"]);
}

#[test]
fn an_amd_host_with_npt_is_read_in_full() {
    let host = machine("amd-npt");
    assert_eq!(host.cpu.vendor, Vendor::Amd);
    assert_eq!(host.cpu.brand.as_deref(), Some("AMD EPYC 9124 16-Core Processor"));
    assert_eq!((host.cpu.family, host.cpu.model), (0x19, 0x11));
    assert_eq!((host.kvm.kind, host.kvm.guest_1g), (KvmKind::AmdNpt, Some(true)));
    assert_eq!(host.memory.total, Some(Bytes(65_538_048 * KIB)));
    let thp = host.thp.expect("this kernel has THP");
    assert_eq!((thp.enabled, thp.pmd, thp.sizes.len()), (ThpMode::Madvise, Some(Bytes(2 * MIB)), 8));
    let on = thp.sizes.iter().filter(|s| s.mode != ThpMode::Never).map(|s| (s.size.0 / KIB, s.mode));
    assert_eq!(on.collect::<Vec<_>>(), [(64, ThpMode::Madvise), (2048, ThpMode::Inherit)]);
    // The limit stands two groups above this process.
    assert_eq!(host.limits.memory, Some(Bytes(32 << 30)));
    assert_eq!(host.limits.hugetlb_2m, None);
}

#[test]
fn this_kind_of_machine_is_a_guest_with_software_kvm() {
    let host = machine("pvm");
    let below = host.below.as_ref().expect("it is a guest");
    assert!(host.nested && !host.emulated);
    assert_eq!((below.vendor.as_deref(), below.product.as_deref()), (Some("KVMKVMKVM"), Some("Firecracker")));
    assert_eq!(
        (host.kvm.kind, host.kvm.guest_1g, host.kvm.parameter("kvm.tdp_mmu")),
        (KvmKind::Pvm, Some(false), Some("N"))
    );
    assert_eq!(host.cpu.virtualization, Virtualization::None);
    assert_eq!(host.tlb.masked, [0x8000_0019], "the leaf of 1 GiB TLBs reads zero there");
    assert_eq!((host.pmu, host.frequency.governor), (Pmu::Absent { errno: libc::ENOENT }, None));
    assert!(host.noise.steal.is_some_and(|s| s > 0.0 && s < 0.1));
}

#[test]
fn the_kind_of_kvm_follows_from_the_modules_and_their_parameters() {
    let check =
        |name, kind, access| assert_eq!((machine(name).kvm.kind, machine(name).kvm.access), (kind, access), "{name}");
    check("intel-shadow", KvmKind::IntelShadow, KvmAccess::Ok);
    check("amd-shadow", KvmKind::AmdShadow, KvmAccess::Ok);
    check("amd-no-module", KvmKind::None, KvmAccess::NoDevice { errno: 2 });
    check("amd-container", KvmKind::AmdNpt, KvmAccess::NoDevice { errno: 2 });
    check("amd-no-permission", KvmKind::AmdNpt, KvmAccess::NoPermission { errno: 13 });
    check("vm-without-nesting", KvmKind::None, KvmAccess::NoDevice { errno: 2 });
}

#[test]
fn an_emulated_processor_is_told_from_a_virtual_one() {
    let host = machine("tcg");
    assert!(host.nested && host.emulated);
    assert_eq!(host.below.expect("a guest").to_string(), "QEMU Standard PC (Q35 + ICH9, 2009) (TCGTCGTCGTCG)");
}

#[test]
fn firmware_that_forbids_virtualization_is_seen_in_cpuinfo() {
    let cpu = machine("intel-firmware-off").cpu;
    assert_eq!((cpu.virtualization, cpu.virtualization_usable), (Virtualization::Vmx, Some(false)));
}

#[test]
fn a_machine_of_which_nothing_is_known_is_a_host_without_facts() {
    assert_eq!(machine("no-such-machine"), Host::default());
}

#[test]
fn this_machine_has_the_facts_every_linux_has() {
    let host = host();
    assert!(host.cpu.logical.is_some_and(|n| n > 0));
    assert!(host.memory.total > host.memory.free && host.kernel.is_some());
    assert_ne!(host.kvm.access, KvmAccess::Untried);
    assert_ne!(host.cpu.vendor, Vendor::Unknown);
}

#[test]
fn leaves_and_answers_survive_their_text() {
    let leaves = Leaves::of_this_cpu();
    assert_eq!(Leaves::parse(&leaves.to_string()), leaves);
    let answers = Answers { kvm_errno: Some(13), guest_1g: Some(false), pmu_errno: None };
    assert_eq!(Answers::parse(&answers.to_string()), answers);
}

/// `VMTAX_RECORD=testdata/machines/NAME cargo test -p vmtax-machine -- --ignored record_this_machine`
#[test]
#[ignore = "writes a recording of this machine to $VMTAX_RECORD"]
fn record_this_machine() {
    let target = env::var_os("VMTAX_RECORD").expect("VMTAX_RECORD names the directory to write");
    // Tests run in the directory of their crate.
    record(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(target)).unwrap();
}
