//! The knobs, pages and memory of issue 3 on this very host: small amounts, and everything is put back.
//!
//! A lease starts this program again as its guardian, so it has a `main` and no test harness. What this host or this user
//! cannot do prints `skipped: reason`; `VMTAX_REQUIRE=pool` makes that a failure.
#![allow(clippy::unwrap_used, reason = "a test, which clippy cannot see without a harness")]

use std::sync::atomic::AtomicBool;
use std::{env, process::ExitCode, time::Duration};

use vmtax_core::{
    setting::Backing,
    units::{Bytes, GIB, MIB, PageSize},
};
use vmtax_machine::{
    backing::{Foundation, Memory},
    bloat::{self, Pattern, Touch},
    knob::{Contention, Host, Lease, Pool, Switch, Want},
    mthp::{self, Evidence, Mthp},
    reserve::{self, Compaction, Plan},
    rights::{self, Outcome},
};

fn main() -> ExitCode {
    if let Some(code) = vmtax_machine::dispatch() {
        return code;
    }
    let host = Host::default();
    let before = standing(&host);
    let busy = Contention::WaitAtMost(Duration::from_secs(120));
    let mut lease = match Lease::acquire(host.clone(), busy) {
        Ok(lease) => lease,
        Err(error) => {
            every_way_to_huge_pages_has_an_outcome(&host, None);
            println!("skipped: {error}");
            return code(env::var("VMTAX_REQUIRE").is_ok_and(|tiers| tiers.split(',').any(|tier| tier == "pool")));
        }
    };
    every_switch_of_this_host_turns_or_says_why_not(&mut lease);
    memory_stands_on_the_size_of_page_it_asked_for(&mut lease);
    bytes_far_apart_take_a_page_each(&mut lease);
    pages_are_prepared_after_stress(&mut lease);
    every_way_to_huge_pages_has_an_outcome(&host, Some(&mut lease));
    for outcome in lease.release().unwrap() {
        println!("put back: {outcome}");
    }
    assert_eq!(standing(&host), before);
    ExitCode::SUCCESS
}

fn code(is_failure: bool) -> ExitCode {
    if is_failure { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What the tests change, as it reads.
fn standing(host: &Host) -> Vec<String> {
    let pool = |page| Pool::read(host, page).map(|pool| pool.persistent().to_string()).unwrap_or_default();
    let switches = [Switch::Thp, Switch::Ksm, Switch::NxHugePages, Switch::NestedPaging].into_iter();
    let words = switches.chain(Mthp::all().map(Switch::Mthp)).map(|switch| switch.read(host).unwrap_or_default());
    words.chain([pool(PageSize::Large), pool(PageSize::Giant)]).collect()
}

fn every_switch_of_this_host_turns_or_says_why_not(lease: &mut Lease) {
    for switch in [Switch::Thp, Switch::Ksm, Switch::NxHugePages, Switch::NestedPaging] {
        let Ok(now) = switch.read(lease.host()) else {
            println!("skipped: {}", lease.turn(switch, switch.words()[0]).unwrap_err());
            continue;
        };
        let other = switch.words().iter().find(|word| **word != now).unwrap();
        match lease.turn(switch, other) {
            Ok(turn) => {
                assert_eq!((turn.from.as_str(), switch.read(lease.host()).unwrap().as_str()), (now.as_str(), *other));
                lease.turn(switch, &now).unwrap();
                println!("{switch}: {now} to {other} and back: ok");
            }
            Err(error) => println!("skipped: {error}; {}", error.remedy().unwrap_or_default()),
        }
    }
}

fn memory_stands_on_the_size_of_page_it_asked_for(lease: &mut Lease) {
    for size in ["thp-64k", "thp-512k", "thp-2m"] {
        let size: Mthp = size.parse().unwrap();
        if let Err(error) = mthp::isolate(lease, size) {
            println!("skipped: {error}");
            continue;
        }
        let faults = size.faults(lease.host());
        let memory = Memory::allocate(size, Bytes(32 * MIB)).unwrap();
        let standing = size.standing(lease.host(), &memory, faults).unwrap();
        let counted = size.faults(lease.host());
        println!(
            "{size}: {:.0} % by {:?}, faults {faults:?} then {counted:?}",
            standing.coverage * 100.0,
            standing.evidence
        );
        assert!(standing.coverage > 0.5 || standing.evidence == Evidence::Faults, "{standing:?}");
    }
}

fn bytes_far_apart_take_a_page_each(lease: &mut Lease) {
    for name in ["4k", "thp", "thp-64k", "2m", "1g"] {
        let foundation: Foundation = name.parse().unwrap();
        if let Err(error) = prepare(lease, foundation) {
            println!("skipped: {error}");
            continue;
        }
        for gap in [MIB, 8 * MIB, GIB] {
            let touch = Touch { bytes: Bytes(GIB), pattern: Pattern::Every(Bytes(gap)) };
            let bloat = match bloat::measure(lease.host(), foundation, touch) {
                Ok(bloat) => bloat,
                Err(error) => {
                    println!("skipped: {error}");
                    continue;
                }
            };
            println!(
                "{name}, a byte in each {}: {} used, {:?}, {:?} pages of the pool",
                Bytes(gap),
                bloat.used(),
                bloat.usage,
                bloat.pool_pages
            );
            assert!(bloat.used().0 >= bloat.touched.0 * 4096, "{bloat:?}");
            if let Some(pages) = bloat.pool_pages {
                assert_eq!(bloat.used().0, pages * foundation.page_bytes(), "{bloat:?}");
            }
        }
    }
}

fn prepare(lease: &mut Lease, foundation: Foundation) -> Result<(), vmtax_machine::knob::Error> {
    match foundation {
        Foundation::Mthp(size) => mthp::isolate(lease, size).map(drop),
        Foundation::Backing(Backing::Small) => Ok(()),
        Foundation::Backing(Backing::Thp) => {
            let pmd = Mthp::new(Bytes(2 * MIB)).unwrap();
            lease.turn(Switch::Mthp(pmd), "inherit")?;
            lease.turn(Switch::Thp, "madvise").map(drop)
        }
        Foundation::Backing(Backing::Huge2m) => lease.borrow_pool(Want { page: PageSize::Large, pages: 512 }).map(drop),
        Foundation::Backing(Backing::Huge1g) => lease.borrow_pool(Want { page: PageSize::Giant, pages: 1 }).map(drop),
    }
}

fn pages_are_prepared_after_stress(lease: &mut Lease) {
    for compaction in [Compaction::Off, Compaction::Before] {
        let page = PageSize::Large;
        let plan = Plan { page, pages: 64, rounds: 2, stress: 0.01, kept: 0.1, compaction, seed: 1 };
        let before = Pool::read(lease.host(), page).unwrap();
        let rounds = reserve::run(lease, &plan, &AtomicBool::new(false), |round| {
            println!("{} of {} pages in {:.6} s", round.granted, round.asked, round.seconds);
        });
        match rounds {
            Ok(rounds) => assert!(rounds.len() == 2 && rounds.iter().all(|round| round.asked == 64)),
            Err(error) => println!("skipped: {error}"),
        }
        let _ = before;
    }
}

fn every_way_to_huge_pages_has_an_outcome(host: &Host, lease: Option<&mut Lease>) {
    let attempts = rights::survey(host, lease);
    assert_eq!(attempts.len(), 16);
    for attempt in &attempts {
        println!("{attempt}");
        let is_explained = matches!(attempt.outcome, Outcome::Granted) || attempt.remedy.is_some();
        assert!(is_explained, "{attempt:?}");
    }
}
