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
pub mod probe;
pub mod reserve;
pub mod rights;
pub mod tap;
pub mod usage;

pub use kvm_ioctls::Kvm;

/// Plays the part this process was started for, if it was started by this crate: a guardian of the host's knobs, or an
/// attempt at huge pages. The first statement of every `main` that acquires a lease or asks for rights.
pub fn dispatch() -> Option<std::process::ExitCode> {
    knob::guardian::dispatch().or_else(rights::dispatch)
}
