//! The machine that a guest runs on, and the words in which QEMU is told to make it.
//!
//! Everything is said: no defaults of QEMU, of its configuration files or of a distribution decide anything. Paths of our own
//! are relative to the private directory in which QEMU runs, so the words depend on nothing but the machine.
//!
//! The board is q35: a microvm would boot sooner, but emulated it has no timer that Debian's kernel can calibrate by, and stops.
//!
//! Host memory by backing:
//!
//! | backing | how | why so |
//! |---|---|---|
//! | `4k` | anonymous; transparent huge pages ruled out for the process before QEMU starts | QEMU advises its memory to be huge, with no option against it; memory of memfd would be another kind than `thp`'s |
//! | `thp` | anonymous, as QEMU advises it | |
//! | `2m`, `1g` | memfd from the pool | needs no mount of hugetlbfs |
//!
//! Unless said otherwise it is populated before the guest starts; it is never merged with other guests' memory, and left out of core dumps.

use std::path::{Path, PathBuf};

use vmtax_core::{
    setting::Backing,
    units::{Bytes, MIB},
};

use super::GuestError;
use crate::agent::port;

/// What executes the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accel {
    /// The processor, by /dev/kvm.
    Kvm,
    /// QEMU's emulation of a processor: works anywhere, and its times mean nothing.
    Tcg,
}

impl Accel {
    /// `kvm` or `tcg`.
    pub const fn name(self) -> &'static str {
        match self {
            Accel::Kvm => "kvm",
            Accel::Tcg => "tcg",
        }
    }

    const fn argument(self) -> &'static str {
        match self {
            Accel::Kvm => "kvm",
            Accel::Tcg => "tcg,thread=multi",
        }
    }

    /// The processor that shows most of what there is.
    const fn cpu(self) -> &'static str {
        match self {
            Accel::Kvm => "host",
            Accel::Tcg => "max",
        }
    }
}

/// Who moves packets between the guest and its tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vhost {
    /// A thread of the host's kernel.
    On,
    /// QEMU.
    Off,
}

/// A network card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Net {
    /// To nowhere but QEMU itself; needs no right.
    User,
    /// To a tap device. It is QEMU's standard input, and so goes with QEMU unless an administrator made it.
    Tap {
        /// The name of one that exists; none for a new one, which needs CAP_NET_ADMIN.
        name: Option<String>,
        /// Who serves it.
        vhost: Vhost,
    },
}

/// May it be written to?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(test), expect(dead_code, reason = "levels of factors that plans do not vary yet"))]
pub enum Access {
    /// No.
    ReadOnly,
    /// Yes.
    ReadWrite,
}

/// A disk, from a file in raw format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The file.
    pub file: PathBuf,
    /// Whether the guest may change it.
    pub access: Access,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The program: a name on PATH, or a path.
    pub qemu: PathBuf,
    /// QEMU's name of the board, such as `q35`.
    pub board: String,
    /// What executes the guest.
    pub accel: Accel,
    /// QEMU's name of the processor; none for the fullest that the accelerator offers.
    pub cpu: Option<String>,
    /// Processors.
    pub vcpus: u32,
    /// Memory; whole MiB, and whole pages of the backing.
    pub memory: Bytes,
    /// What its memory stands on, on the host.
    pub backing: Backing,
    /// Its network card, if any.
    pub net: Option<Net>,
    /// Its disks.
    pub disks: Vec<Disk>,
    /// Further words for the kernel's command line, after all others.
    pub append: String,
    /// When its memory is taken from the host.
    pub populated: Populated,
    /// Further words for QEMU, after all others.
    pub extra: Vec<String>,
}

/// When a guest's memory is taken from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Populated {
    /// Before it starts, so that no first touch on the host's side falls into a trial.
    Before,
    /// As the guest touches it: for a guest in which nothing is measured that depends on it.
    OnTouch,
}

/// What it boots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// The kernel.
    pub kernel: PathBuf,
    /// The initramfs.
    pub initrd: PathBuf,
    /// The kernel's command line.
    pub command_line: String,
}

impl Machine {
    /// The plainest machine: one disk-less board with what the agent needs.
    pub fn new(accel: Accel) -> Machine {
        Machine {
            qemu: "qemu-system-x86_64".into(),
            board: "q35".to_owned(),
            accel,
            cpu: None,
            vcpus: 1,
            memory: Bytes(512 * MIB),
            backing: Backing::Thp,
            net: None,
            disks: Vec::new(),
            append: String::new(),
            populated: Populated::Before,
            extra: Vec::new(),
        }
    }

    /// Refuses memory that no backing could hold.
    pub fn check(&self) -> Result<(), GuestError> {
        let unit = self.backing.page().bytes().max(MIB);
        match (self.memory.0, self.vcpus) {
            (0, _) | (_, 0) => Err(GuestError::Machine("a guest needs memory and a vCPU".to_owned())),
            (memory, _) if memory % unit != 0 => Err(GuestError::Machine(format!(
                "memory of {} is no multiple of {}, which {} backing needs",
                self.memory,
                Bytes(unit),
                self.backing.name()
            ))),
            _ => Ok(()),
        }
    }

