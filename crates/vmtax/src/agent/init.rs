//! Process 1 of a guest: makes the file systems that Linux programs expect, loads the modules of the image, starts what the
//! kernel's command line asks for, reaps whatever ends, and powers off when that has ended.
//!
//! | parameter | meaning |
//! |---|---|
//! | `vmtax.mode=agent` | run the agent |
//!
//! One more mode is one more variant of [`Mode`]: what it names is started, and its end powers the guest off.

use std::{
    fs,
    path::Path,
    process::{Command, ExitCode},
    thread,
    time::Duration,
};

use anyhow::Context;
use rustix::{
    io::Errno,
    mount::{MountFlags, mount},
    process::{WaitOptions, getpid, wait},
    system::{RebootCommand, reboot},
};

use super::{modprobe, serve};
use crate::{
    image::initramfs::{MANIFEST, Manifest},
    output,
};

/// Where init leaves the modules that would not load, a line each, for the agent to tell.
pub const UNLOADED: &str = "/run/modules.unloaded";

/// What init prints first; the host takes it for a sign that user space has begun.
pub const BANNER: &str = "vmtax init";

/// What a guest runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The agent of this binary.
    Agent,
}

impl Mode {
    /// As the kernel's command line has it.
    pub const fn parameter(self) -> &'static str {
        match self {
            Mode::Agent => "vmtax.mode=agent",
        }
    }

    fn of(command_line: &str) -> Option<Mode> {
        let words: Vec<&str> = command_line.split_whitespace().collect();
        [Mode::Agent].into_iter().find(|mode| words.contains(&mode.parameter()))
    }

    fn command(self) -> Command {
        let mut command = Command::new("/init");
        match self {
            Mode::Agent => command.arg(serve::ARGUMENT),
        };
        command
    }
}

/// What is mounted, in this order.
const FILE_SYSTEMS: [(&str, &str); 6] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("devpts", "/dev/pts"),
    ("tmpfs", "/run"),
    ("tmpfs", "/tmp"),
];

/// Runs the init if this is process 1 of an image of ours. Process 1 of a container is not.
pub fn dispatch() -> Option<ExitCode> {
    if getpid().as_raw_nonzero().get() != 1 || !Path::new(MANIFEST).exists() {
        return None;
    }
    output::note(format_args!("{BANNER} {}", env!("CARGO_PKG_VERSION")));
    if let Err(error) = run() {
        output::note(format_args!("vmtax init: {error:#}"));
    }
    Some(power_off())
}

fn run() -> anyhow::Result<()> {
    for (kind, place) in FILE_SYSTEMS {
        fs::create_dir_all(place)?;
        // A kernel may have mounted /dev by itself (CONFIG_DEVTMPFS_MOUNT).
        match mount(kind, place, kind, MountFlags::empty(), None) {
            Ok(()) | Err(Errno::BUSY) => {}
            Err(e) => return Err(e).with_context(|| format!("cannot mount {place}")),
        }
    }
    load_modules()?;
    let command_line = fs::read_to_string("/proc/cmdline").context("cannot read /proc/cmdline")?;
    let mode = Mode::of(&command_line).context("the kernel's command line has no vmtax.mode that is known here")?;
    let child = mode.command().env_clear().env("HOME", "/").current_dir("/").spawn().context("cannot start /init")?;
    reap_until(child.id())
}

/// What fails is told and passed over: a module for hardware that this machine lacks is no obstacle.
fn load_modules() -> anyhow::Result<()> {
    let manifest: Manifest = serde_json::from_slice(&fs::read(MANIFEST)?).context("cannot read the manifest")?;
    let mut failed = String::new();
    for name in manifest.modules {
        if let Err(error) = modprobe::load(&name, &modprobe::parameters(&name)) {
            output::note(format_args!("vmtax init: cannot load {name}: {error}"));
            failed.push_str(&format!("{name}: {error}\n"));
        }
    }
    fs::write(UNLOADED, failed).context("cannot write in /run")
}

/// Waits for every process that ends, as init must, until the one with this id has.
fn reap_until(child: u32) -> anyhow::Result<()> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, _))) if pid.as_raw_nonzero().get() == child as i32 => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait"),
        }
    }
}

/// Ends the machine. Nothing has to be written back: no disk is mounted.
fn power_off() -> ExitCode {
    if let Err(error) = reboot(RebootCommand::PowerOff) {
        output::note(format_args!("vmtax init: cannot power off: {error}"));
    }
    // A machine without a power switch; the end of process 1 would be a panic. The host ends it.
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_read_from_the_command_line() {
        assert_eq!(Mode::of("console=ttyS0 vmtax.mode=agent panic=-1\n"), Some(Mode::Agent));
        assert_eq!(Mode::of("console=ttyS0 vmtax.mode=agents"), None);
        assert_eq!(Mode::of(""), None);
    }
}
