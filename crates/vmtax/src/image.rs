//! What a guest boots: a kernel found on this host, and an initramfs made here of this very binary and the modules that
//! reach it. No distribution, no shell, no tool of the host is inside.
//!
//! ```text
//!   kernel   --kernel FILE, /boot, or a package in the cache ──► bzImage, handed to QEMU as it is
//!   module   .ko, .ko.gz, .ko.xz, .ko.zst ──► plain, each after those it needs ┐
//!   elf      /proc/self/exe ──► only what is loaded of it                      ├─► initramfs (cpio, newc)
//!   manifest what the init has to load, and who it is                          ┘
//!   root     Debian's packages by mmdebstrap, or a tree ([`build`]) ──► a disk with programs, if any are wanted
//! ```
//!
//! The initramfs is not compressed: 8 MB are unpacked in 0.1 s by an emulated guest, in 0.3 s from gzip and in 0.9 s from xz (2 busy
//! CPUs), and QEMU hands them over by DMA.

pub mod build;
pub mod cache;
pub mod cpio;
pub mod elf;
pub mod initramfs;
pub mod kernel;
pub mod module;
pub mod package;
pub mod root;
mod tool;
mod unpack;

use std::path::PathBuf;

pub use initramfs::{Initramfs, Role};
pub use kernel::{Kernel, Source};
pub use root::Root;

/// Why there is nothing to boot.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// No kernel on this host.
    #[error("cannot boot a guest: no kernel was found ({})", .tried.join("; "))]
    NoKernel {
        /// Where it was looked for, and why that gave none.
        tried: Vec<String>,
    },
    /// A file that no x86 boot loader would take.
    #[error("cannot boot {}: {why}", .path.display())]
    NotKernel {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        why: &'static str,
    },
    /// A module that a guest cannot do without is neither built in nor a file.
    #[error("cannot boot {} in a guest: it has no module {module}, neither built in nor under {}", .kernel.display(), .modules.display())]
    NoModule {
        /// The kernel.
        kernel: PathBuf,
        /// The module.
        module: String,
        /// Where it was looked for.
        modules: PathBuf,
    },
    /// A file that cannot be used.
    #[error("cannot {operation} {}: {why}", .path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// With which.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The kernel package could not be fetched.
    #[error("cannot get Debian's kernel package: {0}")]
    Package(String),
    /// No such root file system.
    #[error("there is no image {}: no {} in {}", .image.display(), root::DISK, .directory.display())]
    NoRoot {
        /// As it was named.
        image: PathBuf,
        /// Where it would be.
        directory: PathBuf,
    },
    /// A disk image, of which no tree can be taken here.
    #[error("cannot take {}: disk images are not supported yet", .0.display())]
    Disk(PathBuf),
    /// A root file system could not be made.
    #[error("cannot make the image: {0}")]
    Root(String),
}

impl ImageError {
    /// The way out.
    pub fn remedy(&self) -> Option<String> {
        match self {
            ImageError::NoKernel { .. } => Some(
                "vmtax image kernel (takes Debian's by apt-get), or name one: --kernel FILE --modules DIR".to_owned(),
            ),
            ImageError::NotKernel { .. } => {
                Some("name a bzImage, such as /boot/vmlinuz or arch/x86/boot/bzImage of a build".to_owned())
            }
            ImageError::NoModule { .. } => {
                Some("name its modules with --modules DIR, or another kernel: vmtax image kernel".to_owned())
            }
            ImageError::File { .. } => None,
            ImageError::Package(_) => {
                Some("sudo apt-get update, or name a kernel: --kernel FILE --modules DIR".to_owned())
            }
            ImageError::NoRoot { .. } => {
                Some("vmtax image build, or of a tree that you have: vmtax image build --from DIR".to_owned())
            }
            ImageError::Disk(path) => Some(format!(
                "its files as a directory: qemu-img convert -O raw {} disk.raw, mount it, --from DIR",
                path.display()
            )),
            ImageError::Root(reason) if reason.contains("No such file or directory") => {
                Some("sudo apt-get install mmdebstrap squashfs-tools, or give a tree: --from DIR|TAR".to_owned())
            }
            ImageError::Root(reason) if reason.starts_with("mksquashfs") => {
                Some("give a directory, or a tar archive, plain or as .gz, .xz or .zst: --from DIR|TAR".to_owned())
            }
            ImageError::Root(_) => Some(
                "sudo apt-get update; be root, or have subordinate user ids and the package uidmap;\n      or give a tree: --from DIR|TAR".to_owned(),
            ),
        }
    }

    fn file(operation: &'static str, path: impl Into<PathBuf>, why: impl std::fmt::Display) -> ImageError {
        ImageError::File { operation, path: path.into(), why: why.to_string() }
    }
}
