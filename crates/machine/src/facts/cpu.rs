//! The processor, its caches, and the product it sits in.

use std::io::Cursor;

use procfs_core::FromBufRead;
use raw_cpuid::CacheType;
use vmtax_core::{
    host::{Cache, CacheKind, Cpu, Vendor, Virtualization},
    units::Bytes,
};

use super::{leaves::Leaves, tree::Tree};

/// Identity and features.
pub(super) fn read(tree: &Tree, leaves: &Leaves) -> Cpu {
    let cpuid = leaves.decoded();
    let features = cpuid.get_feature_info();
    let extended = cpuid.get_extended_processor_and_feature_identifiers();
    let virtualization = match (&features, &extended) {
        (Some(f), _) if f.has_vmx() => Virtualization::Vmx,
        (_, Some(e)) if e.has_svm() => Virtualization::Svm,
        _ => Virtualization::None,
    };
    Cpu {
        vendor: vendor(leaves),
        brand: cpuid.get_processor_brand_string().map(|b| b.as_str().trim().to_owned()).filter(|b| !b.is_empty()),
        family: features.as_ref().map_or(0, |f| f.family_id()),
        model: features.as_ref().map_or(0, |f| f.model_id()),
        stepping: features.as_ref().map_or(0, |f| f.stepping_id()),
        logical: tree.text("sys/devices/system/cpu/online").as_deref().and_then(count),
        smt: tree.switch("sys/devices/system/cpu/smt/active"),
        pdpe1gb: extended.as_ref().is_some_and(|e| e.has_1gib_pages()),
        virtualization,
        virtualization_usable: usable(tree, virtualization),
        hypervisor: features.as_ref().is_some_and(|f| f.has_hypervisor()),
    }
}

/// The caches, nearest first. Leaf 0x8000001d has the form of leaf 4 (APM vol. 3, E.4.16).
pub(super) fn caches(leaves: &Leaves) -> Vec<Cache> {
    let parameters = leaves.decoded().get_cache_parameters().into_iter().flatten();
    let known = parameters.filter_map(|c| {
        let kind = match c.cache_type() {
            CacheType::Data => CacheKind::Data,
            CacheType::Instruction => CacheKind::Instruction,
            CacheType::Unified => CacheKind::Unified,
            CacheType::Null | CacheType::Reserved => return None,
        };
        let (ways, line) = (c.associativity(), c.coherency_line_size() * c.physical_line_partitions());
        let size = Bytes((ways * line * c.sets()) as u64);
        Some(Cache { level: c.level(), kind, size, ways: ways as u32, line: c.coherency_line_size() as u32 })
    });
    known.collect()
}

/// What DMI calls the machine; else who wrote its ACPI tables: Firecracker has no DMI.
pub(super) fn product(tree: &Tree) -> Option<String> {
    let field = |name| tree.text(&format!("sys/class/dmi/id/{name}")).filter(|text| !text.is_empty());
    match (field("sys_vendor"), field("product_name")) {
        (Some(vendor), Some(product)) => Some(format!("{vendor} {product}")),
        (Some(name), None) | (None, Some(name)) => Some(name),
        (None, None) => acpi_author(tree),
    }
}

/// The OEM in the header of the FADT (ACPI 6.5, 5.2.6: bytes 10 to 15). Only root may read it.
fn acpi_author(tree: &Tree) -> Option<String> {
    let header = tree.head("sys/firmware/acpi/tables/FACP", ACPI_HEADER)?;
    let oem = String::from_utf8_lossy(header.get(10..16)?).trim_matches(['\0', ' ']).to_owned();
    Some(match oem.as_str() {
        "FIRECK" => "Firecracker".to_owned(),
        "CLOUDH" => "Cloud Hypervisor".to_owned(),
        "BOCHS" => "QEMU".to_owned(),
        _ => return Some(oem).filter(|name| !name.is_empty()),
    })
}

/// Bytes in the header of every ACPI table.
const ACPI_HEADER: usize = 36;

fn vendor(leaves: &Leaves) -> Vendor {
    let [_, ebx, ecx, edx] = leaves.registers(0, 0);
    let bytes: Vec<u8> = [ebx, edx, ecx].into_iter().flat_map(u32::to_le_bytes).collect();
    match String::from_utf8_lossy(&bytes).trim_matches('\0') {
        "GenuineIntel" => Vendor::Intel,
        "AuthenticAMD" | "HygonGenuine" => Vendor::Amd,
        "" => Vendor::Unknown,
        other => Vendor::Other(other.to_owned()),
    }
}

/// Whether `/proc/cpuinfo` still lists the feature: the kernel clears it where firmware has locked it off
/// (arch/x86/kernel/cpu/feat_ctl.c from 5.6 for VMX, amd.c from 6.7 for SVM).
fn usable(tree: &Tree, virtualization: Virtualization) -> Option<bool> {
    let flag = match virtualization {
        Virtualization::Vmx => "vmx",
        Virtualization::Svm => "svm",
        Virtualization::None => return None,
    };
    let text = tree.text("proc/cpuinfo")?;
    let info = procfs_core::CpuInfo::from_buf_read(Cursor::new(text)).ok()?;
    Some(info.flags(0)?.contains(&flag))
}

/// How many CPUs a list such as `0-3,8` names.
fn count(list: &str) -> Option<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.checked_sub(first)? + 1)
    };
    list.split(',').map(range).sum()
}
