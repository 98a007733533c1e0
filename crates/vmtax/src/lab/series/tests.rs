//! The executors on this host's memory and on its /dev/kvm; `VMTAX_REQUIRE=kvm` makes a missing one a failure.

use std::env;

use vmtax_core::{
    setting::Setting,
    touch::{self, Populated},
    units::{Bytes, MIB, PageSize},
    walk,
};

use super::*;
use crate::lab;

static GO_ON: AtomicBool = AtomicBool::new(false);
const SIZE: Bytes = Bytes(16 * MIB);

fn touched(kvm: Option<&Kvm>, setting: Setting, populated: Populated) -> Finding {
    let bench = Bench { kvm, clock: Clock::default(), stop: &GO_ON };
    lab::touch::trial(&bench, touch::Cell { setting, populated }, SIZE).unwrap()
}

fn fact(finding: &Finding, name: &str) -> u64 {
    finding.evidence[name].parse().unwrap()
}

#[test]
fn a_first_touch_faults_once_a_page_unless_the_page_is_there() {
    let fresh = touched(None, Setting::native(Backing::Small), Populated::No);
    let held = touched(None, Setting::native(Backing::Small), Populated::Before);
    assert!(fact(&fresh, "host.minor_faults") >= 4096 && fact(&held, "host.minor_faults") < 100, "{fresh:?} {held:?}");
    for finding in [fresh, held] {
        assert!(finding.value(touch::NS_PER_PAGE).unwrap() > 0.0 && finding.value("real_seconds").unwrap() > 0.0);
    }
}

#[test]
fn a_first_touch_in_a_guest_faults_on_both_sides_unless_the_host_has_the_page() {
    let kvm = match Kvm::new() {
        Ok(kvm) => kvm,
        Err(e) => {
            assert!(!env::var("VMTAX_REQUIRE").is_ok_and(|tiers| tiers.contains("kvm")), "/dev/kvm: {e}");
            println!("skipped: /dev/kvm: {e}");
            return;
        }
    };
    let setting = Setting::microvm(PageSize::Small, Backing::Small);
    let fresh = touched(Some(&kvm), setting, Populated::No);
    let held = touched(Some(&kvm), setting, Populated::Before);
    assert!(fact(&fresh, "host.minor_faults") >= 4096 && fact(&held, "host.minor_faults") < 100, "{fresh:?} {held:?}");
    for finding in [fresh, held] {
        if finding.evidence.contains_key("kvm.pf_taken") {
            assert!(fact(&finding, "kvm.pf_taken") > 0 && fact(&finding, "kvm.pages_4k") >= 4096, "{finding:?}");
        }
    }
}

#[test]
fn a_walk_tells_its_average_after_every_doubling_of_passes() {
    let request = walk::Request {
        size: SIZE,
        strides: vec![Bytes(4096), Bytes(65536)],
        passes: 8,
        hosts: vec![Backing::Small],
        orders: vec![walk::Order::Sequential, walk::Order::Random],
    };
    let bench = Bench { kvm: None, clock: Clock::default(), stop: &GO_ON };
    for cell in request.cells() {
        let finding = lab::walk::trial(&bench, cell, &request).unwrap();
        let names: Vec<&str> = finding.metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, [1, 2, 4, 8].map(walk::metric));
        if cell.order == walk::Order::Sequential {
            assert!(fact(&finding, "host.minor_faults") >= SIZE.0 / cell.stride.0, "{cell:?} {finding:?}");
        }
    }
}

#[test]
fn every_cell_is_measured_once_a_block_and_a_seed_repeats_the_order() {
    let order = |seed| {
        let made = |cell| if cell == 3 { Err(TrialError::Failed("no".to_owned())) } else { Ok(Finding::default()) };
        let (records, ending) =
            run((seed, Until::Blocks(4)), &[1, 2, 3, 4], Instant::now(), &GO_ON, |_: Step<i32>| {}, made);
        assert_eq!(ending, Ending::Done);
        records.iter().map(|record| (record.block, record.cell)).collect::<Vec<_>>()
    };
    let first = order(5);
    assert_eq!(first, order(5));
    assert_ne!(first, order(6));
    for block in 0..4 {
        let mut cells: Vec<i32> = first.iter().filter(|(b, _)| *b == block).map(|(_, cell)| *cell).collect();
        cells.sort_unstable();
        assert_eq!(cells, [1, 2, 3, 4]);
    }
}

#[test]
fn an_interrupted_series_keeps_what_it_has() {
    let stop = AtomicBool::new(false);
    let made = |_| {
        stop.store(true, Ordering::Relaxed);
        Ok(Finding::default())
    };
    let (records, ending) = run((1, Until::Blocks(4)), &[1, 2], Instant::now(), &stop, |_: Step<i32>| {}, made);
    assert_eq!((records.len(), ending), (1, Ending::Interrupted));
}
