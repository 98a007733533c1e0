use std::io;

use vmtax_core::units::PageSize;

use super::*;
use crate::knob::{Contention, Outcome, Pool, Switch, Want, fake::FakeHost, restore};

const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const KSM: &str = "sys/kernel/mm/ksm/run";

/// A host whose pools hold 16 pages of 2 MiB and none of 1 GiB.
fn host() -> FakeHost {
    let fake = FakeHost::new(100, 4);
    fake.file(THP, "always [madvise] never\n");
    fake.file(KSM, "0\n");
    fake.pool(PageSize::Large, |pool| (pool.total, pool.free) = (16, 16));
    fake
}

fn lease(fake: &FakeHost) -> Lease {
    Lease::unguarded(fake.host(), Contention::Refuse).unwrap()
}

fn panel(fake: &FakeHost) -> Panel {
    let pools = [PageSize::Large, PageSize::Giant].map(Knob::Pool);
    let switches = [Switch::Thp, Switch::Ksm, Switch::NestedPaging].map(Knob::Switch);
    Panel::find(&fake.host(), pools.into_iter().chain(switches))
}

fn now(panel: &Panel, fake: &FakeHost) -> String {
    let readings = panel.readings(&fake.host()).unwrap();
    readings.iter().map(|reading| reading.now.to_string()).collect::<Vec<_>>().join(" ")
}

fn texts(outcomes: &[Outcome]) -> Vec<String> {
    outcomes.iter().map(Outcome::to_string).collect()
}

#[test]
fn knobs_are_set_together_and_those_not_named_go_back_to_what_they_were_found_at() {
    let fake = host();
    let (mut panel, mut lease) = (panel(&fake), lease(&fake));
    let thp = |word| Position::switch(Switch::Thp, word);
    let pool = |pages| Position::pool(PageSize::Large, pages);
    let mut check = |positions: &[Position], expected: &str| {
        panel.set(&mut lease, positions).unwrap();
        assert_eq!(now(&panel, &fake), expected, "{positions:?}");
    };
    check(&[], "16 0 madvise 0");
    check(&[thp("always"), pool(32)], "32 0 always 0");
    check(&[thp("never"), pool(0), Position::pool(PageSize::Giant, 2)], "0 2 never 0");
    check(&[pool(8), Position::switch(Switch::Ksm, "2")], "8 0 madvise 2");
    check(&[pool(24)], "24 0 madvise 0");
    let turned: Vec<String> = panel.turned().map(ToString::to_string).collect();
    assert_eq!(
        turned,
        ["pool of 2 MiB pages: 16", "pool of 1 GiB pages: 0", "transparent huge pages: madvise", "KSM: 0"]
    );
    assert_eq!(texts(&lease.release().unwrap()), ["pool of 2 MiB pages: 24 put back to 16"]);
    assert_eq!(now(&panel, &fake), "16 0 madvise 0");
}

#[test]
fn a_killed_run_that_had_lowered_a_pool_is_put_right_by_the_next_start() {
    for pages in [0, 8, 40] {
        let fake = host();
        let (mut panel, mut killed) = (panel(&fake), lease(&fake));
        panel.set(&mut killed, &[Position::pool(PageSize::Large, 40)]).unwrap();
        panel.set(&mut killed, &[Position::pool(PageSize::Large, pages)]).unwrap();
        killed.forget();
        let outcomes = restore(&fake.host(), Contention::Refuse).unwrap();
        assert_eq!(texts(&outcomes), [format!("pool of 2 MiB pages: {pages} put back to 16")]);
        assert_eq!(now(&panel, &fake), "16 0 madvise 0");
        assert!(!fake.journal().exists());
    }
}

#[test]
fn a_pool_is_lowered_by_free_pages_alone() {
    let fake = host();
    fake.pool(PageSize::Large, |pool| (pool.free, pool.reserved) = (10, 2));
    let wanted = [Position::pool(PageSize::Large, 7)];
    let expected = "cannot lower the pool of 2 MiB pages to 7: 8 of its 16 are in use";
    assert_eq!(Position::check(&fake.host(), &wanted).unwrap_err().to_string(), expected);
    let mut lease = lease(&fake);
    let error = lease.set(&wanted[0]).unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.remedy().unwrap(), "end their users, or ask for 8 pages at least");
    assert_eq!(fake.writes(), [0; 0]);
    lease.set(&Position::pool(PageSize::Large, 8)).unwrap();
    assert_eq!(Pool::read(&fake.host(), PageSize::Large).unwrap().persistent(), 8);
}

