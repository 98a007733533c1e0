//! Where a guest's sockets and its initramfs are: a directory that only its owner enters, on a file system in memory where there is one.

use std::{
    env,
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::geteuid;
use tempfile::TempDir;

const PREFIX: &str = "vmtax-guest-";
/// A directory younger than this may not be locked yet.
const YOUNG: Duration = Duration::from_secs(60);

/// The private directory of one guest, held for as long as its keeper lives.
#[derive(Debug)]
pub struct Private {
    directory: TempDir,
    /// Locked; the kernel unlocks it with the keeper, however that ends.
    _held: File,
}

impl Private {
    /// A new one under `parent`, after removing those that killed keepers left there.
    pub fn make(parent: &Path) -> io::Result<Private> {
        fs::create_dir_all(parent)?;
        sweep(parent, YOUNG);
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let held = File::open(directory.path())?;
        held.lock()?;
        Ok(Private { directory, _held: held })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Removes it.
    pub fn close(self) -> io::Result<()> {
        self.directory.close()
    }
}

/// Removes directories of ours that nobody holds. What cannot be removed stays, for the next time.
fn sweep(parent: &Path, young: Duration) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = |at: &fs::Metadata| {
            let is_old = at.modified().is_ok_and(|then| then.elapsed().is_ok_and(|age| age >= young));
            at.is_dir() && at.uid() == geteuid().as_raw() && is_old
        };
        let has_name = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if has_name && entry.metadata().is_ok_and(|at| is_ours(&at)) {
            let held = File::open(&path);
            if held.is_ok_and(|directory| directory.try_lock().is_ok()) {
                let _ = fs::remove_dir_all(&path);
            }
        }
    }
}

/// The directory in which private ones are made: the user's runtime directory; for root, vmtax's own; else the one for
/// temporary files.
pub fn parent() -> PathBuf {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| is_own(path));
    let roots = || geteuid().is_root().then(|| PathBuf::from("/run/vmtax"));
    runtime.or_else(roots).unwrap_or_else(env::temp_dir)
}

/// A runtime directory that sudo or su left over belongs to somebody else.
fn is_own(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|at| at.is_dir() && at.uid() == geteuid().as_raw() && at.permissions().mode() & 0o077 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_keeper_left_is_removed_and_what_is_held_stays() {
        let parent = tempfile::tempdir().unwrap();
        let held = Private::make(parent.path()).unwrap();
        let left = Private::make(parent.path()).unwrap();
        let (left, lock) = (left.directory.keep(), left._held);
        let other = parent.path().join("another");
        fs::create_dir(&other).unwrap();
        sweep(parent.path(), Duration::ZERO);
        assert!(left.exists(), "its keeper lives");
        drop(lock);
        sweep(parent.path(), YOUNG);
        assert!(left.exists(), "it may not be locked yet");
        sweep(parent.path(), Duration::ZERO);
        assert!(!left.exists() && held.path().exists() && other.exists());
    }
}
