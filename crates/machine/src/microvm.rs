//! The micro-VM: our own KVM virtual machine, with one page table, one payload and no operating system.
//!
//! The payload is a probe, in long mode and in ring 3, where `out` leaves the machine: by I/O privilege level 3 on hardware,
//! and by a task-state segment that permits all ports on software KVM, which drops the level on every entry. Ring 3 is the
//! one mode every KVM runs at full speed: with nested paging, with shadow paging, and software KVM, which emulates ring 0
//! an instruction at a time. There is no interrupt controller and no IDT: any exception ends in a shutdown, which becomes
//! an error that names the place.

use std::{
    cell::OnceCell,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use kvm_bindings::{KVM_MAX_CPUID_ENTRIES, kvm_userspace_memory_region};
use kvm_ioctls::{Kvm, VcpuExit, VcpuFd, VmFd};
use vm_memory::{
    Bytes as _, GuestAddress, GuestMemoryBackend as _, GuestMemoryMmap, GuestMemoryRegion as _, GuestRegionMmap,
    mmap::MmapRegionBuilder,
};
use vmtax_core::{
    setting::Backing,
    trial::KvmCounts,
    units::{Bytes, KIB, PageSize},
};

use crate::{
    backing::{BackingError, Memory},
    kick,
    probe::{Call, Code, Reply},
};

mod counts;
mod registers;
mod table;
mod translate;

use counts::Counters;
use table::{ARENA_GPA, CODE_GPA, CODE_GVA, TSS_GPA, Table, TableError};

/// The port by which a payload says that it has ended.
const END_PORT: u8 = 0xf4;
/// `out END_PORT, al`.
const END: [u8; 2] = [0xe6, END_PORT];
/// Where it stands in the code page: beyond the longest payload.
const END_OFFSET: u64 = 2 * KIB;
/// The 64-bit task-state segment (Intel SDM vol. 3, 8.7): 104 bytes, of which the last two say where the I/O permission
/// bitmap begins; the rest of its page is that bitmap, all zero, which permits every port.
const IO_MAP_BASE: u16 = 104;
const IO_MAP_BASE_OFFSET: u64 = 102;

/// Where Intel's KVM keeps three pages for a real mode that this guest never enters, but every vCPU starts in: the place that
/// other virtual machine monitors use too, below 4 GiB and clear of all guest memory.
const TSS_ADDRESS: usize = 0xfffb_d000;

/// A virtual machine with its vCPUs, ready to run one probe over one arena.
#[derive(Debug)]
pub struct Microvm<'a> {
    // Closed before the memory they refer to is unmapped: fields are dropped in this order.
    vcpus: Vec<Vcpu<'a>>,
    vm: VmFd,
    counters: OnceCell<Option<Counters>>,
    /// Where both pieces of guest memory lie.
    memory: GuestMemoryMmap,
    _low: Memory,
}

/// One virtual CPU.
#[derive(Debug)]
pub struct Vcpu<'a> {
    fd: VcpuFd,
    stop: &'a AtomicBool,
}

