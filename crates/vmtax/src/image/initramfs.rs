//! The file system in memory from which a guest starts: this program as its init, the modules, and what the init must know.
//!
//! ```text
//!   /init                  this program, without what is not loaded of it
//!   /dev/console           what init prints goes to the serial port
//!   /sbin/modprobe         a link to it
//!   /vmtax/manifest.json   [`Manifest`]
//!   /vmtax/modules/*.ko    plain
//! ```

use std::fs;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    ImageError, Kernel,
    cpio::Archive,
    elf,
    module::{Module, Modules},
};

/// Where the manifest is.
pub const MANIFEST: &str = "/vmtax/manifest.json";
/// Where the modules are.
pub const MODULES: &str = "/vmtax/modules";

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
    /// One for `kernel`, with this program inside.
    pub fn build(kernel: &Kernel, role: Role) -> Result<Initramfs, ImageError> {
        let own = "/proc/self/exe";
        let program = fs::read(own).map_err(|e| ImageError::file("read", own, e))?;
        let program = elf::loaded_part(&program).map_err(|e| ImageError::file("read", own, e))?;
        Ok(Initramfs::of(&program, modules(kernel, role)?))
    }

    /// One of these parts; the same bytes for the same parts.
    pub fn of(program: &[u8], modules: Vec<Module>) -> Initramfs {
        let names = modules.iter().map(|module| module.name.clone()).collect();
        let manifest = Manifest { init: hexadecimal(&Sha256::digest(program)), modules: names };
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
        Initramfs { bytes: archive.finish(), manifest }
    }
}

fn modules(kernel: &Kernel, role: Role) -> Result<Vec<Module>, ImageError> {
    // Nothing is known of what such a kernel has built in; if it lacks something, its guest says so on the console.
    let Some(directory) = &kernel.modules else { return Ok(Vec::new()) };
    let modules = Modules::at(directory)?;
    if let Some(lacking) = role.needed().iter().find(|module| !modules.has(module)) {
        let (kernel, modules) = (kernel.image.clone(), directory.clone());
        return Err(ImageError::NoModule { kernel, module: (*lacking).to_owned(), modules });
    }
    modules.in_order(&[role.needed(), role.useful()].concat())
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
        let one = Initramfs::of(b"program", vec![module()]);
        let other = Initramfs::of(b"program", vec![module()]);
        assert_eq!(one.bytes, other.bytes);
        assert_eq!(one.manifest.modules, ["virtio"]);
        assert_eq!(one.manifest.init, hexadecimal(&Sha256::digest(b"program")));
        assert_ne!(one.bytes, Initramfs::of(b"another", vec![module()]).bytes);
    }

    #[test]
    fn a_host_is_a_guest_with_kvm() {
        let (guest, host) = (Role::Guest, Role::Host);
        assert_eq!(guest.needed(), host.needed());
        assert!(guest.useful().iter().all(|module| host.useful().contains(module)));
        assert!(host.useful().contains(&"kvm_amd"));
    }
}
