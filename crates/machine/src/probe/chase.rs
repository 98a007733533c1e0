//! `chase`: dependent loads along a cycle of pointers.
//!
//! Position: the address of the node to start from. Step: not used. Checksum: the address of the node reached, which only
//! a walk that made every load can know.

use vmtax_core::arena::Layout;

use super::{Call, Code, Contents, Reply, Words, bytes_between, probe};

probe!(
    "vmtax_probe_chase",
    "vmtax_probe_chase_end",
    [
        "2:", //
        "mov r9, [r9]",
        "dec rsi",
        "jnz 2b",
        "mov r11, r9",
    ]
);

pub(super) fn code() -> Code {
    Code {
        bytes: bytes_between!(vmtax_probe_chase, vmtax_probe_chase_end),
        reference,
        contents: Contents::Cycle,
        accesses: Layout::nodes,
        step: |_| 0,
        position: |layout, _, _| layout.offset(0),
    }
}

fn reference(words: &mut dyn Words, call: Call) -> Reply {
    let node = (0..call.accesses).fold(call.position, |at, _| words.load(at - call.arena));
    Reply { ticks: 0, position: node, checksum: node }
}

#[cfg(test)]
mod tests {
    use super::super::{run, tests::Copied};
    use super::*;

    #[test]
    fn chase_ends_where_its_reference_ends() {
        let mut words = vec![0u64; 8 * 512];
        let base = words.as_mut_ptr() as u64;
        let mut next: Vec<u64> = (0..512).collect();
        vmtax_core::arena::tie_cycle(512, 7, |i, j| next.swap(i as usize, j as usize));
        for (node, to) in next.iter().enumerate() {
            words[8 * node] = base + to * 64;
        }
        for accesses in [1, 2, 511, 512, 513, 5000] {
            let call = Call { arena: base, bytes: 8 * 8 * 512, accesses, position: base, step: 0 };
            // SAFETY: every node of the cycle lies in `words`, which is alive and not referenced meanwhile.
            let got = unsafe { run(&code(), &call) };
            let expected = reference(&mut Copied(&mut words), call);
            assert_eq!((got.position, got.checksum), (expected.position, expected.checksum), "{accesses} loads");
            assert_eq!(got.position == base, accesses % 512 == 0, "{accesses} loads");
        }
    }
}
