//! TLB geometry from CPUID.
//!
//! Decoded here rather than by `raw-cpuid`, whose version 11 cuts the 12-bit sizes of leaf 0x80000019 to 8 bits, gives leaf 2
//! as prose only, and does not know the unit of 32 of Zen 5.

mod amd;
mod intel;

use vmtax_core::host::{Cpu, Tlb, Vendor};

use super::leaves::Leaves;

/// The TLBs this processor publishes, and the leaves that a hypervisor hides.
pub(super) fn read(cpu: &Cpu, leaves: &Leaves) -> Tlb {
    let mut tlb = match cpu.vendor {
        Vendor::Intel => intel::read(cpu, leaves),
        Vendor::Amd => amd::read(cpu, leaves),
        Vendor::Other(_) | Vendor::Unknown => Tlb::default(),
    };
    tlb.arrays.sort_by_key(|array| (array.level, array.pages.first().copied()));
    tlb
}

#[cfg(test)]
mod tests;
