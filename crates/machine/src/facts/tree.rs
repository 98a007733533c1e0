//! A file tree that looks like `/`: the machine itself, or a recording of another.
//!
//! A recording may be an overlay: a directory whose file `base` names a sibling, and which holds only what differs. Its
//! file `absent` lists paths of the base that are not there, one a line; a directory takes all below it along.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    str::FromStr,
};

/// A file tree. Paths are relative to its root: `proc/meminfo`.
#[derive(Debug)]
pub struct Tree {
    layers: Vec<PathBuf>,
    absent: Vec<PathBuf>,
    seen: RefCell<BTreeSet<String>>,
}

impl Tree {
    /// The machine we are on.
    pub fn machine() -> Tree {
        Tree { layers: vec![PathBuf::from("/")], absent: Vec::new(), seen: RefCell::default() }
    }

    /// A recording, with the base it stands on, if any.
    pub fn recorded(directory: &Path) -> Tree {
        let mut layers = vec![directory.to_owned()];
        if let Ok(base) = fs::read_to_string(directory.join("base")) {
            layers.push(directory.with_file_name(base.trim()));
        }
        let absent = fs::read_to_string(directory.join("absent")).unwrap_or_default();
        Tree { layers, absent: absent.lines().map(PathBuf::from).collect(), seen: RefCell::default() }
    }

    /// A file's bytes, whatever it holds; at most `limit` of them.
    pub fn head(&self, path: &str, limit: usize) -> Option<Vec<u8>> {
        let mut bytes = fs::read(self.find(path)?).ok()?;
        bytes.truncate(limit);
        self.seen.borrow_mut().insert(path.to_owned());
        Some(bytes)
    }

    /// A file's text without the white space around it.
    pub fn text(&self, path: &str) -> Option<String> {
        let text = String::from_utf8(self.head(path, usize::MAX)?).ok()?;
        Some(text.trim().to_owned())
    }

    /// The number a file holds.
    pub fn number<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The switch a file holds: `0` or `1`.
    pub fn switch(&self, path: &str) -> Option<bool> {
        self.number::<u32>(path).map(|n| n != 0)
    }

    /// The word in brackets of a file such as `always [madvise] never`.
    pub fn chosen(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let word = text.split_whitespace().find_map(|w| w.strip_prefix('[')?.strip_suffix(']'))?;
        Some(word.to_owned())
    }

    /// The names in a directory, sorted.
    pub fn names(&self, path: &str) -> Vec<String> {
        let mut names = BTreeSet::new();
        for layer in &self.layers {
            let entries = fs::read_dir(layer.join(path)).into_iter().flatten().flatten();
            names.extend(entries.filter_map(|entry| entry.file_name().into_string().ok()));
        }
        names.into_iter().filter(|name| !self.is_absent(&Path::new(path).join(name))).collect()
    }

    /// The files that were read and exist, for a recorder.
    pub fn seen(&self) -> Vec<String> {
        self.seen.borrow().iter().cloned().collect()
    }

    fn find(&self, path: &str) -> Option<PathBuf> {
        let mut candidates = self.layers.iter().enumerate();
        let hidden = self.is_absent(Path::new(path));
        candidates.find_map(|(depth, layer)| {
            let file = layer.join(path);
            (!(hidden && depth > 0) && file.is_file()).then_some(file)
        })
    }

    fn is_absent(&self, path: &Path) -> bool {
        self.absent.iter().any(|gone| path.starts_with(gone))
    }
}
