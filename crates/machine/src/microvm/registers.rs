//! The registers of a vCPU: long mode, ring 3, and the probe's contract.

use kvm_bindings::{kvm_regs, kvm_segment, kvm_sregs};

use super::table::{PML4_GPA, TSS_GVA};
use crate::probe::{Call, Reply};

// Control registers and EFER: Intel SDM vol. 3, 2.5 and 2.2.1.
const CR0_PE: u64 = 1 << 0;
const CR0_ET: u64 = 1 << 4;
const CR0_NE: u64 = 1 << 5;
const CR0_WP: u64 = 1 << 16;
const CR0_PG: u64 = 1 << 31;
const CR4_PAE: u64 = 1 << 5;
const EFER_LME: u64 = 1 << 8;
const EFER_LMA: u64 = 1 << 10;
/// Bit 1 of RFLAGS is always set.
const RFLAGS_ONE: u64 = 1 << 1;
/// I/O privilege level 3: `in` and `out` are allowed in ring 3.
const RFLAGS_IOPL_3: u64 = 3 << 12;

/// The special registers of a vCPU after reset, changed to 64-bit code in ring 3 on our page table.
pub(super) fn long_mode_ring_3(reset: kvm_sregs) -> kvm_sregs {
    let code = kvm_segment {
        selector: 0x33,
        type_: 0b1011, // execute, read, accessed
        present: 1,
        dpl: 3,
        s: 1,
        l: 1,
        g: 1,
        limit: u32::MAX,
        ..Default::default()
    };
    let data = kvm_segment {
        selector: 0x2b,
        type_: 0b0011, // read, write, accessed
        db: 1,
        l: 0,
        ..code
    };
    let task_state = kvm_segment {
        base: TSS_GVA,
        limit: 0xfff,
        selector: 0x40,
        type_: 0b1011, // busy 64-bit TSS: VMX enters with no other (SDM vol. 3, 27.3.1.2)
        present: 1,
        ..Default::default()
    };
    kvm_sregs {
        tr: task_state,
        cs: code,
        ss: data,
        ds: data,
        es: data,
        fs: data,
        gs: data,
        cr0: CR0_PE | CR0_ET | CR0_NE | CR0_WP | CR0_PG,
        cr3: PML4_GPA,
        cr4: CR4_PAE,
        efer: EFER_LME | EFER_LMA,
        ..reset
    }
}

/// The registers a probe begins with: `entry` is its first instruction, `end` where it goes when done.
pub(super) fn of_call(call: &Call, entry: u64, end: u64) -> kvm_regs {
    kvm_regs {
        rip: entry,
        rdi: call.arena,
        rsi: call.accesses,
        rdx: call.position,
        rcx: call.step,
        r8: call.bytes,
        r15: end,
        rflags: RFLAGS_ONE | RFLAGS_IOPL_3,
        ..Default::default()
    }
}

/// The registers a probe ends with.
pub(super) fn reply(regs: &kvm_regs) -> Reply {
    Reply { ticks: regs.rax, position: regs.rdx, checksum: regs.r8 }
}

/// All of them, for an error message.
pub(super) fn dump(r: &kvm_regs) -> String {
    format!(
        "(rax={:#x} rbx={:#x} rcx={:#x} rdx={:#x} rsi={:#x} rdi={:#x} rsp={:#x} rbp={:#x} r8={:#x} r9={:#x} r10={:#x} \
         r11={:#x} r12={:#x} r13={:#x} r14={:#x} r15={:#x} rflags={:#x})",
        r.rax,
        r.rbx,
        r.rcx,
        r.rdx,
        r.rsi,
        r.rdi,
        r.rsp,
        r.rbp,
        r.r8,
        r.r9,
        r.r10,
        r.r11,
        r.r12,
        r.r13,
        r.r14,
        r.r15,
        r.rflags
    )
}
