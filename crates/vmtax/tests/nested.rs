//! A Linux guest in a host that is emulated: nested, under a KVM that is real, on huge pages borrowed there.
#![allow(clippy::unwrap_used, reason = "a test, whose helpers clippy takes for the program")]

mod host;

use std::process::Command;

use host::{Ran, has, vmtax};
use serde_json::Value;

/// What `image boot` saw of a guest with a tap in a sandbox whose kernel was given these words; none without QEMU, a kernel or an image.
fn boot(append: &str, vhost: &str) -> Option<(Value, String)> {
    let failed = |ran: Ran| (ran.code != Some(0)).then_some(ran.stderr);
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
    let obstacle = qemu.err().map(|e| format!("qemu-system-x86_64: {e}"));
    let obstacle = obstacle.or_else(|| failed(Ran::of(vmtax("image kernel").output().unwrap())));
    let obstacle = obstacle.or_else(|| failed(Ran::of(vmtax("image build").output().unwrap())));
    has("sandbox", obstacle).then(|| {
        let guest = "image boot --vcpus 1 --memory 256M --host 2m --reserve --net tap --json";
        let ran = Ran::of(vmtax(&format!("sandbox --image {append} -- {guest} --vhost {vhost}")).output().unwrap());
        let told = ran.stderr.clone();
        (ran.json(), told)
    })
}

/// What must be so whichever way KVM translates; the faults that it took.
fn faults((seen, told): &(Value, String)) -> u64 {
    let evidence = &seen["evidence"];
    assert_eq!(evidence["accel"], "kvm", "found by trying, without a word for it: {seen}");
    assert_eq!(seen["emulated"], true, "its host is: {seen}");
    assert_eq!(evidence["ram"]["kernel_page_kb"], 2048, "{seen}");
    assert!(evidence["kvm"]["pages_2m"].as_u64().unwrap() > 0, "{seen}");
    assert_eq!(seen["hello"]["unloaded"].as_array().map(Vec::len), Some(0), "{seen}");
    assert!(seen["finding"]["metrics"][0]["value"].as_f64().unwrap() > 0.0, "{seen}");
    assert!(told.contains("pool of 2 MiB pages: 128 put back to 0"), "{told}");
    evidence["kvm"]["faults"].as_u64().unwrap()
}

#[test]
fn a_linux_guest_boots_nested_on_huge_pages_with_nested_paging_and_vhost_and_without() {
    let (Some(nested), Some(shadow)) = (boot("", "on"), boot("--append kvm_amd.npt=0", "off")) else { return };
    let link = |(seen, _): &(Value, String)| seen["evidence"]["link"].clone();
    assert_eq!(link(&nested)["vhost_device"], true, "{nested:?}");
    assert!(link(&nested)["vhost_thread"]["seen"].is_u64(), "{nested:?}");
    assert_eq!(link(&shadow)["vhost_device"], false, "{shadow:?}");
    assert_eq!(link(&shadow)["vhost_thread"], "absent", "{shadow:?}");
    // Without, each change of the guest's page tables is KVM's to follow.
    let (nested, shadow) = (faults(&nested), faults(&shadow));
    assert!(nested * 4 < shadow, "{nested} faults with nested paging, {shadow} without");
}
