//! Calls vCPUs out of the guest: a signal to their thread makes `KVM_RUN` return with EINTR.
//!
//! A guest that never comes back would otherwise keep its thread for ever, as neither Ctrl-C, which reaches another thread,
//! nor a flag is seen inside `KVM_RUN`. A kick between the thread's look at its flag and its entry is lost, so whoever kicks
//! does it again until the thread has ended.

use std::{
    sync::{Mutex, MutexGuard, Once, PoisonError},
    time::Duration,
};

/// The signal: SIGUSR1, which means nothing else here.
const SIGNAL: libc::c_int = libc::SIGUSR1;

/// Threads that may be in a guest. A thread is in the list for as long as its [`Registration`] lives.
static RUNNING: Mutex<Vec<libc::pthread_t>> = Mutex::new(Vec::new());

/// How long so many accesses may take at the very most: twice what a first touch was seen to take in a guest on an emulated
/// host under load, and a minute.
pub fn patience(accesses: u64) -> Duration {
    Duration::from_secs(60) + Duration::from_micros(200) * accesses.try_into().unwrap_or(u32::MAX)
}

/// Keeps the current thread in the list of those that are kicked.
#[derive(Debug)]
pub struct Registration {
    thread: libc::pthread_t,
}

/// Puts the current thread into the list.
pub fn register() -> Registration {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(install_handler);
    // SAFETY: has no preconditions.
    let thread = unsafe { libc::pthread_self() };
    running().push(thread);
    Registration { thread }
}

impl Drop for Registration {
    fn drop(&mut self) {
        running().retain(|thread| *thread != self.thread);
    }
}

/// Kicks all of them once.
pub fn all() {
    for thread in running().iter() {
        // SAFETY: a thread takes itself off the list, under the same lock, before it ends.
        unsafe { libc::pthread_kill(*thread, SIGNAL) };
    }
}

fn running() -> MutexGuard<'static, Vec<libc::pthread_t>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Without SA_RESTART, so that the system call is interrupted; ignoring the signal would not interrupt it.
fn install_handler() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: an all-zero sigaction is a valid one: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = nothing as *const () as usize;
    // SAFETY: the handler does nothing, which is safe at any moment.
    let installed = unsafe { libc::sigaction(SIGNAL, &action, core::ptr::null_mut()) };
    assert_eq!(installed, 0, "SIGUSR1 can be handled");
}
