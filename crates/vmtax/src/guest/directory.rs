//! Where a guest's sockets and its initramfs are: a directory that only its owner enters, on a file system in memory where there is one.

use std::{
    env,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

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
