//! The executors on this host's memory and on its /dev/kvm; `VMTAX_REQUIRE=kvm` makes a missing one a failure.

use std::env;

use vmtax_core::{availability::Reserve, experiment::Finding, touch, walk};
use vmtax_machine::knob::Host;

use super::*;

static GO_ON: AtomicBool = AtomicBool::new(false);

/// One trial of the first cell of a plan with this workload.
fn trial(factors: &str, workload: &str) -> Result<Finding, TrialError> {
    let text = format!("[factors]\n{factors}\n[[workload]]\n{workload}\n");
    let plan = Plan::parse("plan.toml", &text).unwrap();
    let mut knobs = Knobs::of(&plan, Host::default(), None, Reserve::No);
    let (clock, until) = (Clock::default(), Until::Blocks(1));
    let mut bench = HostBench::new(&GO_ON, &mut knobs, &[], clock, Instant::now(), Duration::ZERO, until);
    let cell = &plan.cells()[0];
    let mut site = bench.lay(&plan.memory(cell), 7)?;
    let finding = bench.trial(&mut site, &plan, cell);
    bench.clear(site);
    finding
}

fn fact(finding: &Finding, name: &str) -> u64 {
    finding.evidence[name].parse().unwrap()
}

/// Whether guests can be made; said and, where it is required, demanded.
fn has_kvm() -> bool {
    let Err(e) = Kvm::new() else { return true };
    assert!(!env::var("VMTAX_REQUIRE").is_ok_and(|tiers| tiers.contains("kvm")), "/dev/kvm: {e}");
    println!("skipped: /dev/kvm: {e}");
    false
}

const NATIVE: &str = "venue = [\"native\"]\nhost = [\"4k\"]";
const GUEST: &str = "venue = [\"microvm\"]\nhost = [\"4k\"]\nguest = [\"4k\"]";

fn touched(factors: &str, populate: bool, vcpus: u32) -> Finding {
    trial(factors, &format!("probe = \"touch\"\nsize = \"16M\"\nvcpus = {vcpus}\npopulate = {populate}")).unwrap()
}

#[test]
fn a_first_touch_faults_once_a_page_unless_the_page_is_there() {
    for vcpus in [1, 2] {
        let (fresh, held) = (touched(NATIVE, false, vcpus), touched(NATIVE, true, vcpus));
        assert!(fact(&fresh, "host.minor_faults") >= 4096, "{fresh:?}");
        assert!(fact(&held, "host.minor_faults") < 100, "{held:?}");
        for finding in [fresh, held] {
            assert_eq!(finding.metrics[0].name, touch::NS_PER_PAGE);
            assert!(finding.metrics[0].value > 0.0 && finding.value("real_seconds").unwrap() > 0.0);
        }
    }
}

#[test]
fn a_first_touch_in_a_guest_faults_on_both_sides_unless_the_host_has_the_page() {
    if !has_kvm() {
        return;
    }
    let (fresh, held) = (touched(GUEST, false, 1), touched(GUEST, true, 1));
    assert!(fact(&fresh, "host.minor_faults") >= 4096 && fact(&held, "host.minor_faults") < 100, "{fresh:?} {held:?}");
    for finding in [fresh, held] {
        if finding.evidence.contains_key("kvm.pf_taken") {
            assert!(fact(&finding, "kvm.pf_taken") > 0 && fact(&finding, "kvm.pages_4k") >= 4096, "{finding:?}");
        }
    }
}

fn walked(factors: &str, order: &str) -> Finding {
    let text = format!("probe = \"walk\"\nsize = \"4M\"\nstride = \"4K\"\npasses = 5\norder = \"{order}\"");
    trial(factors, &text).unwrap()
}

#[test]
fn a_walk_leads_with_all_of_its_passes_and_tells_those_after_every_doubling() {
    for order in ["sequential", "random"] {
        let found = walked(NATIVE, order);
        let names: Vec<&str> = found.metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, [walk::LEADING, "ns_per_reference_1", "ns_per_reference_2", "ns_per_reference_4"]);
        assert_eq!((fact(&found, "walk.passes"), fact(&found, "walk.references")), (5, 5 * 1024));
        assert!(found.metrics.iter().all(|metric| metric.value > 0.0));
    }
    assert!(fact(&walked(NATIVE, "sequential"), "host.minor_faults") >= 1024, "the first touches are part of it");
}

#[test]
fn a_walk_in_a_guest_has_the_faults_of_both_sides() {
    if !has_kvm() {
        return;
    }
    let found = walked(GUEST, "sequential");
    assert!(fact(&found, "host.minor_faults") >= 1024, "{found:?}");
    if found.evidence.contains_key("kvm.pf_taken") {
        assert!(fact(&found, "kvm.pages_4k") >= 1024, "{found:?}");
    }
}

#[test]
fn one_byte_in_64_kib_takes_a_small_page_each() {
    let found = trial("host = [\"4k\"]\nstride = [\"64K\"]", "probe = \"bloat\"\nsize = \"16M\"").unwrap();
    assert_eq!((found.metrics[0].name.as_str(), found.value("bytes_used")), ("bytes_used", Some(256.0 * 4096.0)));
    assert_eq!(fact(&found, "touched_bytes"), 256);
}
