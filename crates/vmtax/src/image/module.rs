//! Kernel modules, in the order in which they can be loaded.
//!
//! What a module needs is read from the module itself. `modules.dep` says the same, but depmod writes it when a kernel is
//! installed, and a package that is only unpacked has none: one source that is always there is better than two.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{ImageError, elf, unpack};

/// Bytes of a module, unpacked, at most: the largest in use are graphics drivers of some 20 MiB. A compressed file may claim anything.
const LARGEST: u64 = 128 << 20;

/// The list of what a kernel has built in, in the directory of its modules.
pub const BUILT_IN: &str = "modules.builtin";

/// The modules of one kernel.
#[derive(Debug)]
pub struct Modules {
    /// By name, with `_` for `-`, as the kernel compares them.
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

/// A module as the kernel takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its name, with `_`.
    pub name: String,
    /// The plain ELF file.
    pub bytes: Vec<u8>,
}

impl Modules {
    /// Those in a directory such as `/lib/modules/6.1.0-56-cloud-amd64`.
    pub fn at(directory: &Path) -> Result<Modules, ImageError> {
        let mut files = BTreeMap::new();
        collect(directory, &mut files).map_err(|e| ImageError::file("read", directory, e))?;
        let list = fs::read_to_string(directory.join(BUILT_IN)).unwrap_or_default();
        let built_in = list.lines().filter_map(|line| name(Path::new(line))).collect();
        Ok(Modules { files, built_in })
    }

    /// Whether the kernel has a module, built in or as a file.
    pub fn has(&self, module: &str) -> bool {
        self.built_in.contains(module) || self.files.contains_key(module)
    }

    /// `wanted` and all they need, each after what it needs; none that is built in, and none that there is not.
    pub fn in_order(&self, wanted: &[&str]) -> Result<Vec<Module>, ImageError> {
        let mut order = Vec::new();
        let mut met = BTreeSet::new();
        for module in wanted {
            self.visit(module, &mut met, &mut order)?;
        }
        Ok(order)
    }

    fn visit(&self, module: &str, met: &mut BTreeSet<String>, order: &mut Vec<Module>) -> Result<(), ImageError> {
        let Some(path) = self.files.get(module) else { return Ok(()) };
        if !met.insert(module.to_owned()) {
            return Ok(());
        }
        let bytes = plain(path).map_err(|e| ImageError::file("unpack", path, e))?;
        let needed = elf::depends(&bytes).map_err(|e| ImageError::file("read the dependencies of", path, e))?;
        for other in needed {
            self.visit(&normal(&other), met, order)?;
        }
        order.push(Module { name: module.to_owned(), bytes });
        Ok(())
    }
}

fn collect(directory: &Path, files: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // Symbolic links lead out of the tree: `build` and `source`, to the headers.
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), files)?;
        } else if let Some(name) = name(&entry.path()) {
            files.insert(name, entry.path());
        }
    }
    Ok(())
}

/// The name of a module by its file; none if it is no module.
fn name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let stem = file.strip_suffix(".ko").or_else(|| file.rsplit_once('.')?.0.strip_suffix(".ko"))?;
    Some(normal(stem))
}

fn normal(name: &str) -> String {
    name.replace('-', "_")
}

/// A module's file, unpacked if it is compressed: the kernels of many distributions cannot do that themselves.
fn plain(path: &Path) -> io::Result<Vec<u8>> {
    let reader = unpack::open(path)?;
    let mut bytes = Vec::new();
    match reader.take(LARGEST + 1).read_to_end(&mut bytes)? as u64 {
        0..=LARGEST => Ok(bytes),
        _ => Err(io::Error::other("it is larger than any module")),
    }
}

#[cfg(test)]
mod tests;
