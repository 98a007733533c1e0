//! `random`: independent loads at pseudo-random lines, the index made in registers.
//!
//! Position: the state of the generator. Step: the number of lines in the arena. Checksum: the sum of the first words of
//! the lines read. The generator is Knuth's MMIX linear congruential one (modulus 2^64); its high bits choose the line
//! by multiplication (Lemire 2019), so any number of lines will do. No load depends on another: the processor overlaps as
//! many walks as it can.

use vmtax_core::units::LINE;

use super::{Call, Code, Contents, Reply, Words, bytes_between, probe};

probe!(
    "vmtax_probe_random",
    "vmtax_probe_random_end",
    [
        "mov r12, 6364136223846793005",
        "mov r8, 1442695040888963407",
        "2:",
        "imul r9, r12",
        "add r9, r8",
        "mov rax, r9",
        "mul rcx",
        "shl rdx, 6",
        "add r11, [rdi + rdx]",
        "dec rsi",
        "jnz 2b",
    ]
);

pub(super) fn code() -> Code {
    Code {
        bytes: bytes_between!(vmtax_probe_random, vmtax_probe_random_end),
        reference,
        contents: Contents::Numbers,
        accesses: |layout| layout.bytes() / layout.stride(),
        step: |layout| layout.bytes() / LINE,
        // Any state will do; lanes must not follow one another.
        position: |_, nth, _| nth.wrapping_mul(0x9E37_79B9_7F4A_7C15),
    }
}

fn reference(words: &mut dyn Words, call: Call) -> Reply {
    let mut state = call.position;
    let mut checksum = 0u64;
    for _ in 0..call.accesses {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let line = ((u128::from(state) * u128::from(call.step)) >> 64) as u64;
        checksum = checksum.wrapping_add(words.load(line * LINE));
    }
    Reply { ticks: 0, position: state, checksum }
}

#[cfg(test)]
mod tests {
    use vmtax_core::probe::Probe;

    use super::super::tests::agrees;

    #[test]
    fn random_agrees_with_its_reference() {
        let words: Vec<u64> = (0..8 * 777).map(|i: u64| i.wrapping_mul(0x1234_5678_9abc_def1)).collect();
        for (accesses, state) in [(1, 0), (1000, 1), (20_000, u64::MAX)] {
            agrees(Probe::Random, &words, accesses, state, words.len() as u64 / 8);
        }
    }
}
