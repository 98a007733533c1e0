//! CPUID as a table: read once from this processor, or from a text.
//!
//! The text has the form of `cpuid -1 -r`, one leaf a line, so that anybody can add a machine:
//!
//! ```text
//! 0x00000001 0x00: eax=0x00050657 ebx=0xc7400800 ecx=0x7ffefbff edx=0xbfebfbff
//! ```
//!
//! Other lines are ignored. A leaf that is not in the table reads zero, as on a processor that lacks it.

use std::{collections::BTreeMap, fmt};

use raw_cpuid::{CpuId, CpuIdReader, CpuIdResult, native_cpuid};

/// Leaves this crate looks at, with how many of their subleaves at most.
const WANTED: [(u32, u32); 19] = [
    (0, 1),
    (1, 1),
    (2, 1),
    (4, 8),
    (6, 1),
    (7, 1),
    (0x18, 16),
    (0x4000_0000, 1),
    (0x8000_0000, 1),
    (0x8000_0001, 1),
    (0x8000_0002, 1),
    (0x8000_0003, 1),
    (0x8000_0004, 1),
    (0x8000_0005, 1),
    (0x8000_0006, 1),
    (0x8000_0008, 1),
    (0x8000_0019, 1),
    (0x8000_001d, 8),
    (0x8000_0021, 1),
];

/// Bit 31 of ECX in leaf 1: there is a hypervisor.
const HYPERVISOR: u32 = 1 << 31;

/// A processor's CPUID leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leaves(BTreeMap<(u32, u32), [u32; 4]>);

impl Leaves {
    /// The processor that happens to run us. On a hybrid processor it speaks for its own kind of core only.
    pub fn of_this_cpu() -> Leaves {
        let last = |base| native_cpuid::cpuid_count(base, 0).eax;
        let hypervisor = native_cpuid::cpuid_count(1, 0).ecx & HYPERVISOR != 0;
        let exists = |leaf: u32| match leaf >> 28 {
            0 => leaf <= last(0),
            // Without a hypervisor this range answers with whatever the highest basic leaf holds (SDM vol. 2, CPUID).
            4 => hypervisor,
            _ => leaf <= last(0x8000_0000),
        };
        let wanted = WANTED.into_iter().filter(|&(leaf, _)| exists(leaf));
        let all = wanted.flat_map(|(leaf, n)| (0..n).map(move |subleaf| (leaf, subleaf)));
        let read = all.map(|(leaf, subleaf)| {
            let CpuIdResult { eax, ebx, ecx, edx } = native_cpuid::cpuid_count(leaf, subleaf);
            ((leaf, subleaf), [eax, ebx, ecx, edx])
        });
        Leaves(read.filter(|(key, registers)| key.1 == 0 || *registers != [0; 4]).collect())
    }

    /// The text form, read.
    pub fn parse(text: &str) -> Leaves {
        Leaves(text.lines().filter_map(parse_line).collect())
    }

    /// EAX, EBX, ECX and EDX of a leaf; zeros where it does not exist.
    pub fn registers(&self, leaf: u32, subleaf: u32) -> [u32; 4] {
        self.0.get(&(leaf, subleaf)).copied().unwrap_or_default()
    }

    /// Decoded by `raw-cpuid`.
    pub fn decoded(&self) -> CpuId<Leaves> {
        CpuId::with_cpuid_reader(self.clone())
    }

    /// The signature of the hypervisor; none where there is none, or where it hides.
    pub fn hypervisor(&self) -> Option<String> {
        let [_, ebx, ecx, edx] = self.registers(0x4000_0000, 0);
        let bytes: Vec<u8> = [ebx, ecx, edx].into_iter().flat_map(u32::to_le_bytes).collect();
        let text = String::from_utf8_lossy(&bytes);
        let name = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
        (!name.is_empty()).then(|| name.to_owned())
    }
}

impl CpuIdReader for Leaves {
    fn cpuid2(&self, eax: u32, ecx: u32) -> CpuIdResult {
        let [eax, ebx, ecx, edx] = self.registers(eax, ecx);
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

impl fmt::Display for Leaves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((leaf, subleaf), [eax, ebx, ecx, edx]) in &self.0 {
            write!(f, "0x{leaf:08x} 0x{subleaf:02x}: ")?;
            writeln!(f, "eax=0x{eax:08x} ebx=0x{ebx:08x} ecx=0x{ecx:08x} edx=0x{edx:08x}")?;
        }
        Ok(())
    }
}

fn parse_line(line: &str) -> Option<((u32, u32), [u32; 4])> {
    let (place, registers) = line.split_once(':')?;
    let hex = |text: &str| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let mut place = place.split_whitespace();
    let key = (hex(place.next()?)?, hex(place.next()?)?);
    let mut values = [0; 4];
    for (value, name) in values.iter_mut().zip(["eax=", "ebx=", "ecx=", "edx="]) {
        let word = registers.split_whitespace().find_map(|word| word.strip_prefix(name))?;
        *value = hex(word)?;
    }
    Some((key, values))
}
