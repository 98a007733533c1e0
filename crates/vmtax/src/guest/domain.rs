//! A machine as libvirt describes one: `vmtax run --domain NAME` measures in a guest like one that exists.
//!
//! Nothing is asked of libvirt but the description, and nothing of the domain is touched: its disks are opened for reading
//! only, and its network cards get taps of their own. What the description says and this machine cannot be is told in notes,
//! so that nobody takes a figure for that of the domain itself.
//!
//! | element (libvirt.org/formatdomain.html) | becomes |
//! |---|---|
//! | `memory`, `currentMemory` | memory: what is left of it after the balloon |
//! | `memoryBacking/hugepages` | backing 2m or 1g; without it thp, as QEMU advises its memory |
//! | `vcpu`, `cputune/vcpupin` | vCPUs, and the CPUs that they are bound to |
//! | `cpu` | QEMU's name of the processor, with its features |
//! | `os/type` | board |
//! | `devices/emulator` | QEMU |
//! | `interface`, its `driver` | a tap with vhost on or off, or user networking |
//! | `disk` in raw format | a disk, for reading |

mod device;
mod element;
mod error;
mod find;
mod read;

use super::{Accel, Machine};

pub use error::DomainError;
pub use find::find;

/// A domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// Its name.
    pub name: String,
    /// A machine like it.
    pub machine: Machine,
    /// CPUs of the host to bind its vCPUs to, in order ([`super::Guest::pin`]); empty where they are free to move.
    pub pin: Vec<usize>,
    /// In what the machine differs from the domain, a sentence each.
    pub notes: Vec<String>,
}

impl Domain {
    /// Its machine, executed by another accelerator: QEMU's `host` is then the fullest processor that this one offers.
    pub fn under(&self, accel: Accel) -> Machine {
        let fullest = |cpu: &String| match (accel, cpu.strip_prefix("host,")) {
            (Accel::Tcg, Some(features)) => format!("max,{features}"),
            (Accel::Tcg, None) | (Accel::Kvm, _) => cpu.clone(),
        };
        Machine { accel, cpu: self.machine.cpu.as_ref().map(fullest), ..self.machine.clone() }
    }
}
