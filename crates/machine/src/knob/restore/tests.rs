use std::io;

use vmtax_core::units::PageSize;

use super::*;
use crate::knob::{Switch, fake::FakeHost};

const KNOB: Knob = Knob::Pool(PageSize::Large);

#[test]
fn only_what_was_borrowed_is_given_back() {
    let check = |old: u64, want: u64, got: Option<u64>, current: u64, expected| {
        let got_value = got.map(Value::from);
        let change = Change { knob: KNOB, old: old.into(), want: want.into(), got: got_value, is_settled: false };
        assert_eq!(judge(&change, &current.into()), expected, "{old} -> {want}, got {got:?}, now {current}");
    };
    check(0, 16, Some(16), 16, Step::Write(Value::Count(0)));
    check(8, 24, Some(24), 24, Step::Write(Value::Count(8)));
    check(0, 16, Some(12), 12, Step::Write(Value::Count(0)));
    check(0, 16, Some(16), 24, Step::Write(Value::Count(8)));
    check(8, 24, Some(20), 52, Step::Write(Value::Count(40)));
    check(0, 16, Some(16), 15, Step::LeaveAlone);
    check(8, 24, Some(24), 0, Step::LeaveAlone);
    check(8, 24, Some(24), 8, Step::Nothing);
    check(8, 24, Some(8), 8, Step::Nothing);
    check(8, 24, Some(8), 100, Step::Nothing);
    check(8, 24, Some(4), 4, Step::Nothing);
    check(0, 16, None, 0, Step::Nothing);
    check(8, 24, None, 4, Step::Nothing);
    check(0, 16, None, 1, Step::Write(Value::Count(0)));
    check(8, 24, None, 17, Step::Write(Value::Count(8)));
    check(8, 24, None, 24, Step::Write(Value::Count(8)));
    check(8, 24, None, 25, Step::LeaveAlone);
}

#[test]
fn what_was_lent_is_taken_back_and_what_others_did_stays_theirs() {
    let check = |old: u64, want: u64, got: Option<u64>, current: u64, expected| {
        let got_value = got.map(Value::from);
        let change = Change { knob: KNOB, old: old.into(), want: want.into(), got: got_value, is_settled: false };
        assert_eq!(judge(&change, &current.into()), expected, "{old} -> {want}, got {got:?}, now {current}");
    };
    check(16, 0, Some(0), 0, Step::Write(Value::Count(16)));
    check(24, 8, Some(8), 8, Step::Write(Value::Count(24)));
    check(16, 0, Some(0), 8, Step::Write(Value::Count(24)));
    check(24, 8, Some(8), 4, Step::LeaveAlone);
    check(24, 8, Some(8), 24, Step::Nothing);
    check(24, 8, Some(30), 30, Step::Nothing);
    check(16, 0, None, 16, Step::Nothing);
    check(16, 0, None, 20, Step::Nothing);
    check(16, 0, None, 0, Step::Write(Value::Count(16)));
    check(24, 8, None, 11, Step::Write(Value::Count(24)));
    check(24, 8, None, 7, Step::LeaveAlone);
}

#[test]
fn a_lowered_pool_that_gets_back_a_part_of_its_pages_gets_the_rest_later_and_no_more() {
    let fake = FakeHost::new(12, 1);
    let mut journal = Journal::open(&fake.host()).unwrap();
    journal.intend(KNOB, 16.into(), 0.into()).unwrap();
    journal.append(Record::Got { change: 0, value: 0.into() }).unwrap();
    assert_eq!(restored(&fake), ["pool of 2 MiB pages: 12 written as 16, read back as 12"]);
    assert!(fake.journal().exists(), "another start may find the memory");
    fake.set_limit(PageSize::Large, 100);
    assert_eq!(restored(&fake), ["pool of 2 MiB pages: 12 put back to 16"]);
    assert_eq!((fake.persistent(PageSize::Large), fake.journal().exists()), (16, false));
}

#[test]
fn a_switch_is_put_back_unless_somebody_else_has_set_it() {
    let check = |old: &str, want: &str, got: Option<&str>, current: &str, expected| {
        let knob = Knob::Switch(Switch::Thp);
        let change = Change { knob, old: old.into(), want: want.into(), got: got.map(Value::from), is_settled: false };
        assert_eq!(judge(&change, &current.into()), expected, "{old} -> {want}, got {got:?}, now {current}");
    };
    let back = || Step::Write("madvise".into());
    check("madvise", "never", Some("never"), "never", back());
    check("madvise", "never", Some("never"), "madvise", Step::Nothing);
    check("madvise", "never", Some("never"), "always", Step::LeaveAlone);
    check("madvise", "never", None, "never", back());
    check("madvise", "never", None, "madvise", Step::Nothing);
    check("madvise", "never", None, "always", Step::LeaveAlone);
    // A module: killed after loading, which adds what it derives; and between unloading and loading.
    let (old, want) = ("kvm_intel.ept=Y kvm_intel.nested=Y kvm_intel.pml=Y", "kvm_intel.ept=N kvm_intel.nested=Y");
    let loaded = "kvm_intel.ept=N kvm_intel.nested=Y kvm_intel.pml=N";
    check(old, want, None, loaded, Step::Write(old.into()));
    check(old, want, Some(loaded), loaded, Step::Write(old.into()));
    check(old, want, None, "", Step::Write(old.into()));
    check(old, want, Some(loaded), "", Step::Write(old.into()));
    check(old, want, Some(loaded), "kvm_intel.ept=N", Step::LeaveAlone);
}

