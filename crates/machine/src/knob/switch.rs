//! Knobs that are set to a word.
//!
//! | switch | file | words |
//! |---|---|---|
//! | THP | `/sys/kernel/mm/transparent_hugepage/enabled` | always madvise never |
//! | one size of THP | `…/transparent_hugepage/hugepages-64kB/enabled` | always inherit madvise never |
//! | KSM | `/sys/kernel/mm/ksm/run` | 0 stopped, 1 merging, 2 stopped and everything unmerged |
//! | `nx_huge_pages` | `/sys/module/kvm/parameters/nx_huge_pages` | Y N |
//! | nested paging | `…/kvm_intel/parameters/ept`, `…/kvm_amd/parameters/npt`, by reloading: [`module`] | Y N |
//!
//! `nx_huge_pages` also takes `force`, `off` and `auto`, which read back as something else, and `never`, which no write
//! undoes (`set_nx_huge_pages`, arch/x86/kvm/mmu/mmu.c, 6.18); so those are not offered.

use std::{
    fmt, fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use vmtax_core::units::KIB;

use super::{Error, Host, module};
use crate::mthp::Mthp;

/// A knob that is set to a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// Who gets transparent 2 MiB pages, and those of every size that inherits.
    Thp,
    /// Who gets transparent huge pages of one size.
    Mthp(Mthp),
    /// Kernel samepage merging.
    Ksm,
    /// KVM's mitigation of iTLB multihit, which splits huge pages that a guest executes from.
    NxHugePages,
    /// EPT or NPT: the second stage of translation in hardware.
    NestedPaging,
}

impl Switch {
    /// What it can be set to, as the kernel spells it.
    pub const fn words(self) -> &'static [&'static str] {
        match self {
            Switch::Thp => &["always", "madvise", "never"],
            Switch::Mthp(_) => &["always", "inherit", "madvise", "never"],
            Switch::Ksm => &["0", "1", "2"],
            Switch::NxHugePages | Switch::NestedPaging => &["Y", "N"],
        }
    }

    /// What it is set to now.
    ///
    /// # Errors
    /// This kernel has no such switch, or does not show it.
    pub fn read(self, host: &Host) -> Result<String, Error> {
        match self {
            Switch::NestedPaging => module::read(host),
            Switch::Thp | Switch::Mthp(_) | Switch::Ksm | Switch::NxHugePages => self.read_file(host),
        }
    }

    /// Whether it could be set to `word`, as far as can be known without doing it. Changes nothing.
    ///
    /// # Errors
    /// Why not.
    pub fn check(self, host: &Host, word: &str) -> Result<(), Error> {
        if !self.words().contains(&word) {
            return Err(Error::NoSuchWord { switch: self, word: word.to_owned() });
        }
        if self.read(host)? == word {
            return Ok(());
        }
        match self {
            Switch::NestedPaging => module::check(host, word),
            Switch::NxHugePages if self.read(host)? == "never" => Err(Error::Unavailable {
                switch: self,
                reason: "it is set to `never`, which the kernel does not take back".to_owned(),
                remedy: "boot without kvm.nx_huge_pages=never".to_owned(),
            }),
            Switch::Thp | Switch::Mthp(_) | Switch::Ksm | Switch::NxHugePages => self.check_writable(host, word),
        }
    }

    pub(super) fn path(self, host: &Host) -> PathBuf {
        let thp = host.sys.join("kernel/mm/transparent_hugepage");
        match self {
            Switch::Thp => thp.join("enabled"),
            Switch::Mthp(size) => thp.join(format!("hugepages-{}kB/enabled", size.bytes().0 / KIB)),
            Switch::Ksm => host.sys.join("kernel/mm/ksm/run"),
            Switch::NxHugePages => host.sys.join("module/kvm/parameters/nx_huge_pages"),
            Switch::NestedPaging => host.sys.join("module"),
        }
    }

    /// What the journal keeps of it: all that it takes to put it back.
    pub(super) fn state(self, host: &Host) -> Result<String, Error> {
        match self {
            Switch::NestedPaging => module::state(host),
            Switch::Thp | Switch::Mthp(_) | Switch::Ksm | Switch::NxHugePages => self.read_file(host),
        }
    }

    /// The state in which `word` holds.
    pub(super) fn target(self, host: &Host, word: &str) -> Result<String, Error> {
        match self {
            Switch::NestedPaging => module::target(host, word),
            Switch::Thp | Switch::Mthp(_) | Switch::Ksm | Switch::NxHugePages => Ok(word.to_owned()),
        }
    }

    fn read_file(self, host: &Host) -> Result<String, Error> {
        let path = self.path(host);
        let text = host.kernel.read(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => self.missing(&path),
            _ => Error::io("read", &path, source),
        })?;
        Ok(chosen(&text).to_owned())
    }

    fn missing(self, path: &Path) -> Error {
        let remedy = match self {
            Switch::Thp => "a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
            Switch::Mthp(_) => "Linux 6.8 or later, and a size that this CPU has",
            Switch::Ksm => "a kernel with CONFIG_KSM",
            Switch::NxHugePages | Switch::NestedPaging => "load KVM: sudo modprobe kvm",
        };
        let reason = format!("there is no {}", path.display());
        Error::Unavailable { switch: self, reason, remedy: remedy.to_owned() }
    }

    /// A file that nobody may write is one of a kernel that was built so: no right of ours changes that.
    fn check_writable(self, host: &Host, word: &str) -> Result<(), Error> {
        let path = self.path(host);
        let is_fixed = fs::metadata(&path).is_ok_and(|file| file.permissions().mode() & 0o222 == 0);
        if !is_fixed {
            return Ok(());
        }
        let remedy = match self {
            Switch::NxHugePages => format!("boot with kvm.nx_huge_pages={}", if word == "Y" { "force" } else { "off" }),
            Switch::Thp => format!("boot with transparent_hugepage={word}"),
            Switch::Mthp(_) | Switch::Ksm | Switch::NestedPaging => "another kernel".to_owned(),
        };
        let reason = format!("this kernel keeps {} read-only", path.display());
        Err(Error::Unavailable { switch: self, reason, remedy })
    }
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Switch::Thp => f.write_str("transparent huge pages"),
            Switch::Mthp(size) => write!(f, "transparent {} pages", size.bytes()),
            Switch::Ksm => f.write_str("KSM"),
            Switch::NxHugePages => f.write_str("nx_huge_pages"),
            Switch::NestedPaging => f.write_str("nested paging"),
        }
    }
}

/// The word in brackets of `always [madvise] never`, or all of a file that holds one.
fn chosen(text: &str) -> &str {
    let bracketed = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    bracketed.unwrap_or_else(|| text.trim())
}

#[cfg(test)]
mod tests;
