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

pub use kvm_ioctls::Kvm;