/// A pool raised from 0 to 16 by a process that was killed, then set to `current` by somebody else.
fn killed(current: u64) -> FakeHost {
    let fake = FakeHost::new(100, 1);
    let mut journal = Journal::open(&fake.host()).unwrap();
    journal.intend(KNOB, 0.into(), 16.into()).unwrap();
    journal.append(Record::Got { change: 0, value: 16.into() }).unwrap();
    fake.pool(PageSize::Large, |pool| (pool.total, pool.free) = (current, current));
    fake
}

fn restored(fake: &FakeHost) -> Vec<String> {
    let outcomes = restore(&fake.host(), Contention::Refuse).unwrap();
    outcomes.iter().map(Outcome::to_string).collect()
}

#[test]
fn a_second_restoration_finds_nothing_to_do() {
    for (current, left, text) in [
        (16, 0, "pool of 2 MiB pages: 16 put back to 0"),
        (24, 8, "pool of 2 MiB pages: 24 put back to 8"),
        (0, 0, "pool of 2 MiB pages: already back at 0"),
        (9, 9, "pool of 2 MiB pages: left alone at 9; vmtax left 16, somebody lowered it; it was 0 before"),
    ] {
        let fake = killed(current);
        assert_eq!(restored(&fake), [text]);
        assert_eq!(fake.persistent(PageSize::Large), left);
        assert!(!fake.journal().exists());
        assert_eq!(restored(&fake), [""; 0]);
        assert_eq!(fake.persistent(PageSize::Large), left);
    }
}

#[test]
fn a_restoration_killed_before_or_after_its_write_is_finished_by_the_next() {
    // 32 = 16 borrowed and 16 of somebody else, who must keep them however often we start again.
    for (is_written, text) in [(false, "32 put back to 16"), (true, "already back at 16")] {
        let fake = killed(32);
        let mut journal = Journal::open(&fake.host()).unwrap();
        journal.append(Record::GivingBack { change: 0, from: 32.into(), to: 16.into() }).unwrap();
        if is_written {
            fake.pool(PageSize::Large, |pool| (pool.total, pool.free) = (16, 16));
        }
        assert_eq!(restored(&fake), [format!("pool of 2 MiB pages: {text}")]);
        assert_eq!(fake.persistent(PageSize::Large), 16);
    }
}

#[test]
fn two_changes_of_one_pool_are_undone_in_turn_and_left_alone_together() {
    for (current, left, writes) in [(40, 8, vec![24, 8]), (20, 20, vec![])] {
        let fake = killed(16);
        let mut journal = Journal::open(&fake.host()).unwrap();
        // Between the two somebody added 8.
        journal.intend(KNOB, 24.into(), 40.into()).unwrap();
        journal.append(Record::Got { change: 1, value: 40.into() }).unwrap();
        fake.pool(PageSize::Large, |pool| (pool.total, pool.free) = (current, current));
        restored(&fake);
        assert_eq!((fake.persistent(PageSize::Large), fake.writes()), (left, writes));
        assert!(!fake.journal().exists());
    }
}

#[test]
fn pages_in_use_are_reported_and_leave_by_themselves() {
    let fake = killed(16);
    fake.pool(PageSize::Large, |pool| pool.free = 13);
    assert_eq!(
        restored(&fake),
        ["pool of 2 MiB pages: 16 put back to 0; 3 still in use leave it when their users end"]
    );
    assert!(!fake.journal().exists());
}

#[test]
fn what_fails_stays_in_the_journal() {
    let fake = killed(16);
    fake.refuse_writes(Some(io::ErrorKind::ReadOnlyFilesystem));
    let path = KNOB.path(&fake.host());
    assert_eq!(
        restored(&fake),
        [format!(
            "pool of 2 MiB pages: not permitted to write {}: read-only filesystem or storage medium",
            path.display()
        )]
    );
    assert!(fake.journal().exists());
    fake.refuse_writes(None);
    assert_eq!(restored(&fake), ["pool of 2 MiB pages: 16 put back to 0"]);
}
