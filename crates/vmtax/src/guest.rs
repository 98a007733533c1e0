//! The venue `guest`, as far as it stands alone: a complete Linux under QEMU, booted from an [`image`](crate::image),
//! asked through its [`agent`](crate::agent), and gone afterwards.
//!
//! ```text
//!   vmtax ──socket── keeper ──child── QEMU ─── guest
//!     │                │                │
//!     │                └ private directory: initrd, qmp, agent, console (sockets on which vmtax listens)
//!     └ [`Guest`]: boot, ask, shut down; each step within its [`Patience`]
//! ```
//!
//! [`machine`] says what QEMU is told, as a pure function; [`keeper`] sees to it that nothing outlives vmtax; [`console`] keeps
//! the end of what the guest said; [`qmp`] asks QEMU; [`evidence`] is what was observed.
//!
//! The guest is not trusted. Whatever it sends is bounded in size and time; when it breaks a rule, the guest ends, with a
//! message that says which, and the run goes on.

pub mod boot;
pub mod command;
pub mod console;
pub mod directory;
pub mod domain;
pub mod error;
pub mod evidence;
pub mod keeper;
pub mod line;
pub mod link;
pub mod machine;
pub mod pace;
pub mod place;
pub mod port;
pub mod qmp;
pub mod stream;
pub mod talk;

pub use boot::{Guest, Patience, Timing};
pub use error::GuestError;
pub use machine::{Accel, Machine};
