//! What can go wrong with a knob: the operation and the operand in the message, the way out in [`Error::remedy`].

use std::{
    io,
    path::{Path, PathBuf},
};

use vmtax_core::units::{Bytes, MIB, PageSize};

use super::{Outcome, Switch, VmUser};

/// Why a knob was not borrowed, or not put back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another vmtax holds the host.
    #[error("another vmtax holds this host: {}", holder(.pid, .doing))]
    Held {
        /// Its process, where the lock says.
        pid: Option<u32>,
        /// What it is doing.
        doing: String,
    },
    /// The kernel does not let this process do it.
    #[error("not permitted to {operation} {}", path.display())]
    Forbidden {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
    /// The kernel keeps no pool of this page size.
    #[error("this kernel has no pool of {} pages", page.prose())]
    NoPool {
        /// The page size.
        page: PageSize,
    },
    /// More memory than vmtax takes from a host.
    #[error(
        "cannot reserve {} in huge pages: more than half of the {} that are available",
        whole_mib(*.needed),
        whole_mib(*.available)
    )]
    TooMuch {
        /// What all pools together lack.
        needed: Bytes,
        /// `MemAvailable`.
        available: Bytes,
    },
    /// The pool could only partly be filled; what was granted has been given back.
    #[error("cannot reserve {} pages: {needed} needed, {granted} granted", page.prose())]
    Partial {
        /// The page size.
        page: PageSize,
        /// Pages that had to be available.
        needed: u64,
        /// Pages that were, after the pool had been raised.
        granted: u64,
    },
    /// The pool was to have a number of pages and got fewer; it has been put back.
    #[error("the pool of {} pages was to have {wanted}, {granted} were granted", page.prose())]
    NotGranted {
        /// The page size.
        page: PageSize,
        /// Pages it was to have.
        wanted: u64,
        /// Pages it had when the kernel had done what it could.
        granted: u64,
    },
    /// The pool was to be made smaller than what others use of it.
    #[error("cannot lower the pool of {} pages to {wanted}: {busy} of its {total} are in use", page.prose())]
    PoolInUse {
        /// The page size.
        page: PageSize,
        /// Pages it was to have.
        wanted: u64,
        /// Pages in use, or promised.
        busy: u64,
        /// Pages it has.
        total: u64,
    },
    /// No switch has this word.
    #[error("`{word}` is nothing {switch} can be set to: {}", switch.words().join(", "))]
    NoSuchWord {
        /// What was to be set.
        switch: Switch,
        /// To what.
        word: String,
    },
    /// This host does not have the switch, or does not let it be turned.
    #[error("cannot turn {switch}: {reason}")]
    Unavailable {
        /// What was to be set.
        switch: Switch,
        /// Why it cannot be.
        reason: String,
        /// What would help.
        remedy: String,
    },
    /// KVM's module cannot be reloaded under a VM.
    #[error("cannot reload {module} while it is in use: {}", names(.users))]
    VmsRunning {
        /// The module.
        module: &'static str,
        /// Who uses it, as far as can be seen.
        users: Vec<VmUser>,
    },
    /// The kernel took a word, but something else is in force; it has been put back.
    #[error("{switch} was set to {wanted}, but reads {got}")]
    NotTaken {
        /// What was set.
        switch: Switch,
        /// To what.
        wanted: String,
        /// What was read back.
        got: String,
    },
    /// The process that would put the host back after a kill did not start; nothing was changed.
    #[error("the guardian did not start")]
    Guardian(#[source] io::Error),
    /// The journal of changes cannot be understood.
    #[error("{} line {line} is not a record of vmtax: {reason}", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Something is not as it was before vmtax changed it.
    #[error("the host is not put back: {}", list(.0))]
    Unrestored(Vec<Outcome>),
    /// A file operation failed.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
}

