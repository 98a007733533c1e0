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
//! One more knob is one more variant of [`Knob`]: the compiler then asks for its file, its values and its rule.
//!
//! The lock and the journal exclude and protect within one `/run`. Containers with a `/run` of their own share the
//! kernel's pools all the same; the rule of [`restore()`] still takes from a pool only what was borrowed.

mod error;
pub mod guardian;
mod host;
mod journal;
mod lease;
mod lock;
mod pool;
mod restore;

#[cfg(test)]
mod fake;

use std::{fmt, io, path::PathBuf};

use serde::{Deserialize, Serialize};
use vmtax_core::units::PageSize;

pub use error::Error;
pub use host::{Host, Kernel, Sysfs};
pub use lease::{Grant, Lease};
pub use lock::{Contention, check_free};
pub use pool::{Pool, Want, check_memory};
pub use restore::{Outcome, Verdict, is_left_changed, restore};

/// One piece of host state. Its value is a number; a knob that takes words numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Knob {
    /// The persistent pages of a hugetlb pool, all NUMA nodes together.
    Pool(PageSize),
}

impl Knob {
    /// The file that sets it.
    fn path(self, host: &Host) -> PathBuf {
        match self {
            Knob::Pool(page) => pool::directory(host, page).join("nr_hugepages"),
        }
    }

    /// Its value now.
    fn read(self, host: &Host) -> Result<u64, Error> {
        match self {
            Knob::Pool(page) => Pool::read(host, page).map(|pool| pool.persistent()),
        }
    }

    /// Sets it; what was got must be read back.
    fn write(self, host: &Host, value: u64) -> io::Result<()> {
        match self {
            Knob::Pool(_) => host.kernel.write(&self.path(host), &value.to_string()),
        }
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Knob::Pool(page) => write!(f, "pool of {} pages", page.prose()),
        }
    }
}
