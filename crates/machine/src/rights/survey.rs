//! Starts the attempts, and reads what came of them.

use std::{
    io,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use vmtax_core::units::{MIB, PageSize};

use super::{ARGUMENT, Attempt, Outcome, Person, Way, remedy};
use crate::knob::{Host, Lease, Pool, Want};

/// `nobody`, on every Linux: the overflow user id (`/proc/sys/kernel/overflowuid`).
const NOBODY: u32 = 65534;

/// Tries every way, for 2 MiB and 1 GiB, as the present and as an ordinary user. A page that a pool lacks is borrowed through
/// `lease`, if there is one, and given back.
///
/// Not for a program whose `main` does not begin with [`crate::dispatch`]: it starts itself, and a test program would run
/// its tests again.
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

pub(super) fn not_tested(way: Way, page: PageSize, person: Person, reason: &str, remedy: Option<String>) -> Attempt {
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

pub(super) fn read_outcome(output: &Output) -> Outcome {
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
pub(super) fn mount_point(mounts: &str, page: PageSize) -> Option<PathBuf> {
    let option = format!("pagesize={}M", page.bytes() / MIB);
    mounts.lines().find_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, directory, "hugetlbfs", options, ..] if options.split(',').any(|o| o == option) => Some(directory.into()),
        _ => None,
    })
}
