use std::io;

use vmtax_core::units::PageSize;

use super::*;
use crate::knob::fake::FakeHost;

fn lease(fake: &FakeHost) -> Lease {
    Lease::unguarded(fake.host(), Contention::Refuse).unwrap()
}

fn large(pages: u64) -> Want {
    Want { page: PageSize::Large, pages }
}

#[test]
fn borrowing_raises_by_what_lacks_and_never_lowers() {
    let check = |total, in_use, reserved, surplus, needed, writes: &[u64], borrowed| {
        let fake = FakeHost::new(1000, 1);
        let at_first = Pool { total, free: total - in_use, reserved, surplus };
        fake.pool(PageSize::Large, |pool| *pool = at_first);
        let mut lease = lease(&fake);
        let grant = lease.borrow_pool(large(needed)).unwrap();
        assert_eq!(fake.writes(), writes, "{at_first:?}, {needed} needed");
        assert_eq!(grant.borrowed, borrowed, "{at_first:?}, {needed} needed");
        assert!(grant.available >= needed);
        lease.release().unwrap();
        assert_eq!(Pool::read(&fake.host(), PageSize::Large).unwrap(), at_first, "put back");
        assert!(!fake.journal().exists());
    };
    check(0, 0, 0, 0, 16, &[16], 16);
    check(100, 0, 0, 0, 16, &[], 0);
    check(100, 0, 0, 0, 100, &[], 0);
    check(100, 90, 0, 0, 16, &[106], 6);
    check(100, 90, 4, 0, 16, &[110], 10);
    // 5 surplus pages in use: the raise must go beyond them to make any page available.
    check(105, 105, 0, 5, 16, &[121], 21);
    check(100, 100, 0, 0, 0, &[], 0);
}

#[test]
fn a_pool_that_could_only_partly_be_filled_is_given_back() {
    let fake = FakeHost::new(37, 1);
    fake.pool(PageSize::Large, |pool| (pool.total, pool.free) = (7, 7));
    let mut lease = lease(&fake);
    let error = lease.borrow_pool(large(512)).unwrap_err();
    assert_eq!(error.to_string(), "cannot reserve 2 MiB pages: 512 needed, 37 granted");
    assert_eq!(fake.persistent(PageSize::Large), 7);
    assert_eq!(fake.writes(), [512, 7]);
    lease.borrow_pool(large(30)).expect("what there is can still be borrowed");
    drop(lease);
    assert_eq!(fake.persistent(PageSize::Large), 7);
}

#[test]
fn what_one_grant_borrowed_can_be_given_back_alone() {
    let fake = FakeHost::new(37, 1);
    let mut lease = lease(&fake);
    lease.borrow_pool(large(16)).unwrap();
    let grant = lease.borrow_up_to(large(512)).unwrap();
    assert_eq!((grant.available, grant.borrowed), (37, 21), "as many as there are");
    lease.give_back(grant).unwrap();
    lease.give_back(grant).unwrap();
    assert_eq!(fake.writes(), [16, 512, 16]);
    let had = lease.borrow_up_to(large(8)).unwrap();
    lease.give_back(had).unwrap();
    assert_eq!(fake.persistent(PageSize::Large), 16, "nothing was borrowed for what was there");
}

#[test]
fn dropping_a_lease_while_panicking_puts_the_host_back() {
    let fake = FakeHost::new(100, 4);
    let mut lease = lease(&fake);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        lease.borrow_pool(large(16)).unwrap();
        lease.borrow_pool(Want { page: PageSize::Giant, pages: 2 }).unwrap();
        panic!("a bug");
    }));
    assert!(panicked.is_err());
    assert_eq!((fake.persistent(PageSize::Large), fake.persistent(PageSize::Giant)), (0, 0));
    assert!(!fake.journal().exists());
}

#[test]
fn the_next_lease_puts_back_what_a_killed_one_left() {
    let fake = FakeHost::new(100, 4);
    let mut killed = lease(&fake);
    killed.borrow_pool(large(16)).unwrap();
    killed.borrow_pool(large(24)).unwrap();
    killed.lock = None;
    drop(killed);
    assert_eq!(fake.persistent(PageSize::Large), 24);
    let next = lease(&fake);
    assert_eq!(fake.persistent(PageSize::Large), 0);
    let texts: Vec<_> = next.recovered().iter().map(Outcome::to_string).collect();
    assert_eq!(texts, ["pool of 2 MiB pages: 24 put back to 16", "pool of 2 MiB pages: 16 put back to 0"]);
}

#[test]
fn a_refused_write_is_an_error_with_its_remedy_and_leaves_nothing_to_put_back() {
    let fake = FakeHost::new(100, 4);
    let mut lease = lease(&fake);
    fake.refuse_writes(Some(io::ErrorKind::PermissionDenied));
    let error = lease.borrow_pool(large(16)).unwrap_err();
    assert!(error.to_string().starts_with("not permitted to raise "), "{error}");
    assert_eq!(error.remedy().unwrap(), "run it as root: sudo vmtax ...");
    assert_eq!(lease.release().unwrap(), []);
    assert!(!fake.journal().exists());
}

#[test]
fn a_page_size_without_a_pool_and_too_much_memory_are_refused_before_any_change() {
    let fake = FakeHost::new(100, 4);
    fake.set_available_mib(64);
    let mut lease = lease(&fake);
    assert!(matches!(
        lease.borrow_pool(Want { page: PageSize::Small, pages: 1 }),
        Err(Error::NoPool { page: PageSize::Small })
    ));
    assert!(matches!(lease.borrow_pool(large(17)), Err(Error::TooMuch { .. })));
    assert_eq!(fake.writes(), [0; 0]);
    lease.borrow_pool(large(16)).unwrap();
}
