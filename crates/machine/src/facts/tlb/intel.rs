//! Intel: leaf 0x18 where it has something to say, else the one-byte descriptors of leaf 2 (SDM vol. 2A, CPUID).

use vmtax_core::{
    host::{Cpu, Tlb, TlbArray, TlbKind, TlbShape, Ways},
    units::PageSize::{self, Giant, Large, Small},
};

use crate::facts::leaves::Leaves;

const DESCRIPTORS: u32 = 2;
const PARAMETERS: u32 = 0x18;

/// Leaf 2 says so where the TLBs are in leaf 0x18.
const SEE_LEAF_18: u8 = 0xfe;

pub(super) fn read(cpu: &Cpu, leaves: &Leaves) -> Tlb {
    let parameters = parameters(cpu, leaves);
    if !parameters.is_empty() {
        return Tlb { arrays: parameters, masked: Vec::new() };
    }
    let descriptors = descriptors(leaves);
    let arrays: Vec<TlbArray> = descriptors.iter().flat_map(|&byte| described(cpu, byte)).collect();
    let masked = match (descriptors.contains(&SEE_LEAF_18), arrays.is_empty()) {
        (true, _) => vec![PARAMETERS],
        (false, true) => vec![DESCRIPTORS],
        (false, false) => Vec::new(),
    };
    Tlb { arrays, masked }
}

/// Leaf 0x18: EDX holds type, level and full associativity, EBX page sizes and ways, ECX sets.
fn parameters(cpu: &Cpu, leaves: &Leaves) -> Vec<TlbArray> {
    let [last, ..] = leaves.registers(PARAMETERS, 0);
    let array = |subleaf| {
        let [_, ebx, ecx, edx] = leaves.registers(PARAMETERS, subleaf);
        let kind = match edx & 0x1f {
            1 => TlbKind::Data,
            2 => TlbKind::Instruction,
            3 => TlbKind::Unified,
            4 => TlbKind::Load,
            5 => TlbKind::Store,
            _ => return None,
        };
        // Bit 2 is 4 MiB pages, which long mode does not have.
        let pages = [(0, Small), (1, Large), (3, Giant)].into_iter().filter(|(bit, _)| ebx & (1 << bit) != 0);
        let ways = ebx >> 16;
        let full = edx & (1 << 8) != 0;
        let shape = TlbShape { entries: ways * ecx, ways: if full { Ways::Full } else { Ways::Of(ways as u16) } };
        let pages: Vec<PageSize> = pages.map(|(_, page)| page).collect();
        let measured = golden_cove(cpu, kind, &pages, shape);
        Some(TlbArray { level: (edx >> 5 & 7) as u8, kind, pages, shape, measured, leaf: PARAMETERS })
    };
    (0..=last.min(15)).filter_map(array).collect()
}

/// Golden Cove says 64 entries, 4-way for loads of 4 KiB pages; its knee lies between 96 and 128 pages, and
/// InstLatx64's AIDA64 tables say 96, 6-way. Models: Sapphire Rapids, Emerald Rapids, Alder Lake.
fn golden_cove(cpu: &Cpu, kind: TlbKind, pages: &[PageSize], shape: TlbShape) -> Option<TlbShape> {
    let model = cpu.family == 6 && matches!(cpu.model, 0x8f | 0xcf | 0x97 | 0x9a);
    let array = kind == TlbKind::Load && pages == [Small] && shape == of(64, Ways::Of(4));
    (model && array).then_some(of(96, Ways::Of(6)))
}

/// The bytes of leaf 2: all registers but AL, and no register whose bit 31 is set.
fn descriptors(leaves: &Leaves) -> Vec<u8> {
    let registers = leaves.registers(DESCRIPTORS, 0).into_iter().filter(|r| r & (1 << 31) == 0);
    let bytes = registers.flat_map(u32::to_le_bytes).skip(1);
    bytes.filter(|&byte| byte != 0).collect()
}

/// One descriptor of leaf 2, from Nehalem on.
fn described(cpu: &Cpu, byte: u8) -> Vec<TlbArray> {
    use TlbKind::{Data, Instruction, Unified};
    use Ways::{Full, Of};
    let one = |level, kind, pages: &[PageSize], entries, ways| TlbArray {
        level,
        kind,
        pages: pages.to_vec(),
        shape: of(entries, ways),
        measured: None,
        leaf: DESCRIPTORS,
    };
    match byte {
        0x03 => vec![one(1, Data, &[Small], 64, Of(4))],
        0x55 => vec![one(1, Instruction, &[Large], 7, Full)],
        0x5a => vec![one(1, Data, &[Large], 32, Of(4))],
        0x61 => vec![one(1, Instruction, &[Small], 48, Full)],
        0x63 => vec![one(1, Data, &[Large], 32, Of(4)), one(1, Data, &[Giant], 4, Of(4))],
        0x64 => vec![one(1, Data, &[Small], 512, Of(4))],
        0x6a => vec![one(1, Data, &[Small], 64, Of(8))],
        0x6b => vec![one(1, Data, &[Small], 256, Of(8))],
        0x6c => vec![one(1, Data, &[Large], 128, Of(8))],
        0x6d => vec![one(1, Data, &[Giant], 16, Full)],
        0x76 => vec![one(1, Instruction, &[Large], 8, Full)],
        0xa0 => vec![one(1, Data, &[Small], 32, Full)],
        0xb0 => vec![one(1, Instruction, &[Small], 128, Of(4))],
        0xb2 => vec![one(1, Instruction, &[Small], 64, Of(4))],
        0xb5 => vec![one(1, Instruction, &[Small], 64, Of(8))],
        0xb6 => vec![one(1, Instruction, &[Small], 128, Of(8))],
        0xc1 => vec![one(2, Unified, &[Small, Large], 1024, Of(8))],
        0xc3 => {
            let shared = one(2, Unified, &[Small, Large], 1536, Of(6));
            vec![TlbArray { measured: skylake(cpu), ..shared }, one(2, Unified, &[Giant], 16, Of(4))]
        }
        0xc4 => vec![one(1, Data, &[Large], 32, Of(4))],
        0xca => vec![one(2, Unified, &[Small], 512, Of(4))],
        _ => Vec::new(),
    }
}

/// Descriptor 0xC3 says 6-way; timing shows 128 sets of 12 (TLB;DR, Tatar et al., USENIX Security 2022).
fn skylake(cpu: &Cpu) -> Option<TlbShape> {
    let model = cpu.family == 6 && matches!(cpu.model, 0x4e | 0x5e | 0x55);
    model.then_some(of(1536, Ways::Of(12)))
}

fn of(entries: u32, ways: Ways) -> TlbShape {
    TlbShape { entries, ways }
}
