//! What only the kernel itself can answer: three attempts, and how they look in a recording.
//!
//! ```text
//! kvm_errno 0
//! kvm_guest_1g no
//! pmu_errno 2
//! ```

use std::{fmt, io};

use kvm_bindings::KVM_MAX_CPUID_ENTRIES;
use vmtax_core::host::{KvmAccess, Pmu};

/// Results of attempts; 0 is success.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Error number of opening `/dev/kvm` for reading and writing; ENOTTY when that is something else.
    pub kvm_errno: Option<i32>,
    /// Whether KVM offers guests 1 GiB leaves.
    pub guest_1g: Option<bool>,
    /// Error number of opening a counter of cycles.
    pub pmu_errno: Option<i32>,
}

impl Answers {
    /// Asks the kernel we run on.
    pub fn of_this_kernel() -> Answers {
        let pmu_errno = Some(cycles_errno());
        match kvm_ioctls::Kvm::new() {
            Ok(kvm) if kvm.get_api_version() == KVM_API_VERSION => {
                Answers { kvm_errno: Some(0), guest_1g: guest_1g(&kvm), pmu_errno }
            }
            // Something else lies there, as when a sandbox hides the device under /dev/null.
            Ok(_) => Answers { kvm_errno: Some(libc::ENOTTY), guest_1g: None, pmu_errno },
            Err(error) => Answers { kvm_errno: Some(error.errno()), guest_1g: None, pmu_errno },
        }
    }

    /// The text form, read. What is missing was not tried.
    pub fn parse(text: &str) -> Answers {
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Answers {
            kvm_errno: value("kvm_errno").and_then(|v| v.trim().parse().ok()),
            guest_1g: value("kvm_guest_1g").map(|v| v.trim() == "yes"),
            pmu_errno: value("pmu_errno").and_then(|v| v.trim().parse().ok()),
        }
    }

    pub(super) fn kvm(&self) -> KvmAccess {
        self.kvm_errno.map_or(KvmAccess::Untried, KvmAccess::from_errno)
    }

    pub(super) fn pmu(&self) -> Pmu {
        self.pmu_errno.map_or(Pmu::Untried, Pmu::from_errno)
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(errno) = self.kvm_errno {
            writeln!(f, "kvm_errno {errno}")?;
        }
        if let Some(offered) = self.guest_1g {
            writeln!(f, "kvm_guest_1g {}", if offered { "yes" } else { "no" })?;
        }
        if let Some(errno) = self.pmu_errno {
            writeln!(f, "pmu_errno {errno}")?;
        }
        Ok(())
    }
}

/// The one version since Linux 2.6.22 (Documentation/virt/kvm/api.rst, 4.1); it will not change.
const KVM_API_VERSION: i32 = 12;

/// Leaf 0x80000001 EDX bit 26 (page1gb) of what KVM would give a guest.
fn guest_1g(kvm: &kvm_ioctls::Kvm) -> Option<bool> {
    let cpuid = kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES).ok()?;
    let leaf = cpuid.as_slice().iter().find(|entry| entry.function == 0x8000_0001);
    Some(leaf.is_some_and(|entry| entry.edx & (1 << 26) != 0))
}

/// The first 64 bytes of `struct perf_event_attr` (include/uapi/linux/perf_event.h: PERF_ATTR_SIZE_VER0).
#[repr(C)]
#[derive(Default)]
struct PerfEventAttr {
    kind: u32,
    size: u32,
    config: u64,
    sample: [u64; 3],
    flags: u64,
    wakeup: u32,
    breakpoint_kind: u32,
    config1: u64,
}

/// Opens a counter of this thread's cycles in user mode, closes it, and returns the error number.
fn cycles_errno() -> i32 {
    // PERF_TYPE_HARDWARE and PERF_COUNT_HW_CPU_CYCLES are both 0. Bits: 0 disabled, 5 exclude_kernel, 6 exclude_hv.
    let size = size_of::<PerfEventAttr>() as u32;
    let mut attr = PerfEventAttr { size, flags: 1 | 1 << 5 | 1 << 6, ..PerfEventAttr::default() };
    let (this_thread, any_cpu, no_group, no_flags) = (0, -1, -1, 0);
    // SAFETY: the kernel reads `size` bytes at `attr`, which is `repr(C)`, that long, and lives across the call; it writes
    // to it only when it refuses the size (E2BIG), and then only the field `size`, which nobody reads again.
    let fd =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw mut attr, this_thread, any_cpu, no_group, no_flags) };
    if fd < 0 {
        return io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    }
    // SAFETY: the kernel just gave us this descriptor and nobody else knows it.
    unsafe { libc::close(fd as libc::c_int) };
    0
}
