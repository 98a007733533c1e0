//! What vmtax keeps of what it fetched or made: kernels and root file systems, each under its own name, whole or absent.

use std::{env, fs, fs::File, path::Path, path::PathBuf};

use tempfile::TempDir;

use super::ImageError;

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Unpacked packages of kernels.
    Kernel,
    /// Root file systems.
    Root,
}

impl Kept {
    /// Where; none where the environment names no place.
    pub fn place(self) -> Option<PathBuf> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
        Some(cache.join(match self {
            Kept::Kernel => "vmtax/kernel",
            Kept::Root => "vmtax/image",
        }))
    }
}

/// The right to add to a cache, for one process at a time. It ends with the value.
#[derive(Debug)]
pub struct Held {
    _lock: File,
}

/// Waits for that right; makes the directory.
pub fn hold(cache: &Path) -> Result<Held, ImageError> {
    fs::create_dir_all(cache).map_err(|e| ImageError::file("make", cache, e))?;
    let lock = cache.join(".lock");
    let held = File::create(&lock).and_then(|file| file.lock().map(|()| Held { _lock: file }));
    held.map_err(|e| ImageError::file("lock", &lock, e))
}

/// A directory in which something is made under another name, to be renamed when it is whole.
pub fn workplace(cache: &Path) -> Result<TempDir, ImageError> {
    let work = tempfile::Builder::new().prefix(".making-").tempdir_in(cache);
    work.map_err(|e| ImageError::file("make a directory in", cache, e))
}