impl Error {
    /// `operation` on `path` failed with `source`.
    pub(super) fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Error::Forbidden { operation, path, source }
            }
            _ => Error::Io { operation, path, source },
        }
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> Option<String> {
        let text = match self {
            Error::Held { .. } => "wait until it ends".to_owned(),
            Error::Forbidden { source, .. } if source.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                "run vmtax outside the container, or where /sys is writable".to_owned()
            }
            Error::Forbidden { .. } => "run it as root: sudo vmtax ...".to_owned(),
            Error::NoPool { page: PageSize::Giant } => {
                "a CPU with 1 GiB pages (pdpe1gb in /proc/cpuinfo) and a kernel with CONFIG_HUGETLBFS".to_owned()
            }
            Error::NoPool { .. } => "a kernel with CONFIG_HUGETLBFS".to_owned(),
            Error::TooMuch { available, .. } => {
                format!("free memory, or ask for {} at most", whole_mib(Bytes(available.0 / 2)))
            }
            Error::Partial { page: PageSize::Giant, needed, .. } => {
                format!("memory is fragmented: boot with hugepagesz=1G hugepages={needed}, or do without 1 GiB pages")
            }
            Error::Partial { .. } => "memory is fragmented: echo 1 | sudo tee /proc/sys/vm/drop_caches \
                 /proc/sys/vm/compact_memory, or ask for less, such as --size 512M"
                .to_owned(),
            Error::NotGranted { page: PageSize::Giant, wanted, .. } => {
                format!("memory is fragmented: boot with hugepagesz=1G hugepages={wanted}, or ask for fewer")
            }
            Error::NotGranted { .. } => "memory is fragmented: echo 1 | sudo tee /proc/sys/vm/drop_caches \
                 /proc/sys/vm/compact_memory, or ask for fewer"
                .to_owned(),
            Error::PoolInUse { busy, .. } => format!("end their users, or ask for {busy} pages at least"),
            Error::Journal { path, .. } => {
                format!("set the knobs it names by hand, then sudo rm {}", path.display())
            }
            Error::Unrestored(_) => "sudo vmtax restore".to_owned(),
            Error::NoSuchWord { switch, .. } => format!("one of {}", switch.words().join(", ")),
            Error::Unavailable { remedy, .. } => remedy.clone(),
            Error::VmsRunning { users, .. } if users.is_empty() => "see who holds it: lsmod".to_owned(),
            Error::VmsRunning { .. } => "end these VMs".to_owned(),
            Error::NotTaken { .. } | Error::Guardian(_) | Error::Io { .. } => return None,
        };
        Some(text)
    }
}

fn holder(pid: &Option<u32>, doing: &str) -> String {
    match pid {
        Some(pid) => format!("process {pid}, {doing}"),
        None => "its process is not known yet".to_owned(),
    }
}

/// Memory figures are read by people here: a number in KiB would hide the size in digits.
fn whole_mib(bytes: Bytes) -> Bytes {
    Bytes(bytes.0 / MIB * MIB)
}

fn list(outcomes: &[Outcome]) -> String {
    outcomes.iter().map(Outcome::to_string).collect::<Vec<_>>().join("; ")
}

fn names(users: &[VmUser]) -> String {
    match users {
        [] => "by no process that can be seen".to_owned(),
        users => users.iter().map(VmUser::to_string).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_operation_operand_and_way_out() {
        let check = |error: Error, text: &str, remedy: &str| {
            assert_eq!(error.to_string(), text);
            assert_eq!(error.remedy().unwrap(), remedy);
        };
        check(
            Error::Partial { page: PageSize::Large, needed: 512, granted: 37 },
            "cannot reserve 2 MiB pages: 512 needed, 37 granted",
            "memory is fragmented: echo 1 | sudo tee /proc/sys/vm/drop_caches /proc/sys/vm/compact_memory, \
             or ask for less, such as --size 512M",
        );
        check(
            Error::TooMuch { needed: Bytes(3 << 30), available: Bytes((4 << 30) + 4096) },
            "cannot reserve 3 GiB in huge pages: more than half of the 4 GiB that are available",
            "free memory, or ask for 2 GiB at most",
        );
        check(
            Error::io("raise", Path::new("/sys/x"), io::ErrorKind::PermissionDenied.into()),
            "not permitted to raise /sys/x",
            "run it as root: sudo vmtax ...",
        );
        check(
            Error::Held { pid: Some(7), doing: "measuring".into() },
            "another vmtax holds this host: process 7, measuring",
            "wait until it ends",
        );
    }
}
