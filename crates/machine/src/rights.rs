//! Which ways to huge pages are open to an ordinary user, and which need privilege: each tried for real.
//!
//! An attempt is a process of its own (`/proc/self/exe __rights WAY PAGE [DIRECTORY]`), because one may end in SIGBUS and because
//! user and capabilities are dropped for good. It asks for one page, writes a byte to it, says `granted` or `refused OPERATION
//! ERRNO`, and leaves nothing behind. Without a page in the pool an attempt would fail for that alone: it is not made.
//!
//! The published study found mmap open and shmget not, and wondered whether that is a hole. It is not: `SHM_HUGETLB` pages stay
//! when their process is gone, and are therefore asked for with CAP_IPC_LOCK or a group (`can_do_hugetlb_shm`,
//! fs/hugetlbfs/inode.c, 6.18); pages of a mapping end with it, and the pool is the limit.

mod remedy;
mod survey;
mod trial;

use std::{env, ffi::OsStr, fmt, io, path::PathBuf, process::ExitCode};

use serde::Serialize;
use vmtax_core::units::PageSize;

pub use survey::survey;

/// The hidden argument of a process that makes one attempt.
const ARGUMENT: &str = "__rights";

/// A way to a huge page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// `mmap(MAP_ANONYMOUS | MAP_HUGETLB)`.
    Mmap,
    /// `shmget(SHM_HUGETLB)`.
    Shmget,
    /// A file on a mounted hugetlbfs.
    File,
    /// `memfd_create(MFD_HUGETLB)`.
    Memfd,
}

/// Who tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Person {
    /// Whoever runs vmtax.
    Present,
    /// User and group 65534, no other group, no capability.
    Ordinary,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// A page was had, and written to.
    Granted,
    /// The kernel said no.
    Refused {
        /// The call that failed.
        operation: String,
        /// Its error number.
        errno: i32,
    },
    /// The page was promised, and writing to it was answered with a signal.
    Killed {
        /// Its number.
        signal: i32,
    },
    /// It was not tried.
    NotTested {
        /// Why.
        reason: String,
    },
}

/// One way, tried by one person for one page size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// The way.
    pub way: Way,
    /// The page size.
    pub page: PageSize,
    /// Who tried.
    pub person: Person,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The setting that would grant it; none when it was granted.
    pub remedy: Option<String>,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 4] = [Way::Mmap, Way::Shmget, Way::File, Way::Memfd];

    /// `mmap`, `shmget`, `file` or `memfd`.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Mmap => "mmap",
            Way::Shmget => "shmget",
            Way::File => "file",
            Way::Memfd => "memfd",
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let person = match self.person {
            Person::Present => "present user",
            Person::Ordinary => "ordinary user",
        };
        write!(f, "{} of {}, {person}: ", self.way.name(), self.page.prose())?;
        match &self.outcome {
            Outcome::Granted => f.write_str("granted"),
            Outcome::Refused { operation, errno } => {
                write!(f, "refused: {operation}: {}", io::Error::from_raw_os_error(*errno))
            }
            Outcome::Killed { signal } => write!(f, "ended by signal {signal} when it wrote to the page"),
            Outcome::NotTested { reason } => write!(f, "not tested: {reason}"),
        }
    }
}

/// The kernel's name for an error that an attempt may meet, or its number.
pub fn errno_name(errno: i32) -> String {
    let known = [
        (libc::EPERM, "EPERM"),
        (libc::EACCES, "EACCES"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::EINVAL, "EINVAL"),
        (libc::ENODEV, "ENODEV"),
        (libc::ENOENT, "ENOENT"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::EIO, "EIO"),
    ];
    let name = known.into_iter().find(|(number, _)| *number == errno);
    name.map_or_else(|| format!("errno {errno}"), |(_, name)| name.to_owned())
}

/// Makes an attempt if this process was started for one; part of [`crate::dispatch`].
pub fn dispatch() -> Option<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    if arguments.next()? != OsStr::new(ARGUMENT) {
        return None;
    }
    let way = arguments.next()?;
    let way = Way::ALL.into_iter().find(|candidate| OsStr::new(candidate.name()) == way)?;
    let page = arguments.next()?;
    let page = PageSize::ALL.into_iter().find(|candidate| OsStr::new(candidate.name()) == page)?;
    let directory = arguments.next().map(PathBuf::from).unwrap_or_default();
    Some(trial::say(trial::attempt(way, page, &directory)))
}

#[cfg(test)]
mod tests;
