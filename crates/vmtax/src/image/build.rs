//! How a root file system is made: from packages by mmdebstrap, or from a tree that somebody has.
//!
//! ```text
//!   packages ──apt's sources, mmdebstrap──► tar ┐
//!   DIR ────────────────────────────────────────┼─mksquashfs──► disk.squashfs ──unsquashfs──► packages.txt
//!   TAR, TAR.gz, TAR.xz, TAR.zst ──unpack───────┘
//! ```
//!
//! One made of packages is kept under the hash of their versions, so that it is made again when one of them changed, and
//! only then; one from a tree under the hash of its disk. It is whole or absent, as a kernel is. Made again from the same
//! packages it has the same bytes; made by another user, the same files.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::Command,
};

use sha2::{Digest, Sha256};

use super::{
    ImageError, cache,
    initramfs::hexadecimal,
    root::{DISK, PACKAGES, Root},
    tool,
};

/// What is in every image that is made of packages: what boots guests, and the programs of the studies.
pub const ALWAYS: [&str; 3] = ["qemu-system-x86", "rt-tests", "sysbench"];
/// What an image depends on beside its packages; another number makes all of them again.
const FORMAT: &str = "vmtax image 1";
/// Characters of a key: enough for what one host ever keeps.
pub const KEY: usize = 16;
/// What nobody reads in an image.
const LEFT_OUT: [&str; 4] = ["doc", "info", "locale", "man"];
/// How QEMU's disk images begin (docs/interop/qcow2.txt).
const QCOW: &[u8] = b"QFI\xfb";

/// What an image is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Debian's packages, and all that they need.
    Packages(Vec<String>),
    /// A directory.
    Tree(PathBuf),
    /// A tar archive.
    Archive(PathBuf),
}

impl Origin {
    /// A tree or an archive, whichever is at `path`.
    pub fn at(path: &Path) -> Result<Origin, ImageError> {
        let failed = |e| ImageError::file("read", path, e);
        if path.metadata().map_err(failed)?.is_dir() {
            return Ok(Origin::Tree(path.to_owned()));
        }
        let mut head = Vec::new();
        File::open(path).and_then(|file| file.take(QCOW.len() as u64).read_to_end(&mut head)).map_err(failed)?;
        match head == QCOW {
            true => Err(ImageError::Disk(path.to_owned())),
            false => Ok(Origin::Archive(path.to_owned())),
        }
    }

    /// Those of every image, and `more`.
    pub fn packages(more: &[String]) -> Origin {
        let mut all: Vec<String> = ALWAYS.iter().map(|&name| name.to_owned()).chain(more.iter().cloned()).collect();
        all.sort();
        all.dedup();
        Origin::Packages(all)
    }
}

/// Makes an image, unless it is there, and calls it `name`.
pub fn build(origin: &Origin, cache: &Path, name: &str) -> Result<Root, ImageError> {
    let _held = cache::hold(cache)?;
    let root = match origin {
        Origin::Packages(packages) => {
            let directory = cache.join(key(packages)?);
            match directory.is_dir() {
                true => Root::made(directory),
                false => made(cache, &directory, |work, disk| {
                    let archive = work.join("root.tar");
                    bootstrap(packages, &archive)?;
                    squash(&mut opened(&archive)?, disk)
                })?,
            }
        }
        Origin::Archive(path) => made_of_tree(cache, |disk| squash(&mut opened(path)?, disk))?,
        Origin::Tree(path) => made_of_tree(cache, |disk| run(squashing(path, disk).arg("-all-root")).map(drop))?,
    };
    link(cache, name, root.directory())?;
    Ok(root)
}

/// Makes one whose key is known before.
fn made(
    cache: &Path,
    directory: &Path,
    make: impl FnOnce(&Path, &Path) -> Result<(), ImageError>,
) -> Result<Root, ImageError> {
    let work = cache::workplace(cache)?;
    let image = work.path().join("image");
    fs::create_dir(&image).map_err(|e| ImageError::file("make", &image, e))?;
    make(work.path(), &image.join(DISK))?;
    list_packages(&image)?;
    fs::rename(&image, directory).map_err(|e| ImageError::file("rename", &image, e))?;
    Ok(Root::made(directory.to_owned()))
}

/// Makes one that is known by its disk.
fn made_of_tree(cache: &Path, make: impl FnOnce(&Path) -> Result<(), ImageError>) -> Result<Root, ImageError> {
    let work = cache::workplace(cache)?;
    let disk = work.path().join(DISK);
    make(&disk)?;
    let hash = hash(&disk).map_err(|e| ImageError::file("read", &disk, e))?;
    let directory = cache.join(&hash[..KEY]);
    if directory.is_dir() {
        return Ok(Root::made(directory));
    }
    made(cache, &directory, |_, place| fs::rename(&disk, place).map_err(|e| ImageError::file("rename", &disk, e)))
}

fn hash(disk: &Path) -> io::Result<String> {
    let (mut file, mut hash, mut piece) = (File::open(disk)?, Sha256::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hexadecimal(&hash.finalize())),
            got => hash.update(&piece[..got]),
        }
    }
}

