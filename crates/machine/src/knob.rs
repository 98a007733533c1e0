//! Host state that vmtax may change and must put back. The only writer to `/sys` and `/proc/sys` in vmtax.
//!
//! The invariant: whatever a [`Lease`] changed is on disk, in the journal, before it is changed, and stays there
//! until it was read back as restored. So it is put back by the first of these that comes to it:
//!
//! 1. the lease itself, on [`Lease::release`] or when dropped (error, panic);
//! 2. the [`guardian`], a process that outlives its parent's SIGKILL;
//! 3. the next lease on this host, or [`restore()`], when both were killed.
//!
//! ```text
//!   vmtax ──flock──┐                       /run/vmtax/lock      one open file description, so the lock is
//!     │  socket    ├─ same description ──► (holder's pid)       free only when both processes are gone
//!   guardian ──────┘                       /run/vmtax/journal   what was changed: old, intended, got
//! ```
//!
//! Pools are borrowed from, or set, by count; switches are set, by the word the kernel knows. A plan sets several together, on a
//! [`Panel`]. One more switch is one more variant of
//! [`Switch`]: the compiler then asks for its file, its words, and what to do where it is missing.
//!
//! The lock and the journal exclude and protect within one `/run`. Containers with a `/run` of their own share the
//! kernel's pools all the same; the rule of [`restore()`] still takes from a pool only what was borrowed.

mod compaction;
mod error;
pub mod guardian;
mod host;
mod journal;
mod lease;
mod lock;
mod module;
mod panel;
mod pool;
mod position;
mod restore;
mod switch;
mod value;
mod vm;

#[cfg(test)]
pub(crate) mod fake;

use std::{fmt, path::PathBuf};

use serde::{Deserialize, Serialize};
use vmtax_core::units::PageSize;

pub use compaction::compact;
pub use error::Error;
pub use host::{Host, Kernel, Sysfs};
pub use lease::{Grant, Lease, Turn};
pub use lock::{Contention, check_free};
pub use panel::Panel;
pub use pool::{Pool, Want, available_memory, check_memory, default_page};
pub use position::Position;
pub use restore::{Outcome, Verdict, is_left_changed, restore};
pub use switch::Switch;
pub use value::Value;
pub use vm::{VmUser, users as vm_users};

/// One piece of host state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Knob {
    /// The persistent pages of a hugetlb pool, all NUMA nodes together: a count.
    Pool(PageSize),
    /// Something that is set: a word.
    Switch(Switch),
}

impl Knob {
    /// The file that sets it.
    pub fn path(self, host: &Host) -> PathBuf {
        match self {
            Knob::Pool(page) => pool::directory(host, page).join("nr_hugepages"),
            Knob::Switch(switch) => switch.path(host),
        }
    }

    /// Its value now.
    fn read(self, host: &Host) -> Result<Value, Error> {
        match self {
            Knob::Pool(page) => Pool::read(host, page).map(|pool| Value::Count(pool.persistent())),
            Knob::Switch(switch) => switch.state(host).map(Value::Word),
        }
    }

    /// Sets it, which is called `operation` if it fails; what was got must be read back.
    fn write(self, host: &Host, value: &Value, operation: &'static str) -> Result<(), Error> {
        match self {
            Knob::Switch(Switch::NestedPaging) => module::write(host, &value.to_string()),
            Knob::Pool(_) | Knob::Switch(_) => {
                let path = self.path(host);
                host.kernel.write(&path, &value.to_string()).map_err(|e| Error::io(operation, &path, e))
            }
        }
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Knob::Pool(page) => write!(f, "pool of {} pages", page.prose()),
            Knob::Switch(switch) => write!(f, "{switch}"),
        }
    }
}
