//! Compaction of all memory: an action, not a knob. There is nothing to put back.

use std::time::{Duration, Instant};

use super::{Error, Host};

/// Lets the kernel move pages together in every zone, now, and returns how long it took.
///
/// # Errors
/// The kernel was built without compaction, or this process may not ask for it.
pub fn compact(host: &Host) -> Result<Duration, Error> {
    let path = host.proc.join("sys/vm/compact_memory");
    let start = Instant::now();
    host.kernel.write(&path, "1").map_err(|e| Error::io("write", &path, e))?;
    Ok(start.elapsed())
}
