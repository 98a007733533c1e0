//! `stride` and `stride-write`: accesses at a fixed stride, starting over at the end of the arena.
//!
//! Position: the offset to start from. Step: the stride in bytes, less than the arena. Checksum: the sum of the words
//! read, or of the offsets written. A write stores the number of accesses still to make.

use vmtax_core::arena::Layout;

use super::{Call, Code, Contents, Reply, Words, bytes_between, probe};

probe!(
    "vmtax_probe_stride",
    "vmtax_probe_stride_end",
    ["2:", "add r11, [rdi + r9]", "add r9, rcx", "mov r12, r9", "sub r12, r8", "cmovae r9, r12", "dec rsi", "jnz 2b",]
);

probe!(
    "vmtax_probe_stride_write",
    "vmtax_probe_stride_write_end",
    [
        "2:",
        "mov [rdi + r9], rsi",
        "add r11, r9",
        "add r9, rcx",
        "mov r12, r9",
        "sub r12, r8",
        "cmovae r9, r12",
        "dec rsi",
        "jnz 2b",
    ]
);

pub(super) fn read() -> Code {
    code(bytes_between!(vmtax_probe_stride, vmtax_probe_stride_end), read_reference, Contents::Numbers)
}

pub(super) fn write() -> Code {
    code(bytes_between!(vmtax_probe_stride_write, vmtax_probe_stride_write_end), write_reference, Contents::Anything)
}

fn code(bytes: &'static [u8], reference: fn(&mut dyn Words, Call) -> Reply, contents: Contents) -> Code {
    Code {
        bytes,
        reference,
        contents,
        accesses: |layout| layout.bytes() / layout.stride(),
        step: Layout::stride,
        position: |layout, nth, _| nth * layout.stride() % layout.bytes(),
    }
}

/// The offsets an access at a fixed stride visits, with the number of accesses still to make at each.
pub(super) fn visits(call: Call) -> impl Iterator<Item = (u64, u64)> {
    let wrap = move |offset: u64| if offset >= call.bytes { offset - call.bytes } else { offset };
    (0..call.accesses).scan(call.position, move |offset, made| {
        let at = *offset;
        *offset = wrap(at + call.step);
        Some((at, call.accesses - made))
    })
}

/// Where the last of those accesses leaves the position.
pub(super) fn end(call: Call) -> u64 {
    ((u128::from(call.position) + u128::from(call.accesses) * u128::from(call.step)) % u128::from(call.bytes)) as u64
}

fn read_reference(words: &mut dyn Words, call: Call) -> Reply {
    let checksum = visits(call).fold(0u64, |sum, (offset, _)| sum.wrapping_add(words.load(offset)));
    Reply { ticks: 0, position: end(call), checksum }
}

fn write_reference(words: &mut dyn Words, call: Call) -> Reply {
    let checksum = visits(call).fold(0u64, |sum, (offset, left)| {
        words.store(offset, left, 8);
        sum.wrapping_add(offset)
    });
    Reply { ticks: 0, position: end(call), checksum }
}

#[cfg(test)]
mod tests {
    use vmtax_core::probe::Probe;

    use super::super::tests::agrees;

    #[test]
    fn strides_agree_with_their_reference_and_wrap() {
        let words: Vec<u64> = (0..4096).map(|i| i * i).collect();
        for (accesses, position, step) in
            [(1, 0, 8), (100, 64, 64), (5000, 0, 4096), (9999, 8, 24 * 8), (3, 32760, 32760)]
        {
            agrees(Probe::Stride, &words, accesses, position, step);
            agrees(Probe::StrideWrite, &words, accesses, position, step);
        }
    }
}
