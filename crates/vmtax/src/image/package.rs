//! Debian's kernel for virtual machines, unpacked into the cache: the way out on hosts that have no kernel of their own to
//! offer, as containers and cloud instances with a foreign kernel. Fetched only by `vmtax image kernel`, through apt-get,
//! which knows the host's mirrors and checks signatures; nothing is installed.
//!
//! A directory in the cache is whole or absent: it is unpacked under another name and renamed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{ImageError, cache, tool};

/// The package that always depends on the newest.
const META: &str = "linux-image-cloud-amd64";

/// The newest of those unpacked.
pub fn newest(cache: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(cache).ok()?.flatten();
    let whole = entries.filter(|entry| entry.path().join("boot").is_dir());
    let by_age = whole.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())));
    by_age.max().map(|(_, path)| path)
}

/// Fetches and unpacks the newest, unless it is there; its directory.
pub fn fetch(cache: &Path) -> Result<PathBuf, ImageError> {
    let _held = cache::hold(cache)?;
    let package = newest_package()?;
    let work = cache::workplace(cache)?;
    run(Command::new("apt-get").args(["download", "-qq", &package]).current_dir(work.path()))?;
    let archive = only_file(work.path())?;
    let name = archive.file_stem().expect("it was listed by its name").to_owned();
    let root = cache.join(&name);
    if root.is_dir() {
        return Ok(root);
    }
    let unpacked = work.path().join("unpacked");
    run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&unpacked))?;
    fs::rename(&unpacked, &root).map_err(|e| ImageError::file("rename", &unpacked, e))?;
    Ok(root)
}

/// The package that [`META`] stands for today.
fn newest_package() -> Result<String, ImageError> {
    let text = run(Command::new("apt-cache").args(["depends", META]))?;
    let real = text.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    real.map(str::to_owned).ok_or_else(|| ImageError::Package(format!("apt-cache knows no {META}")))
}

fn only_file(directory: &Path) -> Result<PathBuf, ImageError> {
    let entries = fs::read_dir(directory).map_err(|e| ImageError::file("read", directory, e))?;
    let path = entries.flatten().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|e| e == "deb"));
    path.ok_or_else(|| ImageError::Package("apt-get download left no package".to_owned()))
}

fn run(command: &mut Command) -> Result<String, ImageError> {
    let printed = tool::run(command).map_err(ImageError::Package)?;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}
