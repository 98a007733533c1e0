//! The processor and its caches.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// Who made the processor (CPUID leaf 0).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// `GenuineIntel`.
    Intel,
    /// `AuthenticAMD`, and `HygonGenuine`, whose leaves are the same.
    Amd,
    /// Anybody else, by signature.
    Other(String),
    /// CPUID was not read.
    #[default]
    Unknown,
}

/// Hardware virtualization the processor announces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Virtualization {
    /// Intel VT-x (leaf 1 ECX bit 5).
    Vmx,
    /// AMD-V (leaf 0x80000001 ECX bit 2).
    Svm,
    /// None is announced.
    #[default]
    None,
}

/// The processor, from CPUID where not said otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Who made it.
    pub vendor: Vendor,
    /// Brand string (leaves 0x80000002 to 4).
    pub brand: Option<String>,
    /// Family, extended family included.
    pub family: u8,
    /// Model, extended model included.
    pub model: u8,
    /// Stepping.
    pub stepping: u8,
    /// CPUs online (`/sys/devices/system/cpu/online`).
    pub logical: Option<u32>,
    /// Whether two threads share a core (`/sys/devices/system/cpu/smt/active`).
    pub smt: Option<bool>,
    /// 1 GiB pages (leaf 0x80000001 EDX bit 26).
    pub pdpe1gb: bool,
    /// Hardware virtualization announced by CPUID.
    pub virtualization: Virtualization,
    /// Whether the kernel lists `vmx` or `svm` in `/proc/cpuinfo`: it strikes them out where firmware forbids them.
    pub virtualization_usable: Option<bool>,
    /// The hypervisor bit (leaf 1 ECX bit 31).
    pub hypervisor: bool,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data.
    Data,
    /// Instructions.
    Instruction,
    /// Both.
    Unified,
}

/// One cache (CPUID leaf 4 on Intel, 0x8000001d on AMD).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// How much.
    pub size: Bytes,
    /// Associativity.
    pub ways: u32,
    /// Line size in bytes.
    pub line: u32,
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
            CacheKind::Unified => "",
        };
        write!(f, "L{}{kind} {}", self.level, self.size)
    }
}
