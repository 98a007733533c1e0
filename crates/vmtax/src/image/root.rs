//! Root file systems with programs in them, as disks that a guest only reads.
//!
//! ```text
//!   <cache>/vmtax/image/<name> ──► <key>/disk.squashfs    what the guest mounts
//!                                        packages.txt     what is in it, a name and a version a line
//! ```
//!
//! The disk is a squashfs, not compressed: 249 MB with QEMU are made in 0.4 s from a tar archive, with the owners that stand
//! in it and without any right to make such files, and an emulated guest has nothing to unpack. ext4 would need the tree
//! unpacked by root, and holds the time of its making.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{ImageError, cache::Kept};

/// The disk.
pub const DISK: &str = "disk.squashfs";
/// The list of packages.
pub const PACKAGES: &str = "packages.txt";
/// The name of an image that is given no other.
pub const DEFAULT: &str = "default";

/// A root file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    directory: PathBuf,
}

impl Root {
    /// The image of this name, or in this directory.
    pub fn find(image: &Path) -> Result<Root, ImageError> {
        let is_name = image.components().count() == 1 && !image.is_dir();
        let directory = match Kept::Root.place() {
            Some(cache) if is_name => cache.join(image),
            Some(_) | None => std::path::absolute(image).map_err(|e| ImageError::file("find", image, e))?,
        };
        match directory.join(DISK).is_file() {
            true => Ok(Root { directory }),
            false => Err(ImageError::NoRoot { image: image.to_owned(), directory }),
        }
    }

    /// One that was made here.
    pub(super) fn made(directory: PathBuf) -> Root {
        Root { directory }
    }

    /// Its disk.
    pub fn disk(&self) -> PathBuf {
        self.directory.join(DISK)
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its packages, a name and a version each; none in one that no Debian is in.
    pub fn packages(&self) -> io::Result<Vec<String>> {
        let text = fs::read_to_string(self.directory.join(PACKAGES))?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_found_by_its_directory_and_a_tree_is_told_from_one() {
        let directory = tempfile::tempdir().unwrap();
        let error = Root::find(directory.path()).unwrap_err();
        let text = format!("there is no image {0}: no {DISK} in {0}", directory.path().display());
        assert_eq!(error.to_string(), text);
        assert!(error.remedy().unwrap().contains("vmtax image build --from"));
        fs::write(directory.path().join(DISK), "").unwrap();
        assert_eq!(Root::find(directory.path()).unwrap().disk(), directory.path().join(DISK));
    }
}
