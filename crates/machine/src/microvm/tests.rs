//! On the real /dev/kvm of this machine; `VMTAX_REQUIRE=kvm` makes a missing one a failure.

use std::env;

use vmtax_core::{
    arena::Layout,
    probe::Probe,
    units::{GIB, MIB},
};

use super::*;
use crate::{
    arena::Arena,
    lane::{LaneError, run_phase},
};

static GO_ON: AtomicBool = AtomicBool::new(false);

fn device() -> Option<Kvm> {
    match Kvm::new() {
        Ok(kvm) => Some(kvm),
        Err(e) => {
            assert!(!env::var("VMTAX_REQUIRE").is_ok_and(|tiers| tiers.contains("kvm")), "/dev/kvm: {e}");
            eprintln!("skipped: /dev/kvm: {e}");
            None
        }
    }
}

fn arena(backing: Backing, probe: Probe, shares: u64) -> Arena {
    let memory = Memory::allocate(backing, Bytes(32 * MIB)).unwrap();
    Arena::new(memory, Layout::new(probe, Bytes(32 * MIB), Bytes(4 * KIB)).unwrap(), probe, 3, shares).unwrap()
}

#[test]
fn every_probe_gives_the_same_answers_in_a_guest_as_natively() {
    let Some(kvm) = device() else { return };
    for probe in Probe::ALL {
        for leaf in [PageSize::Small, PageSize::Large] {
            let arena = arena(Backing::Small, probe, 4);
            let mut vm = Microvm::new(&kvm, arena.memory(), leaf, 1, arena.code(), &GO_ON).unwrap();
            let mut cursors = [arena.cursor(0, 1)];
            let phase = run_phase(vm.vcpus(), &mut cursors, &arena, 8, &[]).unwrap();
            assert_eq!(phase.batches.len(), 8, "{probe} with {leaf} leaves");
        }
    }
}

#[test]
fn several_vcpus_share_the_arena() {
    let Some(kvm) = device() else { return };
    let arena = arena(Backing::Small, Probe::Chase, 2 * 3);
    let mut vm = Microvm::new(&kvm, arena.memory(), PageSize::Small, 2, arena.code(), &GO_ON).unwrap();
    let mut cursors = [arena.cursor(0, 2), arena.cursor(1, 2)];
    let phase = run_phase(vm.vcpus(), &mut cursors, &arena, 6, &[]).unwrap();
    assert!(phase.batches.iter().all(|batch| batch.ticks > 0));
}

/// KVM cannot map more than the host has: what it counts proves the backing as much as smaps does.
#[test]
fn kvm_counts_pages_no_larger_than_guest_and_host_both_allow() {
    let Some(kvm) = device() else { return };
    let on = |backing, leaf| {
        let arena = arena(backing, Probe::Touch, 1);
        let mut vm = Microvm::new(&kvm, arena.memory(), leaf, 1, arena.code(), &GO_ON).unwrap();
        run_phase(vm.vcpus(), &mut [arena.cursor(0, 1)], &arena, 1, &[]).unwrap();
        vm.counts()
    };
    let Some(small) = on(Backing::Small, PageSize::Large) else {
        eprintln!("skipped: this KVM keeps no binary statistics");
        return;
    };
    assert!(small.pages_4k >= 32 * MIB / (4 * KIB), "{small:?}");
    assert_eq!(small.pages_2m, 0, "{small:?}");
    let large = on(Backing::Thp, PageSize::Large).unwrap();
    assert!(large.pages_2m >= 32 * MIB / (2 * MIB), "{large:?}");
    assert!(large.faults > 0 && large.exits > 0, "{large:?}");
}

#[test]
fn a_payload_that_faults_is_reported_with_its_place() {
    let Some(kvm) = device() else { return };
    let arena = arena(Backing::Small, Probe::Chase, 1);
    let mut vm = Microvm::new(&kvm, arena.memory(), PageSize::Small, 1, arena.code(), &GO_ON).unwrap();
    let beyond = Call { arena: 0, bytes: 0, accesses: 1, position: arena.memory().address() + GIB, step: 0 };
    let error = vm.vcpus()[0].run(&beyond).unwrap_err().to_string();
    assert!(error.contains(" at rip 0x4000") && error.contains("r9=0x"), "{error}");
}

#[test]
fn a_guest_that_was_told_to_stop_is_interrupted() {
    let Some(kvm) = device() else { return };
    static STOP: AtomicBool = AtomicBool::new(true);
    let arena = arena(Backing::Small, Probe::Chase, 1);
    let mut vm = Microvm::new(&kvm, arena.memory(), PageSize::Small, 1, arena.code(), &STOP).unwrap();
    let call = arena.call(&arena.cursor(0, 1));
    assert!(matches!(vm.vcpus()[0].run(&call), Err(MicrovmError::Interrupted)));
}

/// A payload that never ends: the stop flag is not seen inside the guest, a kick is.
#[test]
fn a_guest_that_never_comes_back_can_be_called_out() {
    let Some(kvm) = device() else { return };
    static STOP: AtomicBool = AtomicBool::new(false);
    let arena = arena(Backing::Small, Probe::Chase, 1);
    let for_ever = Code { bytes: &[0xeb, 0xfe], ..*arena.code() }; // jmp to itself
    let mut vm = Microvm::new(&kvm, arena.memory(), PageSize::Small, 1, &for_ever, &STOP).unwrap();
    let mut cursors = [arena.cursor(0, 1)];
    std::thread::scope(|scope| {
        let lost = scope.spawn(|| run_phase(vm.vcpus(), &mut cursors, &arena, 1, &[]));
        STOP.store(true, Ordering::Relaxed);
        while !lost.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(10));
            kick::all();
        }
        assert!(matches!(lost.join().unwrap(), Err(LaneError::Run(MicrovmError::Interrupted))));
    });
}

#[test]
fn an_address_is_followed_to_the_byte_that_it_names() {
    let Some(kvm) = device() else { return };
    for leaf in [PageSize::Small, PageSize::Large] {
        let arena = arena(Backing::Thp, Probe::Touch, 1);
        let mut vm = Microvm::new(&kvm, arena.memory(), leaf, 1, arena.code(), &GO_ON).unwrap();
        run_phase(vm.vcpus(), &mut [arena.cursor(0, 1)], &arena, 1, &[]).unwrap();
        let gva = arena.memory().address() + 12_345_678;
        let translation = vm.translate(gva).unwrap().unwrap();
        // The arena lies at the same virtual address on both sides.
        assert_eq!((translation.walk.leaf, translation.hva), (leaf, gva));
        assert!(!translation.is_contradicted() && translation.kvm_gpa.is_some(), "{translation:?}");
        assert_eq!(vm.translate(gva + GIB).unwrap(), None);
        if let Some(page) = translation.frame.page {
            let covers = arena.memory().standing().unwrap().thp_coverage == 1.0;
            assert!(!covers || page == Bytes(2 * MIB), "{translation:?}");
            assert_eq!(translation.frame.hpa.unwrap() % 4096, gva % 4096);
        }
    }
}
