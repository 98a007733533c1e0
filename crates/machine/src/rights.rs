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
mod trial;

use std::{
    env,
    ffi::OsStr,
    fmt, io,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Output, Stdio},
};

use serde::Serialize;
use vmtax_core::units::{MIB, PageSize};

use crate::knob::{Host, Lease, Pool, Want};

/// The hidden argument of a process that makes one attempt.
const ARGUMENT: &str = "__rights";
/// `nobody`, on every Linux: the overflow user id (`/proc/sys/kernel/overflowuid`).
const NOBODY: u32 = 65534;

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

/// Tries every way, for 2 MiB and 1 GiB, as the present and as an ordinary user. A page that a pool lacks is borrowed through
/// `lease`, if there is one, and given back.
pub fn survey(host: &Host, mut lease: Option<&mut Lease>) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    for page in [PageSize::Large, PageSize::Giant] {
        let grant = lease.as_mut().map(|lease| lease.borrow_pool(Want { page, pages: 1 }));
        let ready = match (&grant, &Pool::read(host, page)) {
            (_, Ok(pool)) if pool.available() > 0 => Ok(()),
            (Some(Err(error)), _) | (None, Err(error)) => Err((error.to_string(), error.remedy())),
            (_, Ok(_) | Err(_)) => Err(("the pool is empty".to_owned(), Some(remedy::empty_pool(page)))),
        };
        for (person, way) in [Person::Present, Person::Ordinary].into_iter().flat_map(|p| Way::ALL.map(|way| (p, way)))
        {
            attempts.push(match &ready {
                Ok(()) => attempt(host, way, page, person),
                Err((reason, remedy)) => not_tested(way, page, person, reason, remedy.clone()),
            });
        }
        if let (Some(lease), Some(Ok(grant))) = (lease.as_mut(), grant) {
            // What cannot be given back now stays in the journal: the end of the lease tries again, and says so.
            let _ = lease.give_back(grant);
        }
    }
    attempts
}

fn attempt(host: &Host, way: Way, page: PageSize, person: Person) -> Attempt {
    if person == Person::Ordinary && !rustix::process::geteuid().is_root() {
        let reason = "only root can become another user; the present user's attempt is an ordinary one";
        return not_tested(way, page, person, reason, Some("run it as root".to_owned()));
    }
    let mounts = host.kernel.read(&host.proc.join("self/mounts")).unwrap_or_default();
    let directory = match (way, mount_point(&mounts, page)) {
        (Way::File, None) => {
            let reason = format!("no hugetlbfs of {} pages is mounted", page.prose());
            return not_tested(way, page, person, &reason, Some(remedy::no_mount(page)));
        }
        (Way::File, Some(directory)) => directory,
        (Way::Mmap | Way::Shmget | Way::Memfd, _) => PathBuf::new(),
    };
    match run(way, page, person, &directory) {
        Ok(output) => {
            let outcome = read_outcome(&output);
            let remedy = remedy::of(way, page, &outcome, &directory);
            Attempt { way, page, person, outcome, remedy }
        }
        Err(error) => {
            let reason = format!("the process that tries did not start: {error}");
            not_tested(way, page, person, &reason, Some("make the program executable for everybody".to_owned()))
        }
    }
}

fn not_tested(way: Way, page: PageSize, person: Person, reason: &str, remedy: Option<String>) -> Attempt {
    Attempt { way, page, person, outcome: Outcome::NotTested { reason: reason.to_owned() }, remedy }
}

fn run(way: Way, page: PageSize, person: Person, directory: &Path) -> io::Result<Output> {
    let mut command = Command::new("/proc/self/exe");
    command.args([ARGUMENT, way.name(), page.name()]).arg(directory).current_dir("/").stdin(Stdio::null());
    match person {
        Person::Present => {}
        // Groups are dropped with it, and capabilities by the change from root (capabilities(7)).
        Person::Ordinary => {
            command.uid(NOBODY).gid(NOBODY);
        }
    }
    command.output()
}

fn read_outcome(output: &Output) -> Outcome {
    if let Some(signal) = output.status.signal() {
        return Outcome::Killed { signal };
    }
    let text = String::from_utf8_lossy(&output.stdout);
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["granted"] => Outcome::Granted,
        ["refused", operation, errno] => {
            Outcome::Refused { operation: operation.to_owned(), errno: errno.parse().unwrap_or(libc::EIO) }
        }
        _ => Outcome::NotTested {
            reason: "the process that tries said nothing: does its main call dispatch()?".to_owned(),
        },
    }
}

/// Where a hugetlbfs of this page size is mounted. `pagesize=1024M` is how the kernel spells 1 GiB.
fn mount_point(mounts: &str, page: PageSize) -> Option<PathBuf> {
    let option = format!("pagesize={}M", page.bytes() / MIB);
    mounts.lines().find_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, directory, "hugetlbfs", options, ..] if options.split(',').any(|o| o == option) => Some(directory.into()),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