#[test]
fn a_pool_granted_in_part_puts_back_all_that_was_set_with_it() {
    let fake = host();
    let (mut panel, mut lease) = (panel(&fake), lease(&fake));
    let positions = [Position::switch(Switch::Thp, "never"), Position::pool(PageSize::Large, 200)];
    let error = panel.set(&mut lease, &positions).unwrap_err();
    assert_eq!(error.to_string(), "the pool of 2 MiB pages was to have 200, 100 were granted");
    assert_eq!(now(&panel, &fake), "16 0 madvise 0");
    assert_eq!(texts(&lease.release().unwrap()), [""; 0], "nothing is left to put back");
}

#[test]
fn a_pool_taken_by_somebody_else_between_check_and_use_is_not_lowered_under_them() {
    let fake = host();
    let wanted = [Position::pool(PageSize::Large, 0)];
    Position::check(&fake.host(), &wanted).unwrap();
    fake.pool(PageSize::Large, |pool| pool.free = 3);
    let (mut panel, mut lease) = (panel(&fake), lease(&fake));
    let error = panel.set(&mut lease, &wanted).unwrap_err();
    assert_eq!(error.to_string(), "cannot lower the pool of 2 MiB pages to 0: 13 of its 16 are in use");
    assert_eq!((fake.persistent(PageSize::Large), fake.writes()), (16, vec![]));
}

#[test]
fn borrowed_pages_and_a_pool_that_is_set_do_not_disturb_each_other() {
    let fake = host();
    let (mut panel, mut lease) = (panel(&fake), lease(&fake));
    lease.borrow_pool(Want { page: PageSize::Giant, pages: 2 }).unwrap();
    panel.set(&mut lease, &[Position::pool(PageSize::Large, 4), Position::pool(PageSize::Giant, 2)]).unwrap();
    panel.set(&mut lease, &[Position::pool(PageSize::Giant, 2)]).unwrap();
    assert_eq!(now(&panel, &fake), "16 2 madvise 0");
    assert_eq!(texts(&lease.release().unwrap()), ["pool of 1 GiB pages: 2 put back to 0"]);
}

#[test]
fn what_all_pools_of_a_whole_plot_lack_together_is_judged_together() {
    let fake = host();
    fake.set_available_mib(8192);
    let large = Position::pool(PageSize::Large, 16 + 1024);
    let giant = Position::pool(PageSize::Giant, 3);
    Position::check(&fake.host(), std::slice::from_ref(&large)).unwrap();
    Position::check(&fake.host(), std::slice::from_ref(&giant)).unwrap();
    let error = Position::check(&fake.host(), &[large, giant]).unwrap_err();
    assert!(matches!(error, Error::TooMuch { .. }), "{error}");
}

#[test]
fn somebody_elses_hand_is_seen() {
    let fake = host();
    let (mut panel, mut lease) = (panel(&fake), lease(&fake));
    panel.set(&mut lease, &[Position::switch(Switch::Thp, "always")]).unwrap();
    fake.file(THP, "always madvise [never]\n");
    let readings = panel.readings(&fake.host()).unwrap();
    let contradictions: Vec<String> = readings.iter().filter_map(Reading::contradiction).collect();
    assert_eq!(
        contradictions,
        ["transparent huge pages was set to always, but reads never: somebody else has turned it"]
    );
}

#[test]
fn a_knob_that_this_host_lacks_is_refused_with_the_reason_and_a_read_only_one_too() {
    let fake = host();
    let (mut panel, mut lease) = (panel(&fake), lease(&fake));
    let error = panel.set(&mut lease, &[Position::switch(Switch::NestedPaging, "N")]).unwrap_err();
    assert_eq!(error.to_string(), "cannot turn nested paging: KVM is not loaded");
    fake.refuse_writes(Some(io::ErrorKind::ReadOnlyFilesystem));
    let error = panel.set(&mut lease, &[Position::switch(Switch::Ksm, "1")]).unwrap_err();
    assert!(error.to_string().starts_with("not permitted to turn "), "{error}");
    assert!(error.remedy().unwrap().contains("outside the container"));
}

#[test]
fn a_module_that_does_not_unload_leaves_everything_as_it_was() {
    let fake = host();
    for (path, text) in [("parameters/ept", "Y"), ("parameters/nested", "Y"), ("initstate", "live"), ("refcnt", "0")] {
        fake.file(&format!("sys/module/kvm_intel/{path}"), &format!("{text}\n"));
    }
    fake.refuse_unloading(true);
    let (mut panel, mut lease) = (panel(&fake), lease(&fake));
    let positions = [Position::switch(Switch::Thp, "never"), Position::switch(Switch::NestedPaging, "N")];
    let error = panel.set(&mut lease, &positions).unwrap_err();
    assert!(error.to_string().starts_with("cannot unload "), "{error}");
    assert_eq!(now(&panel, &fake), "16 0 madvise 0 Y");
    assert_eq!(texts(&lease.release().unwrap()), [""; 0]);
    assert_eq!(fake.module_calls(), ["unload kvm_intel"], "tried once, and the module never went");
}