/// Why a micro-VM could not be made or run.
#[derive(Debug, thiserror::Error)]
pub enum MicrovmError {
    /// A system call on `/dev/kvm` or what came of it.
    #[error("{operation} failed")]
    Kvm {
        /// The ioctl.
        operation: &'static str,
        /// What the kernel said.
        source: kvm_ioctls::Error,
    },
    /// No memory for the guest's page table.
    #[error("no memory for the guest's page table")]
    Low(#[from] BackingError),
    /// The page table does not fit.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Guest memory could not be described.
    #[error("describing guest memory: {0}")]
    Memory(String),
    /// The payload left the machine in another way than by its `out`.
    #[error("the guest stopped with {exit} at rip {rip:#x} {registers}")]
    Exit {
        /// KVM's name for the exit.
        exit: String,
        /// Where.
        rip: u64,
        /// All registers, for the report.
        registers: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

fn kvm(operation: &'static str) -> impl Fn(kvm_ioctls::Error) -> MicrovmError {
    move |source| MicrovmError::Kvm { operation, source }
}

/// What the page table of a guest stands on: the same kind of memory as the arena, as in a real guest, but never a whole
/// 1 GiB page for a few MiB.
pub const fn low_backing(arena: Backing) -> Backing {
    match arena {
        Backing::Small => Backing::Small,
        Backing::Thp | Backing::Huge1g => Backing::Thp,
        Backing::Huge2m => Backing::Huge2m,
    }
}

/// Bytes of memory a guest needs beside an arena of `bytes` bytes mapped with `leaf` pages.
pub fn low_bytes(bytes: Bytes, leaf: PageSize) -> Bytes {
    Bytes(table::low_bytes(bytes.0, leaf).next_multiple_of(PageSize::Large.bytes()))
}

impl<'a> Microvm<'a> {
    /// Makes a fresh virtual machine over `arena`, mapped at its host address by `leaf` pages, with `vcpus` vCPUs ready to
    /// run `code`. `stop` ends a run early when it becomes true.
    pub fn new(
        kvm_device: &Kvm,
        arena: &'a Memory,
        leaf: PageSize,
        vcpus: usize,
        code: &Code,
        stop: &'a AtomicBool,
    ) -> Result<Self, MicrovmError> {
        let low = Memory::allocate(low_backing(arena.backing()), low_bytes(Bytes(arena.bytes()), leaf))?;
        let memory = guest_memory(&low, arena)?;
        let vm = kvm_device.create_vm().map_err(kvm("KVM_CREATE_VM"))?;
        vm.set_tss_address(TSS_ADDRESS).map_err(kvm("KVM_SET_TSS_ADDR"))?;
        register(&vm, &memory)?;
        load(&memory, arena, leaf, code)?;
        let cpuid = kvm_device.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES).map_err(kvm("KVM_GET_SUPPORTED_CPUID"))?;
        let vcpus = (0..vcpus as u64)
            .map(|id| {
                let fd = vm.create_vcpu(id).map_err(kvm("KVM_CREATE_VCPU"))?;
                fd.set_cpuid2(&cpuid).map_err(kvm("KVM_SET_CPUID2"))?;
                let reset = fd.get_sregs().map_err(kvm("KVM_GET_SREGS"))?;
                fd.set_sregs(&registers::long_mode_ring_3(reset)).map_err(kvm("KVM_SET_SREGS"))?;
                Ok(Vcpu { fd, stop })
            })
            .collect::<Result<Vec<_>, MicrovmError>>()?;
        Ok(Microvm { vcpus, vm, counters: OnceCell::new(), memory, _low: low })
    }

    /// The vCPUs, to be run each on a thread of its own.
    pub fn vcpus(&mut self) -> &mut [Vcpu<'a>] {
        &mut self.vcpus
    }

    /// What KVM has counted since this VM was made; none where it keeps no binary statistics (before Linux 5.14).
    pub fn counts(&self) -> Option<KvmCounts> {
        let open = || Counters::open(&self.vm, self.vcpus.iter().map(|vcpu| &vcpu.fd));
        self.counters.get_or_init(open).as_ref().and_then(Counters::read)
    }
}

impl Vcpu<'_> {
    /// Runs the payload once, from its first instruction to its `out`.
    pub fn run(&mut self, call: &Call) -> Result<Reply, MicrovmError> {
        let regs = registers::of_call(call, CODE_GVA, CODE_GVA + END_OFFSET);
        self.fd.set_regs(&regs).map_err(kvm("KVM_SET_REGS"))?;
        let entered = Instant::now();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(MicrovmError::Interrupted);
            }
            let exit = match self.fd.run() {
                Ok(VcpuExit::IoOut(port, _)) if port == u16::from(END_PORT) => break,
                Err(e) if e.errno() == libc::EINTR && entered.elapsed() > kick::patience(call.accesses) => {
                    format!("no exit for {} s", entered.elapsed().as_secs())
                }
                Ok(VcpuExit::Intr) => continue,
                Err(e) if e.errno() == libc::EINTR || e.errno() == libc::EAGAIN => continue,
                Ok(exit) => format!("{exit:?}"),
                Err(source) => return Err(MicrovmError::Kvm { operation: "KVM_RUN", source }),
            };
            return Err(self.unexpected(exit));
        }
        let regs = self.fd.get_regs().map_err(kvm("KVM_GET_REGS"))?;
        Ok(registers::reply(&regs))
    }

    fn unexpected(&self, exit: String) -> MicrovmError {
        match self.fd.get_regs() {
            Ok(regs) => MicrovmError::Exit { exit, rip: regs.rip, registers: registers::dump(&regs) },
            Err(source) => MicrovmError::Kvm { operation: "KVM_GET_REGS", source },
        }
    }
}

/// Both pieces of guest-physical memory: the page table and code below, the arena above.
fn guest_memory(low: &Memory, arena: &Memory) -> Result<GuestMemoryMmap, MicrovmError> {
    let region = |memory: &Memory, gpa| {
        let builder = MmapRegionBuilder::new(memory.bytes() as usize)
            .with_mmap_prot(libc::PROT_READ | libc::PROT_WRITE)
            .with_mmap_flags(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: the range is a mapping that outlives this description of it: `Microvm` borrows the arena for as long as it
        // lives, and drops the rest after the description.
        let mapping = unsafe { builder.with_raw_mmap_pointer(memory.as_ptr()) }
            .build()
            .map_err(|e| MicrovmError::Memory(e.to_string()))?;
        GuestRegionMmap::new(mapping, GuestAddress(gpa)).ok_or(MicrovmError::Memory("address overflow".to_owned()))
    };
    GuestMemoryMmap::from_regions(vec![region(low, CODE_GPA)?, region(arena, ARENA_GPA)?])
        .map_err(|e| MicrovmError::Memory(e.to_string()))
}

fn register(vm: &VmFd, memory: &GuestMemoryMmap) -> Result<(), MicrovmError> {
    for (slot, region) in memory.iter().enumerate() {
        let slot = kvm_userspace_memory_region {
            slot: slot as u32,
            flags: 0,
            guest_phys_addr: region.start_addr().0,
            memory_size: region.len(),
            userspace_addr: region.as_ptr() as u64,
        };
        // SAFETY: the range is mapped and stays so until after the VM is closed.
        unsafe { vm.set_user_memory_region(slot) }.map_err(kvm("KVM_SET_USER_MEMORY_REGION"))?;
    }
    Ok(())
}

/// Writes payload and page table.
fn load(memory: &GuestMemoryMmap, arena: &Memory, leaf: PageSize, code: &Code) -> Result<(), MicrovmError> {
    let place = |bytes: &[u8], at| memory.write_slice(bytes, GuestAddress(at)).map_err(TableError::from);
    place(code.bytes, CODE_GPA)?;
    place(&END, CODE_GPA + END_OFFSET)?;
    place(&IO_MAP_BASE.to_le_bytes(), TSS_GPA + IO_MAP_BASE_OFFSET)?;
    let mut table = Table::new(memory);
    table.map_low()?;
    table.map(arena.address(), ARENA_GPA, arena.bytes(), leaf)?;
    Ok(())
}

#[cfg(test)]
mod tests;