    /// The words that make QEMU this machine.
    pub fn arguments(&self, load: &Load) -> Vec<String> {
        let mut words = Words::default();
        words.flag("-no-user-config").flag("-nodefaults").flag("-no-reboot");
        words.pair("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
        words.pair("-name", "vmtax,debug-threads=on");
        words.pair("-display", "none");
        words.pair("-machine", format!("{},memory-backend=ram,mem-merge=off,dump-guest-core=off", self.board));
        words.pair("-accel", self.accel.argument());
        words.pair("-cpu", self.cpu.as_deref().unwrap_or(self.accel.cpu()));
        words.pair("-smp", self.vcpus.to_string());
        words.pair("-m", format!("{}M", self.memory.0 / MIB));
        words.pair("-object", self.ram());
        words.pair("-kernel", load.kernel.display().to_string());
        words.pair("-initrd", load.initrd.display().to_string());
        words.pair("-append", load.command_line.clone());
        words.pair("-chardev", format!("socket,id=qmp,path={QMP}")).pair("-mon", "chardev=qmp,mode=control");
        words.pair("-chardev", format!("socket,id=console,path={CONSOLE}")).pair("-serial", "chardev:console");
        words.pair("-device", self.device("virtio-serial"));
        words.pair("-chardev", format!("socket,id=agent,path={AGENT}"));
        words.pair("-device", format!("virtserialport,chardev=agent,name={}", port::NAME));
        words.pair("-chardev", format!("socket,id=serial,path={SERIAL}"));
        words.pair("-device", "isa-serial,chardev=serial,index=1");
        if let Some(net) = &self.net {
            words
                .pair("-netdev", netdev(net))
                .pair("-device", self.device("virtio-net") + ",netdev=net" + self.no_rom());
        }
        for (nth, disk) in self.disks.iter().enumerate() {
            let mode = match disk.access {
                Access::ReadOnly => "on",
                Access::ReadWrite => "off",
            };
            let file = escaped(&disk.file);
            words.pair("-blockdev", format!("driver=file,node-name=disk{nth},read-only={mode},filename={file}"));
            words.pair("-device", format!("{},drive=disk{nth}", self.device("virtio-blk")));
        }
        words.0.extend(self.extra.iter().cloned());
        words.0
    }

    fn ram(&self) -> String {
        let prealloc = match self.populated {
            Populated::Before => "on",
            Populated::OnTouch => "off",
        };
        let common = format!("id=ram,size={}M,prealloc={prealloc},merge=off,dump=off", self.memory.0 / MIB);
        match self.backing {
            Backing::Small | Backing::Thp => format!("memory-backend-ram,{common}"),
            Backing::Huge2m => format!("memory-backend-memfd,{common},hugetlb=on,hugetlbsize=2M"),
            Backing::Huge1g => format!("memory-backend-memfd,{common},hugetlb=on,hugetlbsize=1G"),
        }
    }

    /// A virtio device as this board takes it: on PCI, or in memory where a microvm has no PCI.
    fn device(&self, name: &str) -> String {
        if self.is_without_pci() { format!("{name}-device") } else { format!("{name}-pci") }
    }

    /// No boot from the network, and so no firmware file for it.
    fn no_rom(&self) -> &'static str {
        if self.is_without_pci() { "" } else { ",romfile=" }
    }

    fn is_without_pci(&self) -> bool {
        self.board.starts_with("microvm") && !self.board.contains("pcie=on")
    }
}

/// The sockets on which vmtax listens, in the private directory.
pub const QMP: &str = "qmp";
/// The agent's.
pub const AGENT: &str = "agent";
/// The agent's too, where its kernel has no virtio.
pub const SERIAL: &str = "serial";
/// The console's.
pub const CONSOLE: &str = "console";
/// The initramfs.
pub const INITRD: &str = "initrd";

fn netdev(net: &Net) -> String {
    match net {
        Net::User => "user,id=net,restrict=on".to_owned(),
        // Without force QEMU would serve the card itself where it cannot have the kernel do it.
        Net::Tap { vhost: Vhost::On, .. } => "tap,id=net,fd=0,vhost=on,vhostforce=on".to_owned(),
        Net::Tap { vhost: Vhost::Off, .. } => "tap,id=net,fd=0,vhost=off".to_owned(),
    }
}

/// QEMU separates by commas, and takes two for one.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn flag(&mut self, word: &str) -> &mut Self {
        self.0.push(word.to_owned());
        self
    }

    fn pair(&mut self, option: &str, value: impl Into<String>) -> &mut Self {
        self.0.extend([option.to_owned(), value.into()]);
        self
    }
}

#[cfg(test)]
mod tests;
