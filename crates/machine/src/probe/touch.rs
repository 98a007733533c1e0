//! `touch`: one byte written in each page, as a program does that takes its memory into use.
//!
//! Position: the offset to start from. Step: the distance in bytes, 4096 for every small page. Checksum: the sum of the
//! offsets written. The byte written is the low byte of the number of accesses still to make.

use vmtax_core::units::PageSize;

use super::{Call, Code, Contents, Reply, Words, bytes_between, probe, stride};

probe!(
    "vmtax_probe_touch",
    "vmtax_probe_touch_end",
    [
        "2:",
        "mov [rdi + r9], sil",
        "add r11, r9",
        "add r9, rcx",
        "mov r12, r9",
        "sub r12, r8",
        "cmovae r9, r12",
        "dec rsi",
        "jnz 2b",
    ]
);

const PAGE: u64 = PageSize::Small.bytes();

pub(super) fn code() -> Code {
    Code {
        bytes: bytes_between!(vmtax_probe_touch, vmtax_probe_touch_end),
        reference,
        contents: Contents::Anything,
        accesses: |layout| layout.bytes() / PAGE,
        step: |_| PAGE,
        position: |layout, nth, _| nth * PAGE % layout.bytes(),
    }
}

fn reference(words: &mut dyn Words, call: Call) -> Reply {
    let checksum = stride::visits(call).fold(0u64, |sum, (offset, left)| {
        words.store(offset, left, 1);
        sum.wrapping_add(offset)
    });
    Reply { ticks: 0, position: stride::end(call), checksum }
}

#[cfg(test)]
mod tests {
    use vmtax_core::probe::Probe;

    use super::super::tests::agrees;

    #[test]
    fn touch_agrees_with_its_reference() {
        let words: Vec<u64> = (0..8 * 512).map(|i| i * 0x0101_0101).collect();
        for (accesses, position) in [(1, 0), (8, 0), (30, 4096 + 3)] {
            agrees(Probe::Touch, &words, accesses, position, 4096);
        }
    }
}
