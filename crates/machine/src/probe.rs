//! The probes: small memory benchmarks in position-independent machine code.
//!
//! A probe is the same bytes everywhere: the native venue jumps into them, the micro-VM maps a copy. Whatever differs
//! between two cells is then the translation, never a compiler.
//!
//! # The register contract
//!
//! ```text
//! in    rdi  start of the arena
//!       rsi  accesses to make, at least 1
//!       rdx  position: where the previous call left off (its meaning is the probe's)
//!       rcx  step (its meaning is the probe's)
//!       r8   bytes in the arena
//!       r15  where to go at the end
//! out   rax  TSC ticks from the first access to the last
//!       rdx  position, for the next call
//!       r8   checksum, by which the reference in Rust can tell that every access was made
//! lost  rcx, rsi, r9 to r12, flags
//! ```
//!
//! No stack and no memory but the arena, so that a payload needs nothing of its surroundings; it ends with `jmp r15`,
//! which natively leads back to the caller and in the micro-VM to an `out`. Each file here holds one probe: its code,
//! its reference, and the tests that compare the two. `tests/probe_bytes.rs` keeps the bytes.

use core::arch::asm;

use vmtax_core::{arena::Layout, probe::Probe};

mod chase;
mod random;
mod stride;
mod touch;
mod walk;

/// One call of a probe: the registers it begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Address of the arena, the same natively and in the guest.
    pub arena: u64,
    /// Bytes in the arena.
    pub bytes: u64,
    /// How many accesses to make; at least 1.
    pub accesses: u64,
    /// Where to begin, in the probe's own terms.
    pub position: u64,
    /// How to go on, in the probe's own terms.
    pub step: u64,
}

/// The registers a probe ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// TSC ticks from the first access to the last.
    pub ticks: u64,
    /// Where the next call begins.
    pub position: u64,
    /// What the accesses add up to.
    pub checksum: u64,
}

/// Memory as a reference sees it: words at offsets into the arena.
pub trait Words {
    /// The word at `offset`, a multiple of 8.
    fn load(&self, offset: u64) -> u64;
    /// Stores the low `bytes` bytes of `value` at `offset`.
    fn store(&mut self, offset: u64, value: u64, bytes: usize);
}

/// An arena in which every word holds its own number, and writes are not looked at again: enough to say what a probe
/// must return, without touching memory.
#[derive(Debug, Clone, Copy)]
pub struct Numbered;

impl Words for Numbered {
    fn load(&self, offset: u64) -> u64 {
        offset / 8
    }

    fn store(&mut self, _offset: u64, _value: u64, _bytes: usize) {}
}

/// What an arena holds when a probe begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// One random cycle of pointers through the nodes of the layout.
    Cycle,
    /// Every word its own number, as in [`Numbered`].
    Numbers,
    /// Whatever is there, or nothing yet: the probe only writes.
    Anything,
}

/// The machine code of a probe, what it must compute, and how it goes over an arena.
#[derive(Debug, Clone, Copy)]
pub struct Code {
    /// The instructions, starting at a multiple of 64.
    pub bytes: &'static [u8],
    /// The same in Rust; position and checksum must agree, ticks are 0.
    pub reference: fn(&mut dyn Words, Call) -> Reply,
    /// What it needs the arena to hold.
    pub contents: Contents,
    /// Accesses in one pass over the arena.
    pub accesses: fn(Layout) -> u64,
    /// The step register for an arena.
    pub step: fn(Layout) -> u64,
    /// The position before access number `nth` of the first pass, in a trial with this seed; a cycle knows its own instead.
    pub position: fn(Layout, nth: u64, seed: u64) -> u64,
}

/// The code of a probe.
pub fn code(probe: Probe) -> Code {
    match probe {
        Probe::Chase => chase::code(),
        Probe::Stride => stride::read(),
        Probe::StrideWrite => stride::write(),
        Probe::Random => random::code(),
        Probe::Touch => touch::code(),
        Probe::Walk => walk::sequential(),
        Probe::WalkRandom => walk::random(),
    }
}

