//! What a host is: facts as they were read, never what they were wished to be.
//!
//! A [`Host`] is plain data. `machine::facts` fills it from a file tree, CPUID and a few questions to the kernel; a
//! file that does not exist is `None` here, not an error, because most of them are missing on some host.
//! What follows from the facts is decided elsewhere: [`crate::availability`] says what can be measured.

pub mod cpu;
pub mod kvm;
pub mod memory;
pub mod noise;
pub mod tlb;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use cpu::{Cache, CacheKind, Cpu, Vendor, Virtualization};
pub use kvm::{Kvm, KvmAccess, KvmKind};
pub use memory::{Limits, Memory, NumaNode, Pool, Thp, ThpMode, ThpSize};
pub use noise::{Frequency, Ksm, Noise, Pmu};
pub use tlb::{Tlb, TlbArray, TlbKind, TlbShape, Ways};

/// A machine, as its kernel and its processor describe it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Release of the running kernel (`/proc/sys/kernel/osrelease`).
    pub kernel: Option<String>,
    /// This host is itself a guest: its figures hold for this guest, not for the bare metal below.
    pub nested: bool,
    /// The processor is emulated in software (QEMU's TCG): its times mean nothing.
    pub emulated: bool,
    /// What runs underneath; none on bare metal.
    pub below: Option<Below>,
    /// The processor.
    pub cpu: Cpu,
    /// Its TLBs, as CPUID publishes them.
    pub tlb: Tlb,
    /// Its caches, as CPUID publishes them.
    pub caches: Vec<Cache>,
    /// Memory and swap.
    pub memory: Memory,
    /// Nodes that hold memory, in order of their number.
    pub numa: Vec<NumaNode>,
    /// Transparent huge pages; none where the kernel has none.
    pub thp: Option<Thp>,
    /// Hugetlb pools the kernel offers, smallest page first.
    pub pools: Vec<Pool>,
    /// What the control group of this process allows.
    pub limits: Limits,
    /// KVM, or why there is none.
    pub kvm: Kvm,
    /// `/sys/devices/system/cpu/vulnerabilities/itlb_multihit`: affected hosts split huge pages under running code.
    pub itlb_multihit: Option<String>,
    /// Clock frequency and who governs it.
    pub frequency: Frequency,
    /// What else disturbs a measurement here.
    pub noise: Noise,
    /// Hardware performance counters.
    pub pmu: Pmu,
}

/// The hypervisor this host runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Below {
    /// Signature in CPUID leaf 0x40000000, such as `KVMKVMKVM` or `TCGTCGTCGTCG`; none when it hides it.
    pub vendor: Option<String>,
    /// The product as DMI or the ACPI tables name it, such as `QEMU Standard PC (Q35 + ICH9, 2009)` or `Firecracker`.
    pub product: Option<String>,
}

impl Below {
    /// The signature of QEMU's emulator.
    pub const TCG: &'static str = "TCGTCGTCGTCG";
}

impl fmt::Display for Below {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.vendor.as_deref(), self.product.as_deref()) {
            (Some(vendor), Some(product)) => write!(f, "{product} ({vendor})"),
            (Some(name), None) | (None, Some(name)) => f.write_str(name),
            (None, None) => f.write_str("a hypervisor that does not name itself"),
        }
    }
}
