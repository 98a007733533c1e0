//! `walk` and `walk-random`: four bytes written at every stride of a region, in order or in none.
//!
//! The walks of a study of huge pages: memory is taken into use as it is walked, so the first pass holds the faults. In random
//! order the stride says only how many references there are; each goes to a slot that a generator in registers chooses (Knuth's
//! MMIX multiplier, increment 1; the high bits choose by multiplication, Lemire 2019).
//!
//! Position: the offset to start from, or the state of the generator. Step: the stride in bytes. Checksum: the sum of the offsets
//! written.

use vmtax_core::arena::Layout;

use super::{Call, Code, Contents, Reply, Words, bytes_between, probe, stride};

probe!(
    "vmtax_probe_walk",
    "vmtax_probe_walk_end",
    [
        "2:",
        "mov [rdi + r9], esi",
        "add r11, r9",
        "add r9, rcx",
        "mov r12, r9",
        "sub r12, r8",
        "cmovae r9, r12",
        "dec rsi",
        "jnz 2b",
    ]
);

probe!(
    "vmtax_probe_walk_random",
    "vmtax_probe_walk_random_end",
    [
        "mov rax, r8",
        "xor edx, edx",
        "div rcx",
        "mov r8, rax",
        "mov r12, 6364136223846793005",
        "2:",
        "imul r9, r12",
        "inc r9",
        "mov rax, r9",
        "mul r8",
        "imul rdx, rcx",
        "mov [rdi + rdx], esi",
        "add r11, rdx",
        "dec rsi",
        "jnz 2b",
    ]
);

pub(super) fn sequential() -> Code {
    Code {
        bytes: bytes_between!(vmtax_probe_walk, vmtax_probe_walk_end),
        reference,
        contents: Contents::Anything,
        accesses: |layout| layout.bytes() / layout.stride(),
        step: Layout::stride,
        position: |layout, nth, _| nth * layout.stride() % layout.bytes(),
    }
}

pub(super) fn random() -> Code {
    Code {
        bytes: bytes_between!(vmtax_probe_walk_random, vmtax_probe_walk_random_end),
        reference: random_reference,
        contents: Contents::Anything,
        accesses: |layout| layout.bytes() / layout.stride(),
        step: Layout::stride,
        position: |_, nth, seed| seed.wrapping_add(nth.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
    }
}

fn reference(words: &mut dyn Words, call: Call) -> Reply {
    let checksum = stride::visits(call).fold(0u64, |sum, (offset, left)| {
        words.store(offset, left, 4);
        sum.wrapping_add(offset)
    });
    Reply { ticks: 0, position: stride::end(call), checksum }
}

fn random_reference(words: &mut dyn Words, call: Call) -> Reply {
    let slots = u128::from(call.bytes / call.step);
    let (mut state, mut checksum) = (call.position, 0u64);
    for made in 0..call.accesses {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let offset = ((u128::from(state) * slots) >> 64) as u64 * call.step;
        words.store(offset, call.accesses - made, 4);
        checksum = checksum.wrapping_add(offset);
    }
    Reply { ticks: 0, position: state, checksum }
}

#[cfg(test)]
mod tests {
    use vmtax_core::probe::Probe;

    use super::super::tests::agrees;

    #[test]
    fn walks_agree_with_their_reference_at_every_stride_of_the_study() {
        let words: Vec<u64> = (0..8192).collect();
        for step in (2..=14).map(|log| 1 << log) {
            for (accesses, position) in [(1, 0), (500, 4096), (40_000, 0)] {
                agrees(Probe::Walk, &words, accesses, position, step);
                agrees(Probe::WalkRandom, &words, accesses, position + 1, step);
            }
        }
    }
}
