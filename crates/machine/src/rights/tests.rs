use std::{
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitStatus, Output},
};

use super::{
    survey::{mount_point, not_tested, read_outcome},
    *,
};

const MOUNTS: &str = "\
proc /proc proc rw,relatime 0 0
hugetlbfs /dev/hugepages hugetlbfs rw,nosuid,nodev,relatime,pagesize=2M 0 0
none /mnt/giant hugetlbfs rw,relatime,mode=1777,pagesize=1024M 0 0
";

#[test]
fn a_mount_is_found_by_its_page_size() {
    assert_eq!(mount_point(MOUNTS, PageSize::Large), Some("/dev/hugepages".into()));
    assert_eq!(mount_point(MOUNTS, PageSize::Giant), Some("/mnt/giant".into()));
    assert_eq!(mount_point("tmpfs /tmp tmpfs rw,pagesize=2M 0 0\n", PageSize::Large), None);
}

#[test]
fn what_an_attempt_said_is_read() {
    let check = |status: i32, said: &str, expected: Outcome| {
        let status = ExitStatus::from_raw(status);
        let output = Output { status, stdout: said.as_bytes().to_vec(), stderr: Vec::new() };
        assert_eq!(read_outcome(&output), expected);
    };
    check(0, "granted", Outcome::Granted);
    check(0, "refused shmget 1", Outcome::Refused { operation: "shmget".to_owned(), errno: 1 });
    check(libc::SIGBUS, "", Outcome::Killed { signal: libc::SIGBUS });
    let reason = "the process that tries said nothing: does its main call dispatch()?".to_owned();
    check(0, "running 3 tests", Outcome::NotTested { reason });
}

#[test]
fn a_refusal_names_the_setting_that_would_grant_it() {
    let check = |way, page, errno, expected: &str| {
        let outcome = Outcome::Refused { operation: way_call(way).to_owned(), errno };
        let remedy = remedy::of(way, page, &outcome, Path::new("/dev/hugepages")).unwrap();
        assert!(remedy.contains(expected), "{way:?} {errno}: {remedy}");
    };
    check(Way::Shmget, PageSize::Large, libc::EPERM, "vm.hugetlb_shm_group");
    check(Way::Shmget, PageSize::Giant, libc::EPERM, "cap_ipc_lock");
    check(Way::File, PageSize::Large, libc::EACCES, "chmod 1777 /dev/hugepages");
    check(Way::Mmap, PageSize::Giant, libc::ENOMEM, "hugepages-1048576kB/nr_hugepages");
    check(Way::Memfd, PageSize::Large, libc::ENOMEM, "hugetlb.2MB.rsvd.max");
    check(Way::Memfd, PageSize::Giant, libc::ENODEV, "1 GiB");
    assert_eq!(remedy::of(Way::Mmap, PageSize::Large, &Outcome::Granted, Path::new("")), None);
}

fn way_call(way: Way) -> &'static str {
    match way {
        Way::Mmap => "mmap",
        Way::Shmget => "shmget",
        Way::File => "open",
        Way::Memfd => "memfd_create",
    }
}

#[test]
fn an_attempt_reads_as_a_sentence() {
    let outcome = Outcome::Refused { operation: "shmget".to_owned(), errno: libc::EPERM };
    let (way, page, person) = (Way::Shmget, PageSize::Large, Person::Ordinary);
    let attempt = Attempt { way, page, person, outcome, remedy: None };
    assert_eq!(
        attempt.to_string(),
        "shmget of 2 MiB, ordinary user: refused: shmget: Operation not permitted (os error 1)"
    );
    let nothing = not_tested(Way::File, PageSize::Giant, Person::Present, "the pool is empty", None);
    assert_eq!(nothing.to_string(), "file of 1 GiB, present user: not tested: the pool is empty");
}
