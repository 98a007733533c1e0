//! Which KVM this host has, and whether we may use it.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// KVM as its modules, its parameters and `/dev/kvm` show it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kvm {
    /// How it translates guest addresses.
    pub kind: KvmKind,
    /// What opening `/dev/kvm` gave.
    pub access: KvmAccess,
    /// Whether it offers guests 1 GiB leaves (`KVM_GET_SUPPORTED_CPUID`, leaf 0x80000001 EDX bit 26); none when it
    /// could not be asked.
    pub guest_1g: Option<bool>,
    /// Parameters as read, under `module.parameter`: `kvm.tdp_mmu` is `Y`.
    pub parameters: BTreeMap<String, String>,
}

impl Kvm {
    /// A parameter as read, such as `kvm.nx_huge_pages`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Whether KVM splits huge pages under running guest code because of iTLB multihit.
    pub fn splits_huge_pages(&self) -> bool {
        self.parameter("kvm.nx_huge_pages").is_some_and(is_on)
    }
}

/// A boolean module parameter as the kernel prints it: `Y`, or `1` where it was an int (`kvm_amd.npt` before 5.13).
pub fn is_on(value: &str) -> bool {
    matches!(value, "Y" | "y" | "1")
}

/// How KVM translates guest addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvmKind {
    /// Intel VT-x with extended page tables: translation in two dimensions.
    IntelEpt,
    /// Intel VT-x with shadow page tables (`ept=0`).
    IntelShadow,
    /// AMD-V with nested page tables: translation in two dimensions.
    AmdNpt,
    /// AMD-V with shadow page tables (`npt=0`).
    AmdShadow,
    /// Software KVM (`kvm_pvm`): shadow page tables, no hardware virtualization.
    Pvm,
    /// A `/dev/kvm` that none of these modules explains.
    Unknown,
    /// No KVM.
    #[default]
    None,
}

impl KvmKind {
    /// The name in the results file.
    pub const fn name(self) -> &'static str {
        match self {
            KvmKind::IntelEpt => "intel_ept",
            KvmKind::IntelShadow => "intel_shadow",
            KvmKind::AmdNpt => "amd_npt",
            KvmKind::AmdShadow => "amd_shadow",
            KvmKind::Pvm => "pvm",
            KvmKind::Unknown => "unknown",
            KvmKind::None => "none",
        }
    }
}

impl fmt::Display for KvmKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            KvmKind::IntelEpt => "Intel EPT",
            KvmKind::IntelShadow => "Intel shadow paging (ept=0)",
            KvmKind::AmdNpt => "AMD NPT",
            KvmKind::AmdShadow => "AMD shadow paging (npt=0)",
            KvmKind::Pvm => "software KVM (kvm_pvm)",
            KvmKind::Unknown => "a KVM of unknown kind",
            KvmKind::None => "no KVM",
        })
    }
}

/// What opening `/dev/kvm` for reading and writing gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "access", rename_all = "snake_case")]
pub enum KvmAccess {
    /// It opened.
    Ok,
    /// There is no such device (ENOENT, ENXIO, ENODEV).
    NoDevice {
        /// The system's error number.
        errno: i32,
    },
    /// It is not ours to open (EACCES, EPERM).
    NoPermission {
        /// The system's error number.
        errno: i32,
    },
    /// It failed in another way.
    Failed {
        /// The system's error number.
        errno: i32,
    },
    /// Nobody tried.
    #[default]
    Untried,
}

impl KvmAccess {
    /// From the error number of `open`, 0 for success.
    pub const fn from_errno(errno: i32) -> KvmAccess {
        // Numbers of include/uapi/asm-generic/errno-base.h: this crate links no C library's names.
        match errno {
            0 => KvmAccess::Ok,
            2 | 6 | 19 => KvmAccess::NoDevice { errno },
            1 | 13 => KvmAccess::NoPermission { errno },
            _ => KvmAccess::Failed { errno },
        }
    }
}
