//! Why there is no guest, or no answer from it.

use std::{io, path::PathBuf, time::Duration};

use vmtax_machine::tap::TapError;

use super::{domain::DomainError, machine::Accel};
use crate::{agent::frame::FrameError, image::ImageError};

/// What went wrong with a guest. Of the texts that it carries, those that a guest wrote are printable.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// Nothing to boot.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// No machine like a domain of libvirt's.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// No network for it.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// A machine that cannot be.
    #[error("cannot make the guest: {0}")]
    Machine(String),
    /// What was observed of it contradicts the machine that was asked for.
    #[error("the guest is not as asked for: {0}")]
    Contradiction(String),
    /// No QEMU.
    #[error("cannot start a guest: there is no {}", .0.display())]
    NoQemu(PathBuf),
    /// This host's end failed.
    #[error("cannot {operation}")]
    Host {
        /// What was tried.
        operation: String,
        /// Why not.
        source: io::Error,
    },
    /// QEMU ended by itself before its guest ran.
    #[error("QEMU ended with {status}: {reason}")]
    Qemu {
        /// How.
        status: String,
        /// What it said last.
        reason: String,
    },
    /// Nothing on the console.
    #[error("the guest gave no sign of life under {} within {} s{}", .accel.name(), .after.as_secs_f64(), emulation(.emulated))]
    NoSign {
        /// What executes it.
        accel: Accel,
        /// How long it was waited for.
        after: Duration,
        /// Instructions that KVM has executed in software meanwhile, where it counts them.
        emulated: Option<u64>,
    },
    /// It said nothing in time.
    #[error("the guest did not answer {asked} within {} s{console}", .after.as_secs_f64())]
    Silent {
        /// What was asked.
        asked: &'static str,
        /// How long it had.
        after: Duration,
        /// The end of its console.
        console: Tail,
    },
    /// It ended.
    #[error("the guest ended {during}{console}")]
    Died {
        /// What was going on.
        during: &'static str,
        /// The end of its console.
        console: Tail,
    },
    /// It broke the rules of the conversation.
    #[error("the guest broke the protocol: {0}")]
    Protocol(String),
    /// It could not do what was asked, and said why.
    #[error("in the guest: {0}")]
    Refused(String),
}

/// The last lines of a console, on lines of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tail(pub Vec<String>);

impl std::fmt::Display for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0[..] {
            [] => f.write_str("; its console is empty"),
            lines => {
                f.write_str("; the end of its console:")?;
                lines.iter().try_for_each(|line| write!(f, "\n  | {line}"))
            }
        }
    }
}

/// KVM in software executes a kernel's instructions one by one, some thousand a second.
fn emulation(instructions: &Option<u64>) -> String {
    let text = |n: &u64| format!("; KVM executed {n} instructions for it, in software");
    instructions.as_ref().filter(|n| **n > 0).map(text).unwrap_or_default()
}

impl GuestError {
    /// The way out.
    pub fn remedy(&self) -> Option<String> {
        match self {
            GuestError::Image(error) => error.remedy(),
            GuestError::Tap(error) => error.remedy(),
            GuestError::Domain(error) => error.remedy(),
            GuestError::Machine(_)
            | GuestError::Contradiction(_)
            | GuestError::Host { .. }
            | GuestError::Protocol(_)
            | GuestError::Refused(_) => None,
            GuestError::NoQemu(_) => Some("sudo apt-get install qemu-system-x86, or name one: --qemu FILE".to_owned()),
            GuestError::Qemu { reason, .. } => qemu_remedy(reason),
            GuestError::NoSign { accel: Accel::Kvm, .. } => Some(
                "this host's KVM may be one in software (vmtax doctor), which runs no kernel in useful time;\n      \
                 emulate the processor instead: --accel tcg (its times mean nothing)"
                    .to_owned(),
            ),
            GuestError::NoSign { accel: Accel::Tcg, .. } => {
                Some("is the kernel for x86-64, and has it a console on ttyS0? vmtax image kernel".to_owned())
            }
            GuestError::Silent { console, .. } | GuestError::Died { console, .. } => console_remedy(console),
        }
    }

