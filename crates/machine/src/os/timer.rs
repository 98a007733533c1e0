//! A loop ended by a timer: nothing in it but the work and a look at a flag.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::Count;

static TIME_IS_UP: AtomicBool = AtomicBool::new(false);

/// Counts operations until the time is up. One that the timer interrupts (EINTR) ends the loop and does not count.
pub(super) fn count(time: Duration, mut operation: impl FnMut() -> io::Result<u64>) -> io::Result<Count> {
    set(time)?;
    let begin = Instant::now();
    let mut operations = 0;
    while !TIME_IS_UP.load(Ordering::Relaxed) {
        match operation() {
            Ok(done) => operations += done,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => break,
            Err(error) => return Err(error),
        }
    }
    Ok(Count { operations, elapsed: begin.elapsed() })
}

/// Sets the timer, once in the life of a process. Without SA_RESTART: a call that waits for another process must end.
fn set(time: Duration) -> io::Result<()> {
    extern "C" fn note(_: libc::c_int) {
        TIME_IS_UP.store(true, Ordering::Relaxed);
    }
    // SAFETY: an all-zero sigaction is a valid one, without flags and with an empty mask.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = note as extern "C" fn(libc::c_int) as usize;
    // SAFETY: the handler only stores to an atomic, which is safe in a signal handler.
    if unsafe { libc::sigaction(libc::SIGALRM, &action, core::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // Again every 10 ms: a first signal may come between the look at the flag and a call that waits.
    let again = libc::timeval { tv_sec: 0, tv_usec: 10_000 };
    let first = libc::timeval { tv_sec: time.as_secs() as libc::time_t, tv_usec: time.subsec_micros().into() };
    let timer = libc::itimerval { it_interval: again, it_value: first };
    // SAFETY: the pointer is to a timer of ours.
    match unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, core::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
