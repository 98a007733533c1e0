//! Processes made by `fork`, which end at once and are waited for.

use std::{io, time::Duration};

use super::{Count, timer};

pub(super) fn count(time: Duration) -> io::Result<Count> {
    timer::count(time, || {
        // SAFETY: this process has one thread, and its child does nothing but end.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: ends the child without running anything of its parent's.
            0 => unsafe { libc::_exit(0) },
            child => wait(child).map(|()| 1),
        }
    })
}

/// Waits for a child that must have ended well; again where the timer interrupts.
pub(super) fn wait(child: libc::pid_t) -> io::Result<()> {
    let mut status = 0;
    loop {
        // SAFETY: the pointer is to an integer of ours.
        if unsafe { libc::waitpid(child, &mut status, 0) } == child {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    if status == 0 { Ok(()) } else { Err(io::Error::other(format!("a child ended with wait status {status:#x}"))) }
}