    /// Whether nothing ran: the machine cannot be, or this host lacks what it takes.
    pub fn is_refusal(&self) -> bool {
        match self {
            GuestError::Image(_) | GuestError::Domain(_) | GuestError::Tap(_) => true,
            GuestError::Machine(_) | GuestError::NoQemu(_) => true,
            GuestError::Qemu { .. } | GuestError::NoSign { .. } => true,
            GuestError::Host { .. }
            | GuestError::Contradiction(_)
            | GuestError::Silent { .. }
            | GuestError::Died { .. }
            | GuestError::Protocol(_)
            | GuestError::Refused(_) => false,
        }
    }

    /// An error of this host: what was tried, and why not.
    pub fn host(operation: impl Into<String>, source: io::Error) -> GuestError {
        GuestError::Host { operation: operation.into(), source }
    }
}

impl From<FrameError> for GuestError {
    fn from(error: FrameError) -> GuestError {
        GuestError::Protocol(error.to_string())
    }
}

/// What QEMU's last words call for.
fn qemu_remedy(reason: &str) -> Option<String> {
    let table = [
        ("could not load PC BIOS", "install QEMU's firmware: sudo apt-get install seabios"),
        ("rom file", "install QEMU's firmware: sudo apt-get install ipxe-qemu seabios"),
        ("Could not access KVM", "use the right of the group kvm, or emulate: --accel tcg"),
        ("failed to initialize kvm", "emulate the processor: --accel tcg (its times mean nothing)"),
        ("failed to set MSR", "this KVM is incomplete; emulate the processor: --accel tcg (its times mean nothing)"),
        ("not enough free huge", "reserve pages first: sudo vmtax matrix --reserve"),
        ("unable to map backing store", "the pool of huge pages is too small: see vmtax doctor"),
        ("Cannot allocate memory", "less memory for the guest, or a larger pool: see vmtax doctor"),
        ("-sandbox", "a QEMU built with seccomp: sudo apt-get install qemu-system-x86"),
        ("Property ", "a newer QEMU (7.0 or later): --qemu FILE"),
        ("Failed to get", "its disk is in use: shut down the machine that has it open"),
        ("vhost char device", "sudo modprobe vhost_net, or have QEMU serve the card: vhost off"),
    ];
    table.into_iter().find(|(words, _)| reason.contains(words)).map(|(_, remedy)| remedy.to_owned())
}

fn console_remedy(console: &Tail) -> Option<String> {
    let says = |words: &str| console.0.iter().any(|line| line.contains(words));
    if says("no virtio-serial port") {
        return Some(
            "a kernel with virtio or a second serial port: vmtax image kernel, or name its modules: --modules DIR"
                .to_owned(),
        );
    }
    if says("No working init") || says("Failed to execute /init") || says("nable to mount root fs") {
        return Some(
            "the kernel did not take the initramfs: it needs CONFIG_BLK_DEV_INITRD, and 64-bit ELF".to_owned(),
        );
    }
    if says("Out of memory") || says("out of memory") || says("write error") {
        return Some("give the guest more memory: --memory 1G".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_console_is_told_from_none() {
        assert_eq!(Tail::default().to_string(), "; its console is empty");
        let tail = Tail(vec!["one".to_owned(), "two".to_owned()]);
        assert_eq!(tail.to_string(), "; the end of its console:\n  | one\n  | two");
    }

    #[test]
    fn each_end_of_qemu_that_was_seen_has_a_way_out() {
        let check = |reason: &str, word: &str| {
            let error = GuestError::Qemu { status: "exit status: 1".to_owned(), reason: reason.to_owned() };
            let remedy = error.remedy().unwrap();
            assert!(remedy.contains(word), "{remedy}");
        };
        check("qemu: could not load PC BIOS 'bios-256k.bin'", "seabios");
        check("Could not access KVM kernel module: Permission denied", "tcg");
        check("error: failed to set MSR 0x10a to 0x0", "tcg");
        check("tap: open vhost char device failed: No such file or directory", "modprobe vhost_net");
        check("unable to map backing store for guest RAM: Cannot allocate memory", "pool");
        check("Property 'pc-q35-5.2-machine.memory-backend' not found", "newer QEMU");
    }
}
