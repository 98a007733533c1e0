//! Everything that touches this machine, and the only `unsafe`.

pub mod arena;
pub mod backing;
pub mod bloat;
pub mod clock;
pub mod facts;
pub mod folio;
pub mod fragmentation;
pub mod interference;
pub mod kick;
pub mod knob;
pub mod lane;
pub mod microvm;
pub mod mthp;
pub mod os;
pub mod probe;
pub mod process;
pub mod reserve;
pub mod rights;
pub mod tap;
pub mod usage;

pub use kvm_ioctls::Kvm;

/// Plays the part this process was started for, if it was started by this crate: a guardian of the host's knobs, an
/// attempt at huge pages, or a test of the operating system. The first statement of every `main` that acquires a lease, asks for rights or runs such a test.
pub fn dispatch() -> Option<std::process::ExitCode> {
    knob::guardian::dispatch().or_else(rights::dispatch).or_else(os::dispatch)
}