/// Assembles one probe: `$symbol` marks its start, `$end` its end, and the lines between run from stamp to stamp.
///
/// The stamps follow Intel SDM vol. 2, RDTSC: LFENCE before, so that all earlier loads are done, and after, so that no
/// later one begins early. On AMD the kernel makes LFENCE serialize dispatch (APM vol. 3, LFENCE).
macro_rules! probe {
    ($symbol:literal, $end:literal, [$($line:literal),+ $(,)?]) => {
        core::arch::global_asm!(
            ".pushsection .text.vmtax_probes, \"ax\", @progbits",
            concat!(".globl ", $symbol, ", ", $end),
            concat!(".hidden ", $symbol, ", ", $end),
            ".balign 64",
            concat!($symbol, ":"),
            "mov r9, rdx",
            "xor r11d, r11d",
            "lfence",
            "rdtsc",
            "lfence",
            "shl rdx, 32",
            "or rax, rdx",
            "mov r10, rax",
            ".balign 32",
            $($line,)+
            "lfence",
            "rdtsc",
            "lfence",
            "shl rdx, 32",
            "or rax, rdx",
            "sub rax, r10",
            "mov rdx, r9",
            "mov r8, r11",
            "jmp r15",
            concat!($end, ":"),
            ".popsection",
        );
    };
}
use probe;

/// The bytes between two symbols of [`probe!`].
macro_rules! bytes_between {
    ($start:ident, $end:ident) => {{
        unsafe extern "C" {
            static $start: u8;
            static $end: u8;
        }
        // SAFETY: both symbols are defined by one `probe!` in the text section, the end after the start, and the bytes
        // between them are mapped and never written for as long as the program runs.
        unsafe {
            let start = &raw const $start;
            core::slice::from_raw_parts(start, (&raw const $end).offset_from_unsigned(start))
        }
    }};
}
use bytes_between;

/// Jumps into a probe natively and comes back with its registers.
///
/// # Safety
///
/// `call` must describe memory this process may read and write as the probe does: all `call.bytes` at `call.arena`, with a
/// cycle of valid pointers in it if the probe is a chase; no reference to it may be alive.
pub unsafe fn run(code: &Code, call: &Call) -> Reply {
    let (ticks, position, checksum);
    // SAFETY: the code keeps to the contract above, which names every register it changes; it uses no stack, and it
    // ends with a jump to r15, the label after the jump into it.
    unsafe {
        asm!(
            "lea r15, [rip + 2f]",
            "jmp {code}",
            "2:",
            code = in(reg) code.bytes.as_ptr(),
            in("rdi") call.arena,
            inout("rsi") call.accesses => _,
            inout("rdx") call.position => position,
            inout("rcx") call.step => _,
            inout("r8") call.bytes => checksum,
            out("rax") ticks,
            out("r9") _, out("r10") _, out("r11") _, out("r12") _, out("r15") _,
            options(nostack),
        );
    }
    Reply { ticks, position, checksum }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Real words, for a reference to work on.
    pub(crate) struct Copied<'a>(pub &'a mut [u64]);

    impl Words for Copied<'_> {
        fn load(&self, offset: u64) -> u64 {
            self.0[(offset / 8) as usize]
        }

        fn store(&mut self, offset: u64, value: u64, bytes: usize) {
            let word = &mut self.0[(offset / 8) as usize];
            let mut stored = word.to_le_bytes();
            let at = (offset % 8) as usize;
            stored[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
            *word = u64::from_le_bytes(stored);
        }
    }

    /// Runs a probe and its reference over copies of one arena; both must leave the same words, position and checksum.
    pub(crate) fn agrees(probe: Probe, words: &[u64], accesses: u64, position: u64, step: u64) {
        let (mut native, mut model) = (words.to_vec(), words.to_vec());
        let code = code(probe);
        let (arena, bytes) = (native.as_mut_ptr() as u64, size_of_val(&native[..]) as u64);
        let call = Call { arena, bytes, accesses, position, step };
        // SAFETY: the vector is alive, exclusively ours, and these probes stay within it.
        let got = unsafe { run(&code, &call) };
        let expected = (code.reference)(&mut Copied(&mut model), call);
        assert_eq!((got.position, got.checksum), (expected.position, expected.checksum), "{probe}");
        assert_eq!(native, model, "{probe} left other memory than its reference");
        assert!(got.ticks > 0, "{probe} took no time");
    }

    #[test]
    fn code_starts_on_a_line_and_fits_a_page() {
        for probe in Probe::ALL {
            let bytes = code(probe).bytes;
            assert_eq!(bytes.as_ptr() as usize % 64, 0, "{probe}");
            assert!((16..512).contains(&bytes.len()), "{probe}: {} bytes", bytes.len());
        }
    }
}
