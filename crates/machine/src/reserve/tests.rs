use vmtax_core::units::MIB;

use super::*;
use crate::knob::{Contention, fake::FakeHost};

fn plan(pages: u64) -> Plan {
    let (page, compaction) = (PageSize::Large, Compaction::Off);
    Plan { page, pages, rounds: 3, stress: 0.25, kept: 0.0, compaction, seed: 1 }
}

fn fake(limit: u64) -> FakeHost {
    let fake = FakeHost::new(limit, 1);
    fake.set_available_mib(256);
    fake.file("proc/buddyinfo", "Node 0, zone Normal 1 0 0 0 0 0 0 0 0 7 3\n");
    fake.file("proc/sys/vm/compact_memory", "\n");
    fake
}

static GO_ON: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

#[test]
fn each_round_asks_anew_and_says_what_was_granted() {
    for (limit, granted) in [(100, 40), (30, 23)] {
        let fake = fake(limit);
        fake.pool(PageSize::Large, |pool| (pool.total, pool.free) = (7, 7));
        let mut lease = Lease::unguarded(fake.host(), Contention::Refuse).unwrap();
        let mut seen = Vec::new();
        let rounds = run(&mut lease, &plan(40), &GO_ON, |round| seen.push(round.round)).unwrap();
        assert_eq!(seen, [1, 2, 3]);
        assert!(rounds.iter().all(|round| (round.asked, round.granted) == (40, granted)), "{rounds:?}");
        assert!(rounds.iter().all(|round| round.held == Some(Bytes(0)) && round.churn.taken > 0));
        assert_eq!(fake.writes(), [47, 7, 47, 7, 47, 7]);
        assert_eq!(lease.release().unwrap(), []);
    }
}

#[test]
fn memory_is_compacted_only_when_asked() {
    for (compaction, written) in [(Compaction::Off, "\n"), (Compaction::Before, "1\n")] {
        let fake = fake(100);
        let mut lease = Lease::unguarded(fake.host(), Contention::Refuse).unwrap();
        let rounds = run(&mut lease, &Plan { compaction, rounds: 1, ..plan(1) }, &GO_ON, |_| ()).unwrap();
        assert_eq!(fake.text("proc/sys/vm/compact_memory"), written);
        assert_eq!(rounds[0].compaction_seconds.is_some(), compaction == Compaction::Before);
    }
}

#[test]
fn the_published_plan_shrinks_to_the_host() {
    let fake = fake(1);
    let pages = |mib, page| {
        fake.set_available_mib(mib);
        Plan::published(&fake.host(), page, 0).unwrap().pages
    };
    assert_eq!(pages(64 << 10, PageSize::Large), 5000);
    assert_eq!(pages(64 << 10, PageSize::Giant), 9);
    let some = pages(4 << 10, PageSize::Large);
    assert!(some * 2 * MIB * 2 <= 4096 * MIB && some > 800, "{some}");
}
