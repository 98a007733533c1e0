//! The part of vmtax that runs inside a guest: the init that its kernel starts, and the agent that the host talks to.
//!
//! ```text
//!   kernel ──► /init (pid 1, [`init`])                mounts, modules, reaping, power off
//!                └─ /init __agent ([`serve`])          answers one request after another
//!                     │ /dev/vport*p1, virtio-serial   [`frame`]: u32 length, JSON ([`message`])
//!                     │ (or /dev/ttyS1: [`port`])
//!                     ▼
//!                   vmtax on the host (`crate::guest`)
//! ```
//!
//! Init and agent are two processes: what goes wrong in a trial ends the agent, and init still powers the guest off. A
//! panic in process 1 would be a panic of the kernel. Where programs come with the guest, on a disk, the agent and all that it
//! starts live there ([`world`]); init stays behind.

pub mod blob;
mod file;
pub mod frame;
pub mod init;
pub mod message;
mod modprobe;
mod place;
pub mod port;
mod run;
mod serve;
mod trial;
mod world;

use std::process::ExitCode;

/// Plays init or agent, if this process was started as one of them. Near the beginning of `main`.
pub fn dispatch() -> Option<ExitCode> {
    init::dispatch().or_else(serve::dispatch).or_else(modprobe::dispatch)
}