/// The hash of the versions that apt would install of `packages`. What they need follows them: Debian's dependencies change
/// with the version of who depends, or are fixes that a stable release takes in any case.
fn key(packages: &[String]) -> Result<String, ImageError> {
    let known = run(Command::new("apt-cache").args(["show", "--no-all-versions"]).args(packages))?;
    let known = String::from_utf8_lossy(&known);
    let version = |name: &String| {
        let is_its = |stanza: &&str| value(stanza, "Package: ") == Some(name);
        let version = value(known.split("\n\n").find(is_its)?, "Version: ")?;
        Some(format!("{name} {version}\n"))
    };
    let mut hash = Sha256::new_with_prefix(FORMAT);
    for name in packages {
        hash.update(version(name).ok_or_else(|| ImageError::Root(format!("apt knows no package {name}")))?);
    }
    Ok(hexadecimal(&hash.finalize())[..KEY].to_owned())
}

/// Debian's packages as a tar archive, from the sources that this host has.
fn bootstrap(packages: &[String], archive: &Path) -> Result<(), ImageError> {
    let targets = run(Command::new("apt-get").args(["indextargets", "Created-By: Packages"]))?;
    let targets = String::from_utf8_lossy(&targets);
    let (release, sources) = debian(&targets)
        .ok_or_else(|| ImageError::Root("apt has no source of Debian's packages on this host".to_owned()))?;
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--variant=essential", "--format=tar"]);
    command.arg(format!("--include={}", packages.join(",")));
    command.arg("--aptopt=APT::Install-Recommends \"false\"");
    command.args(LEFT_OUT.map(|share| format!("--dpkgopt=path-exclude=/usr/share/{share}/*")));
    command.arg(release).arg(archive).args(sources);
    run(&mut command).map(drop)
}

/// The release and the files of sources that hold Debian's packages, from what apt says of its targets.
fn debian(targets: &str) -> Option<(&str, Vec<&str>)> {
    let is_debian = |stanza: &&str| matches!(value(stanza, "Origin: "), Some("Debian" | "Ubuntu"));
    let stanzas: Vec<&str> = targets.split("\n\n").filter(is_debian).collect();
    let release = stanzas.iter().find_map(|stanza| value(stanza, "Release: "))?;
    let entries = stanzas.iter().filter_map(|stanza| value(stanza, "Sourcesentry: "));
    let mut files: Vec<&str> = entries.filter_map(|entry| Some(entry.rsplit_once(':')?.0)).collect();
    files.sort_unstable();
    files.dedup();
    Some((release, files))
}

fn value<'a>(stanza: &'a str, name: &str) -> Option<&'a str> {
    stanza.lines().find_map(|line| line.strip_prefix(name))
}

/// A disk of a tar archive.
fn squash(archive: &mut impl Read, disk: &Path) -> Result<(), ImageError> {
    let mut command = squashing(Path::new("-"), disk);
    tool::feed(command.arg("-tar"), archive).map_err(ImageError::Root)
}

fn squashing(from: &Path, disk: &Path) -> Command {
    let plain = "-noI -noD -noF -noX -no-xattrs -no-exports -no-progress -quiet";
    // Else the root of a tar archive belongs to who runs this, and is everybody's to write.
    let root = "-root-mode 755 -root-uid 0 -root-gid 0";
    let mut command = Command::new("mksquashfs");
    command.arg(from).arg(disk).args(plain.split(' ')).args(root.split(' '));
    command
}

/// Keeps beside the disk what dpkg in it says is installed.
fn list_packages(image: &Path) -> Result<(), ImageError> {
    // Another distribution has no such file.
    let status = run(Command::new("unsquashfs").arg("-cat").arg(image.join(DISK)).arg("var/lib/dpkg/status"));
    let list = packages_of(&String::from_utf8_lossy(&status.unwrap_or_default()));
    let path = image.join(PACKAGES);
    File::create(&path)
        .and_then(|mut file| list.iter().try_for_each(|line| writeln!(file, "{line}")))
        .map_err(|e| ImageError::file("write", path, e))
}

fn packages_of(status: &str) -> Vec<String> {
    let installed = status.split("\n\n").filter(|stanza| stanza.contains("\nStatus: install ok installed\n"));
    let line = |stanza| Some(format!("{} {}", value(stanza, "Package: ")?, value(stanza, "Version: ")?));
    let mut list: Vec<String> = installed.filter_map(line).collect();
    list.sort();
    list
}

/// Gives an image its name, which another may have had.
fn link(cache: &Path, name: &str, directory: &Path) -> Result<(), ImageError> {
    let path = cache.join(name);
    let work = cache::workplace(cache)?;
    let link = work.path().join("link");
    let key = directory.file_name().expect("it was made in the cache");
    std::os::unix::fs::symlink(key, &link)
        .and_then(|()| fs::rename(&link, &path))
        .map_err(|e| ImageError::file("make", path, e))
}

fn opened(path: &Path) -> Result<Box<dyn Read>, ImageError> {
    super::unpack::open(path).map_err(|e| ImageError::file("read", path, e))
}

fn run(command: &mut Command) -> Result<Vec<u8>, ImageError> {
    tool::run(command).map_err(ImageError::Root)
}

#[cfg(test)]
mod tests;
