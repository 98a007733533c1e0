//! The setting that would open a way.

use std::path::Path;

use vmtax_core::units::{KIB, MIB, PageSize};

use super::{Outcome, Way};

/// What would grant an attempt with this outcome; none when it was granted.
pub(super) fn of(way: Way, page: PageSize, outcome: &Outcome, directory: &Path) -> Option<String> {
    match outcome {
        Outcome::Granted => None,
        Outcome::Refused { errno, .. } => Some(refused(way, page, *errno, directory)),
        Outcome::Killed { .. } => Some(limit(page, "")),
        Outcome::NotTested { .. } => Some("run it as root".to_owned()),
    }
}

fn refused(way: Way, page: PageSize, errno: i32, directory: &Path) -> String {
    match (way, errno) {
        (Way::Shmget, libc::EPERM) => "sudo sysctl vm.hugetlb_shm_group=GID, a group the user is in; \
             or sudo setcap cap_ipc_lock+ep PROGRAM (before Linux 5.16 a large enough `ulimit -l` did as well)"
            .to_owned(),
        (Way::Shmget, libc::EINVAL) => {
            "sudo sysctl kernel.shmmax, at least the page; or a CPU with such pages".to_owned()
        }
        (Way::File, libc::EACCES | libc::EPERM) => {
            format!("sudo chmod 1777 {}, or mount it with -o mode=1777", directory.display())
        }
        (_, libc::ENOMEM | libc::ENOSPC) => format!("a larger pool: {}; or {}", empty_pool(page), limit(page, "rsvd.")),
        (_, libc::EINVAL | libc::ENODEV | libc::ENOENT) => {
            format!("a CPU and a kernel with hugetlb pages of {}", page.prose())
        }
        (Way::Mmap | Way::Shmget | Way::File | Way::Memfd, _) => "none that is known: see the error".to_owned(),
    }
}

/// How to put a page into the pool.
pub(super) fn empty_pool(page: PageSize) -> String {
    format!("echo 1 | sudo tee /sys/kernel/mm/hugepages/hugepages-{}kB/nr_hugepages", page.bytes() / KIB)
}

/// How to mount a hugetlbfs.
pub(super) fn no_mount(page: PageSize) -> String {
    format!("sudo mount -t hugetlbfs -o pagesize={}M,mode=1777 none DIRECTORY", page.bytes() / MIB)
}

/// The control group's limit, of the kernel's spelling: `hugetlb.2MB.max`.
fn limit(page: PageSize, kind: &str) -> String {
    let size = match page {
        PageSize::Small => "4KB",
        PageSize::Large => "2MB",
        PageSize::Giant => "1GB",
    };
    format!("a higher hugetlb.{size}.{kind}max of the control group")
}
