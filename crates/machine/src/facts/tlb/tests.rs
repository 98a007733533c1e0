use std::path::Path;

use vmtax_core::{
    host::{Tlb, Virtualization},
    units::PageSize,
};

use super::*;

/// One line an array: `L2 data 4k+2m 1536 × 6-way`.
fn described(tlb: &Tlb) -> Vec<String> {
    let line = |a: &vmtax_core::host::TlbArray| {
        let pages: Vec<&str> = a.pages.iter().map(|p: &PageSize| p.name()).collect();
        let measured = a.measured.map(|shape| format!(" ({shape})")).unwrap_or_default();
        format!("{:x} L{} {} {} {}{measured}", a.leaf, a.level, a.kind.name(), pages.join("+"), a.shape)
    };
    tlb.arrays.iter().map(line).collect()
}

fn check(cpu: &Cpu, text: &str, arrays: &[&str], masked: &[u32]) {
    let tlb = read(cpu, &Leaves::parse(text));
    assert_eq!(described(&tlb), arrays);
    assert_eq!(tlb.masked, masked);
}

fn amd() -> Cpu {
    Cpu { vendor: Vendor::Amd, family: 0x1a, pdpe1gb: true, virtualization: Virtualization::Svm, ..Cpu::default() }
}

fn intel(model: u8) -> Cpu {
    Cpu { vendor: Vendor::Intel, family: 6, model, ..Cpu::default() }
}

#[test]
fn cascade_lake_is_read_from_descriptors() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/machines/intel-ept/cpuid");
    let text = std::fs::read_to_string(directory).unwrap();
    let arrays = [
        "2 L1 data 4k 64 × 4-way",
        "2 L1 code 4k 64 × 8-way",
        "2 L1 data 2m 32 × 4-way",
        "2 L1 code 2m 8 full",
        "2 L1 data 1g 4 × 4-way",
        "2 L2 all 4k+2m 1536 × 6-way (1536 × 12-way)",
        "2 L2 all 1g 16 × 4-way",
    ];
    check(&intel(0x55), &text, &arrays, &[]);
}

#[test]
fn genoa_is_read_from_three_leaves() {
    let text = "\
0x80000005 0x00: eax=0xff48ff40 ebx=0xff48ff40 ecx=0x20080140 edx=0x20080140
0x80000006 0x00: eax=0x5c002200 ebx=0x6c004200 ecx=0x04006140 edx=0x0c009140
0x80000019 0x00: eax=0xf048f040 ebx=0xf0400000 ecx=0x00000000 edx=0x00000000
0x80000021 0x00: eax=0x00062fcf ebx=0x0000015c ecx=0x00000000 edx=0x00000000";
    let arrays = [
        "80000005 L1 data 4k 72 full",
        "80000005 L1 code 4k 64 full",
        "80000005 L1 data 2m 72 full",
        "80000005 L1 code 2m 64 full",
        "80000019 L1 data 1g 72 full",
        "80000019 L1 code 1g 64 full",
        "80000006 L2 data 4k 3072 × 8-way",
        "80000006 L2 code 4k 512 × 4-way",
        "80000006 L2 data 2m 3072 × 6-way",
        "80000006 L2 code 2m 512 × 2-way",
        "80000019 L2 data 1g 64 full",
    ];
    check(&amd(), text, &arrays, &[]);
}

#[test]
fn zen_5_counts_its_second_level_in_units_of_32() {
    let text = "\
0x80000005 0x00: eax=0xff60ff40 ebx=0xff60ff40 ecx=0x00000000 edx=0x00000000
0x80000006 0x00: eax=0x40804040 ebx=0x60806040 ecx=0x00000000 edx=0x00000000
0x80000019 0x00: eax=0xf060f040 ebx=0x40200000 ecx=0x00000000 edx=0x00000000
0x80000021 0x00: eax=0x00004000 ebx=0x00000000 ecx=0x00000000 edx=0x00000000";
    let arrays = [
        "80000005 L1 data 4k 96 full",
        "80000005 L1 code 4k 64 full",
        "80000005 L1 data 2m 96 full",
        "80000005 L1 code 2m 64 full",
        "80000019 L1 data 1g 96 full",
        "80000019 L1 code 1g 64 full",
        "80000006 L2 data 4k 4096 × 8-way",
        "80000006 L2 code 4k 2048 × 8-way",
        "80000006 L2 data 2m 4096 × 4-way",
        "80000006 L2 code 2m 2048 × 4-way",
        "80000019 L2 data 1g 1024 × 4-way",
    ];
    check(&amd(), text, &arrays, &[]);
}

#[test]
fn golden_cove_says_64_entries_and_has_96() {
    let text = "\
0x00000002 0x00: eax=0x00feff01 ebx=0x000000f0 ecx=0x00000000 edx=0x00000000
0x00000018 0x00: eax=0x00000008 ebx=0x00000000 ecx=0x00000000 edx=0x00000000
0x00000018 0x01: eax=0x00000000 ebx=0x00080001 ecx=0x00000020 edx=0x00004022
0x00000018 0x02: eax=0x00000000 ebx=0x00080006 ecx=0x00000004 edx=0x00004022
0x00000018 0x03: eax=0x00000000 ebx=0x0010000f ecx=0x00000001 edx=0x00004125
0x00000018 0x04: eax=0x00000000 ebx=0x00040001 ecx=0x00000010 edx=0x00004024
0x00000018 0x05: eax=0x00000000 ebx=0x00040006 ecx=0x00000008 edx=0x00004024
0x00000018 0x06: eax=0x00000000 ebx=0x00080008 ecx=0x00000001 edx=0x00004124
0x00000018 0x07: eax=0x00000000 ebx=0x00080007 ecx=0x00000080 edx=0x00004043
0x00000018 0x08: eax=0x00000000 ebx=0x00080009 ecx=0x00000080 edx=0x00004043";
    let arrays = [
        "18 L1 code 4k 256 × 8-way",
        "18 L1 store 4k+2m+1g 16 full",
        "18 L1 load 4k 64 × 4-way (96 × 6-way)",
        "18 L1 code 2m 32 × 8-way",
        "18 L1 load 2m 32 × 4-way",
        "18 L1 load 1g 8 full",
        "18 L2 all 4k+2m 1024 × 8-way",
        "18 L2 all 4k+1g 1024 × 8-way",
    ];
    check(&intel(0x97), text, &arrays, &[]);
}

#[test]
fn leaves_that_a_hypervisor_zeroes_are_named() {
    let see_18 = "0x00000002 0x00: eax=0x00feff01 ebx=0x000000f0 ecx=0x00000000 edx=0x00000000";
    check(&intel(0x6a), see_18, &[], &[0x18]);
    check(&intel(0x6a), "", &[], &[2]);
    check(&amd(), "", &[], &[0x8000_0005, 0x8000_0006, 0x8000_0019]);
    check(&Cpu { pdpe1gb: false, ..amd() }, "", &[], &[0x8000_0005, 0x8000_0006]);
}
