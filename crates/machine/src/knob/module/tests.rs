use std::os::unix::fs::symlink;

use super::*;
use crate::knob::{Contention, Lease, Outcome, fake::FakeHost, restore};

const OLD: &str = "kvm_intel.ept=Y kvm_intel.nested=Y kvm_intel.unrestricted_guest=Y";

fn intel() -> FakeHost {
    let fake = FakeHost::new(0, 0);
    for (name, value) in
        [("ept", "Y"), ("nested", "Y"), ("unrestricted_guest", "Y"), ("vmentry_l1d_flush", "not required")]
    {
        fake.file(&format!("sys/module/kvm_intel/parameters/{name}"), &format!("{value}\n"));
    }
    fake.file("sys/module/kvm_intel/initstate", "live\n");
    fake.file("sys/module/kvm_intel/refcnt", "0\n");
    fake
}

fn lease(fake: &FakeHost) -> Lease {
    Lease::unguarded(fake.host(), Contention::Refuse).unwrap()
}

fn refusal(fake: &FakeHost, word: &str) -> (String, String) {
    let error = lease(fake).turn(Switch::NestedPaging, word).unwrap_err();
    assert_eq!(fake.module_calls(), [""; 0]);
    (error.to_string(), error.remedy().unwrap())
}

#[test]
fn the_module_is_reloaded_with_what_it_had_and_put_back_with_all_of_it() {
    let fake = intel();
    let mut lease = lease(&fake);
    let turn = lease.turn(Switch::NestedPaging, "N").unwrap();
    assert_eq!((turn.from.as_str(), turn.to.as_str()), ("Y", "N"));
    assert_eq!(fake.text("sys/module/kvm_intel/parameters/unrestricted_guest"), "N\n", "the fake derives it");
    let outcomes: Vec<String> = lease.release().unwrap().iter().map(Outcome::to_string).collect();
    assert_eq!(outcomes, ["nested paging: kvm_intel.ept=N put back to kvm_intel.ept=Y"]);
    assert_eq!(
        fake.module_calls(),
        [
            "unload kvm_intel",
            "load kvm_intel ept=N nested=Y",
            "unload kvm_intel",
            "load kvm_intel ept=Y nested=Y unrestricted_guest=Y"
        ]
    );
    assert_eq!(state(&fake.host()).unwrap(), OLD);
}

#[test]
fn a_kill_between_unloading_and_loading_is_put_right_by_the_next_start() {
    let fake = intel();
    let mut killed = lease(&fake);
    fake.refuse_loading(true);
    // Loading fails, and so does putting back: the module is gone, as after a kill.
    assert!(matches!(killed.turn(Switch::NestedPaging, "N"), Err(Error::Unrestored(_))));
    killed.forget();
    assert_eq!(state(&fake.host()).unwrap(), "");
    fake.refuse_loading(false);
    let outcomes = restore(&fake.host(), Contention::Refuse).unwrap();
    assert_eq!(outcomes[0].to_string(), "nested paging: nothing put back to kvm_intel.ept=Y");
    assert_eq!(state(&fake.host()).unwrap(), OLD);
}

#[test]
fn nested_paging_is_not_turned_under_a_vm() {
    let fake = intel();
    let fd = fake.host().proc.join("812/fd");
    fs::create_dir_all(&fd).unwrap();
    fs::write(fake.host().proc.join("812/comm"), "qemu-system-x86\n").unwrap();
    symlink("anon_inode:kvm-vm", fd.join("9")).unwrap();
    assert_eq!(
        refusal(&fake, "N"),
        (
            "cannot reload kvm_intel while it is in use: qemu-system-x86 (process 812)".to_owned(),
            "end these VMs".to_owned()
        )
    );
    lease(&fake).turn(Switch::NestedPaging, "Y").expect("it is on already");
}

#[test]
fn where_it_cannot_be_reloaded_the_way_through_the_boot_loader_is_named() {
    let fake = intel();
    fake.file("sys/module/kvm_intel/refcnt", "2\n");
    let (reason, remedy) = refusal(&fake, "N");
    assert_eq!(reason, "cannot turn nested paging: kvm_intel is in use 2 times, by no process that can be seen");
    assert_eq!(remedy, "boot with kvm_intel.ept=0");
    fs::remove_file(fake.host().sys.join("module/kvm_intel/initstate")).unwrap();
    let (reason, remedy) = refusal(&fake, "N");
    assert_eq!(reason, "cannot turn nested paging: kvm_intel is built into this kernel");
    assert_eq!(remedy, "boot with kvm_intel.ept=0");
}

#[test]
fn software_kvm_has_no_nested_paging_to_turn() {
    let fake = FakeHost::new(0, 0);
    fake.file("sys/module/kvm/parameters/tdp_mmu", "N\n");
    assert_eq!(refusal(&fake, "N").0, "cannot turn nested paging: neither kvm_intel nor kvm_amd is loaded");
    fake.file("sys/module/kvm_pvm/parameters/pvm_native", "N\n");
    assert_eq!(
        refusal(&fake, "N").0,
        "cannot turn nested paging: this host's KVM is kvm_pvm, which translates in software and has no nested paging"
    );
}

#[test]
fn npt_is_turned_on_without_what_was_off_for_want_of_it() {
    let fake = FakeHost::new(0, 0);
    for (name, value) in [("npt", "N"), ("nested", "1"), ("avic", "N"), ("vls", "0")] {
        fake.file(&format!("sys/module/kvm_amd/parameters/{name}"), &format!("{value}\n"));
    }
    assert_eq!(target(&fake.host(), "Y").unwrap(), "kvm_amd.npt=Y kvm_amd.nested=1");
    // Before it was a switch it was a number, and takes no letter.
    fake.file("sys/module/kvm_amd/parameters/npt", "1\n");
    assert_eq!(read(&fake.host()).unwrap(), "Y");
    assert_eq!(target(&fake.host(), "N").unwrap(), "kvm_amd.npt=0 kvm_amd.nested=1");
}
