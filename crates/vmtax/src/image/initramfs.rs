//! The file system in memory from which a guest starts: this program as its init, the modules, and what the init must know.
//!
//! ```text
//!   /init                  this program, without what is not loaded of it
//!   /dev/console           what init prints goes to the serial port
//!   /sbin/modprobe         a link to it
//!   /vmtax/manifest.json   [`Manifest`]
//!   /vmtax/modules/*.ko    plain
//!   /vmtax/kernel          the kernel again, in a host that has QEMU: its guests boot it too
//! ```
//!
//! Programs, if it has any, are on a disk ([`Root`](super::Root)), which the agent enters.

use std::{fs, path::Path};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    ImageError, Kernel,
    cpio::Archive,
    elf,
    module::{BUILT_IN, Module, Modules},
};

/// Where the manifest is.
pub const MANIFEST: &str = "/vmtax/manifest.json";
/// Where the modules are.
pub const MODULES: &str = "/vmtax/modules";
/// Where the kernel is, in a host that has programs.
pub const KERNEL: &str = "/vmtax/kernel";
/// The first disk.
const DISK: &str = "/dev/vda";
/// Modules by which the disk with programs is mounted.
const MOUNTING: [&str; 3] = ["virtio_blk", "squashfs", "overlay"];

/// What a guest is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Trials run in it.
    Guest,
    /// It is a host: guests run in it.
    Host,
}

impl Role {
    /// Modules without which nobody reaches it.
    const fn needed(self) -> &'static [&'static str] {
        match self {
            Role::Guest | Role::Host => &["virtio_pci", "virtio_console"],
        }
    }

    /// Modules that are loaded where there are such.
    const fn useful(self) -> &'static [&'static str] {
        match self {
            Role::Guest => &["virtio_blk", "virtio_net"],
            Role::Host => {
                &["virtio_blk", "virtio_net", "irqbypass", "kvm", "kvm_amd", "kvm_intel", "tun", "tap", "vhost_net"]
            }
        }
    }
}

/// What the init of a guest is told by its image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// SHA-256 of `/init`, in hexadecimal.
    pub init: String,
    /// Names of modules, in the order in which they are loaded.
    pub modules: Vec<String>,
    /// The disk on which programs are, if there is one.
    pub root: Option<String>,
}

/// An initramfs, uncompressed.
#[derive(Debug, Clone)]
pub struct Initramfs {
    /// The archive.
    pub bytes: Vec<u8>,
    /// What it says of itself.
    pub manifest: Manifest,
}

impl Initramfs {
    /// One for `kernel`, with this program inside and no other.
    pub fn build(kernel: &Kernel, role: Role) -> Result<Initramfs, ImageError> {
        let modules = modules(kernel, role.needed(), role.useful())?;
        Ok(Initramfs::of(&own_program()?, modules, &Rest::Nothing))
    }

    /// One that finds programs on its first disk, a [`Root`](super::Root).
    pub fn with_programs(kernel: &Kernel, role: Role) -> Result<Initramfs, ImageError> {
        let needed = [role.needed(), &MOUNTING].concat();
        let modules = modules(kernel, &needed, role.useful())?;
        let rest = match role {
            Role::Guest => Rest::Programs,
            Role::Host => Rest::Guests { kernel: contents(&kernel.image)?, built_in: built_in(kernel)? },
        };
        Ok(Initramfs::of(&own_program()?, modules, &rest))
    }

    /// One of these parts; the same bytes for the same parts.
    fn of(program: &[u8], modules: Vec<Module>, rest: &Rest) -> Initramfs {
        let names = modules.iter().map(|module| module.name.clone()).collect();
        let root = match rest {
            Rest::Nothing => None,
            Rest::Programs | Rest::Guests { .. } => Some(DISK.to_owned()),
        };
        let manifest = Manifest { init: hexadecimal(&Sha256::digest(program)), modules: names, root };
        let mut archive = Archive::default();
        for directory in ["dev", "proc", "sys", "run", "tmp", "sbin", "vmtax", "vmtax/modules"] {
            archive.directory(directory);
        }
        archive.character("dev/console", 5, 1);
        archive.file("init", 0o755, program);
        archive.link("sbin/modprobe", "/init");
        let text = serde_json::to_vec(&manifest).expect("names and a hash are JSON");
        archive.file(&MANIFEST[1..], 0o644, &text);
        for module in &modules {
            archive.file(&format!("{}/{}.ko", &MODULES[1..], module.name), 0o644, &module.bytes);
        }
        match rest {
            Rest::Nothing | Rest::Programs => {}
            Rest::Guests { kernel, built_in } => {
                archive.file(&KERNEL[1..], 0o644, kernel);
                archive.file(&format!("{}/{BUILT_IN}", &MODULES[1..]), 0o644, built_in);
            }
        }
        Initramfs { bytes: archive.finish(), manifest }
    }
}

/// What there is beside this program.
#[derive(Debug)]
enum Rest {
    Nothing,
    /// A disk.
    Programs,
    /// A disk with QEMU, and what its guests boot.
    Guests {
        kernel: Vec<u8>,
        built_in: Vec<u8>,
    },
}

fn own_program() -> Result<Vec<u8>, ImageError> {
    let own = "/proc/self/exe";
    elf::loaded_part(&contents(own)?).map_err(|e| ImageError::file("read", own, e))
}

fn contents(path: impl AsRef<Path>) -> Result<Vec<u8>, ImageError> {
    fs::read(&path).map_err(|e| ImageError::file("read", path.as_ref(), e))
}

/// The list of what the kernel needs no module for; empty where nothing is known of that.
fn built_in(kernel: &Kernel) -> Result<Vec<u8>, ImageError> {
    let list = kernel.modules.as_ref().map(|modules| modules.join(BUILT_IN));
    list.filter(|list| list.exists()).map_or(Ok(Vec::new()), contents)
}

fn modules(kernel: &Kernel, needed: &[&str], useful: &[&str]) -> Result<Vec<Module>, ImageError> {
    // Nothing is known of what such a kernel has built in; if it lacks something, its guest says so on the console.
    let Some(directory) = &kernel.modules else { return Ok(Vec::new()) };
    let modules = Modules::at(directory)?;
    if let Some(lacking) = needed.iter().find(|module| !modules.has(module)) {
        let (kernel, modules) = (kernel.image.clone(), directory.clone());
        return Err(ImageError::NoModule { kernel, module: (*lacking).to_owned(), modules });
    }
    modules.in_order(&[needed, useful].concat())
}

/// Bytes as text.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_parts_give_the_same_bytes() {
        let module = || Module { name: "virtio".to_owned(), bytes: vec![7; 5] };
        let of = |program: &[u8], rest| Initramfs::of(program, vec![module()], &rest);
        let one = of(b"program", Rest::Nothing);
        let other = of(b"program", Rest::Nothing);
        assert_eq!(one.bytes, other.bytes);
        assert_eq!(one.manifest.modules, ["virtio"]);
        assert_eq!(one.manifest.init, hexadecimal(&Sha256::digest(b"program")));
        assert_ne!(one.bytes, of(b"another", Rest::Nothing).bytes);
        assert_eq!(one.manifest.root, None);
        assert_eq!(of(b"program", Rest::Programs).manifest.root.unwrap(), "/dev/vda");
    }

    #[test]
    fn a_host_is_a_guest_with_kvm() {
        let (guest, host) = (Role::Guest, Role::Host);
        assert_eq!(guest.needed(), host.needed());
        assert!(guest.useful().iter().all(|module| host.useful().contains(module)));
        assert!(host.useful().contains(&"kvm_amd"));
    }
}
