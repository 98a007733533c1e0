//! What a thread has used of the machine: CPU time of both kinds, page faults, and how often it was interrupted.
//!
//! A vCPU's time in its guest counts as user time of the thread that runs it, and a fault that KVM raises to reach guest
//! memory counts as a minor fault of that thread (`mm_account_fault`, mm/memory.c, Linux 5.9: also without registers). CPU
//! time is as exact as the kernel's accounting: in ticks of 1 to 10 ms, scaled to the exact sum of both kinds.

use std::{
    ops::{Add, Sub},
    time::Duration,
};

/// Totals since the thread began, or what lies between two of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// In user mode, guests included.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
    /// Page faults that took no input or output.
    pub minor_faults: u64,
    /// Times the kernel took the CPU away from it.
    pub involuntary_switches: u64,
}

impl Usage {
    /// Of the calling thread, so far.
    pub fn of_thread() -> Usage {
        // SAFETY: an all-zero rusage is a valid one.
        let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
        // SAFETY: the pointer is to a rusage of ours.
        let outcome = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
        debug_assert_eq!(outcome, 0, "getrusage of this thread");
        let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
        Usage {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            minor_faults: usage.ru_minflt as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }
}

impl Sub for Usage {
    type Output = Usage;

    fn sub(self, earlier: Usage) -> Usage {
        Usage {
            // Scaling may take a little back from one kind of time when it gives to the other.
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            minor_faults: self.minor_faults - earlier.minor_faults,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
        }
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        Usage {
            user: self.user + other.user,
            system: self.system + other.system,
            minor_faults: self.minor_faults + other.minor_faults,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
        }
    }
}

#[cfg(test)]
mod tests {
    use vmtax_core::{
        setting::Backing,
        units::{Bytes, MIB},
    };

    use super::*;
    use crate::backing::Memory;

    #[test]
    fn taking_small_pages_into_use_is_a_fault_each() {
        let before = Usage::of_thread();
        let memory = Memory::map(Backing::Small, Bytes(4 * MIB)).unwrap();
        let mapped = Usage::of_thread();
        assert!((mapped - before).minor_faults < 1024, "{mapped:?}");
        for page in (0..memory.bytes() as usize).step_by(4096) {
            // SAFETY: within the mapping, which is writable and private to us.
            unsafe { memory.as_ptr().add(page).write_volatile(1) };
        }
        let touched = Usage::of_thread() - mapped;
        assert!((1024..1200).contains(&touched.minor_faults), "{touched:?}");
    }
}
