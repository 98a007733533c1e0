//! AMD: leaves 0x80000005 (first level), 0x80000006 (second level) and 0x80000019 (1 GiB) (APM vol. 3, E.4.5, E.4.6, E.4.15).
//!
//! ```text
//!   0x80000005 EAX (2 MiB), EBX (4 KiB)        0x80000006 EAX (2 MiB), EBX (4 KiB); 0x80000019 EAX, EBX (1 GiB)
//!   31    24 23     16 15     8 7      0       31  28 27       16 15  12 11        0
//!  +--------+---------+--------+--------+     +------+-----------+------+-----------+
//!  | d ways | d size  | i ways | i size |     |d code|  d size   |i code|  i size   |
//!  +--------+---------+--------+--------+     +------+-----------+------+-----------+
//! ```

use vmtax_core::{
    host::{Cpu, Tlb, TlbArray, TlbKind, TlbShape, Ways},
    units::PageSize,
};

use crate::facts::leaves::Leaves;

const FIRST: u32 = 0x8000_0005;
const SECOND: u32 = 0x8000_0006;
const GIANT: u32 = 0x8000_0019;
const FEATURES_2: u32 = 0x8000_0021;

/// `L2TlbSizeX32`: Zen 5 gives sizes of the second level in units of 32, because 4096 does not fit 12 bits.
const SIZES_IN_32: u32 = 1 << 14;

pub(super) fn read(cpu: &Cpu, leaves: &Leaves) -> Tlb {
    let unit = if leaves.registers(FEATURES_2, 0)[0] & SIZES_IN_32 != 0 { 32 } else { 1 };
    let [l1_2m, l1_4k, ..] = leaves.registers(FIRST, 0);
    let [l2_2m, l2_4k, ..] = leaves.registers(SECOND, 0);
    let [l1_1g, l2_1g, ..] = leaves.registers(GIANT, 0);
    let halves = [
        (1, PageSize::Small, FIRST, by_count(l1_4k)),
        (1, PageSize::Large, FIRST, by_count(l1_2m)),
        (1, PageSize::Giant, GIANT, by_code(l1_1g, 1)),
        (2, PageSize::Small, SECOND, by_code(l2_4k, unit)),
        (2, PageSize::Large, SECOND, by_code(l2_2m, unit)),
        (2, PageSize::Giant, GIANT, by_code(l2_1g, unit)),
    ];
    let arrays = halves.into_iter().flat_map(|(level, page, leaf, [data, code])| {
        let array = move |kind, shape: Option<TlbShape>| {
            Some(TlbArray { level, kind, pages: vec![page], shape: shape?, measured: None, leaf })
        };
        [array(TlbKind::Data, data), array(TlbKind::Instruction, code)].into_iter().flatten()
    });
    let expected = [(FIRST, true), (SECOND, true), (GIANT, cpu.pdpe1gb)];
    let hidden = |leaf: u32| leaves.registers(leaf, 0)[..2] == [0, 0];
    let masked = expected.into_iter().filter(|&(leaf, here)| here && hidden(leaf)).map(|(leaf, _)| leaf);
    Tlb { arrays: arrays.collect(), masked: masked.collect() }
}

/// Data and instruction halves of a register whose associativity is a number of ways.
fn by_count(register: u32) -> [Option<TlbShape>; 2] {
    [register >> 16, register & 0xffff].map(|half| {
        let ways = match half >> 8 {
            0 => return None,
            0xff => Ways::Full,
            n => Ways::Of(n as u16),
        };
        shape(half & 0xff, ways)
    })
}

/// Data and instruction halves of a register whose associativity is a code (APM vol. 3, table E-4).
fn by_code(register: u32, unit: u32) -> [Option<TlbShape>; 2] {
    [register >> 16, register & 0xffff].map(|half| {
        let ways = match half >> 12 {
            0 => return None,
            n @ 1..=4 => Ways::Of(n as u16),
            5 => Ways::Of(6),
            6 => Ways::Of(8),
            8 => Ways::Of(16),
            0xa => Ways::Of(32),
            0xb => Ways::Of(48),
            0xc => Ways::Of(64),
            0xd => Ways::Of(96),
            0xe => Ways::Of(128),
            0xf => Ways::Full,
            _ => Ways::Unknown,
        };
        shape((half & 0xfff) * unit, ways)
    })
}

fn shape(entries: u32, ways: Ways) -> Option<TlbShape> {
    (entries > 0).then_some(TlbShape { entries, ways })
}
