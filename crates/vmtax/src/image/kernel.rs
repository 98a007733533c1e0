//! The kernel of a guest: which one, of what release, and where its modules are.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use super::{ImageError, cache::Kept, package};

/// Where a kernel may come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Source {
    /// The one that runs here, else one of the cache.
    #[default]
    Found,
    /// A file, with the directory of its modules unless all that it needs is built in.
    Named {
        /// The bzImage.
        image: PathBuf,
        /// Its modules.
        modules: Option<PathBuf>,
    },
}

/// A kernel that can be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The bzImage.
    pub image: PathBuf,
    /// What it calls itself, such as `6.1.0-56-cloud-amd64`.
    pub release: String,
    /// The directory of its modules, if any.
    pub modules: Option<PathBuf>,
}

impl Kernel {
    /// The kernel of `source`.
    pub fn find(source: &Source) -> Result<Kernel, ImageError> {
        match source {
            Source::Named { image, modules } => Kernel::named(image, modules.as_deref()),
            Source::Found => Kernel::running().or_else(|why_not_running| {
                let cache = Kept::Kernel.place();
                let kept = cache.as_deref().and_then(package::newest);
                kept.map_or_else(
                    || {
                        let cache =
                            cache.map_or("there is no $HOME".to_owned(), |c| format!("none in {}", c.display()));
                        Err(ImageError::NoKernel { tried: vec![why_not_running, cache] })
                    },
                    |root| Kernel::unpacked(&root),
                )
            }),
        }
    }

    /// A file, with its modules: those given, or those that stand where distributions put them.
    fn named(image: &Path, modules: Option<&Path>) -> Result<Kernel, ImageError> {
        let image = std::path::absolute(image).map_err(|e| ImageError::file("find", image, e))?;
        let release = release(&image)?;
        let usual = Path::new("/lib/modules").join(&release);
        let modules = modules.map(Path::to_owned).or_else(|| usual.is_dir().then_some(usual));
        Ok(Kernel { image, release, modules })
    }

    /// The kernel that runs here, or in words why it cannot be used.
    fn running() -> Result<Kernel, String> {
        let name = rustix::system::uname();
        let running = name.release().to_string_lossy();
        let image = PathBuf::from(format!("/boot/vmlinuz-{running}"));
        let modules = PathBuf::from(format!("/lib/modules/{running}"));
        // Some distributions keep it from all but root.
        File::open(&image).map_err(|e| format!("{}: {e}", image.display()))?;
        if !modules.is_dir() {
            return Err(format!("there is no {}", modules.display()));
        }
        Kernel::named(&image, Some(&modules)).map_err(|e| e.to_string())
    }

    /// The kernel in an unpacked package.
    pub fn unpacked(root: &Path) -> Result<Kernel, ImageError> {
        let boot = root.join("boot");
        let entries = fs::read_dir(&boot).map_err(|e| ImageError::file("read", &boot, e))?;
        let images = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("vmlinuz-"));
        let image = images
            .map(|entry| entry.path())
            .max()
            .ok_or_else(|| ImageError::file("find a kernel in", &boot, "there is none"))?;
        let release = release(&image)?;
        let places = [root.join("lib/modules").join(&release), root.join("usr/lib/modules").join(&release)];
        Ok(Kernel { image, release, modules: places.into_iter().find(|place| place.is_dir()) })
    }
}

/// Bytes of a bzImage that hold its header and its version text.
const HEAD: u64 = 64 << 10;

/// The release in a bzImage (Documentation/arch/x86/boot.rst: `HdrS` at 0x202; at 0x20e the text's place, from 0x200 on).
fn release(image: &Path) -> Result<String, ImageError> {
    let unreadable = |e| ImageError::file("read", image, e);
    let mut head = Vec::new();
    File::open(image).and_then(|file| file.take(HEAD).read_to_end(&mut head)).map_err(unreadable)?;
    let not = |why| ImageError::NotKernel { path: image.to_owned(), why };
    if head.get(0x202..0x206) != Some(b"HdrS") {
        return Err(not("it is no bzImage: it lacks the mark HdrS"));
    }
    let place = 0x200 + usize::from(u16::from_le_bytes([head[0x20e], head[0x20f]]));
    let text = head.get(place..).unwrap_or_default().split(|byte| *byte == 0 || *byte == b' ').next();
    let release = text.and_then(|text| std::str::from_utf8(text).ok()).filter(|text| !text.is_empty());
    release.map(str::to_owned).ok_or_else(|| not("its header names no release"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("vmlinuz");
        fs::write(&path, bytes).unwrap();
        (directory, path)
    }

    #[test]
    fn the_release_is_read_from_the_header() {
        let mut bytes = vec![0; 0x400];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        bytes[0x300..0x310].copy_from_slice(b"6.1.0-x (me) #1\0");
        let (_directory, path) = file(&bytes);
        assert_eq!(release(&path).unwrap(), "6.1.0-x");
    }

    #[test]
    fn what_is_no_kernel_is_named_with_the_way_out() {
        let check = |bytes: &[u8], expected: &str| {
            let (_directory, path) = file(bytes);
            let error = release(&path).unwrap_err();
            assert_eq!(error.to_string(), format!("cannot boot {}: {expected}", path.display()));
            assert!(error.remedy().unwrap().contains("bzImage"));
        };
        check(b"\x7fELF", "it is no bzImage: it lacks the mark HdrS");
        check(&[0; 0x206], "it is no bzImage: it lacks the mark HdrS");
        let mut no_version = vec![0; 0x400];
        no_version[0x202..0x206].copy_from_slice(b"HdrS");
        check(&no_version, "its header names no release");
    }
}
