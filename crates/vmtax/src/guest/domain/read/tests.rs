use vmtax_core::units::GIB;

use super::*;
use crate::guest::machine::{Access, Disk, Net, Vhost};

const PLAIN: &str = include_str!("../fixture/plain.xml");
const HUGE: &str = include_str!("../fixture/huge.xml");
const VHOST_OFF: &str = include_str!("../fixture/vhost_off.xml");
const PINNED: &str = include_str!("../fixture/pinned.xml");

fn domain(xml: &str) -> Domain {
    read("vm.xml", xml).unwrap()
}

#[test]
fn a_plain_domain_is_a_machine_on_transparent_pages_with_vhost() {
    let Domain { name, machine, pin, notes } = domain(PLAIN);
    assert_eq!((name.as_str(), pin), ("plain", Vec::new()));
    let expected = Machine {
        qemu: "/usr/bin/qemu-system-x86_64".into(),
        board: "pc-q35-7.2".to_owned(),
        vcpus: 2,
        memory: Bytes(2 * GIB),
        net: Some(Net::Tap { name: None, vhost: Vhost::On }),
        ..Machine::new(Accel::Kvm)
    };
    assert_eq!(machine, expected);
    let expected = [
        "KSM may merge its memory (no nosharepages); here it never does.",
        "Its memory comes as it is touched; here it is there before the guest starts.",
        "Its network card (network) has a tap of its own here, connected to nothing.",
        "libvirt has its packets moved by vhost where that can be; here they must be.",
        "Its disk vda is left out: qcow2 is not read here.",
        "Not taken over: devices/memballoon.",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn huge_pages_and_a_named_processor_are_taken_over() {
    let Domain { machine, notes, .. } = domain(HUGE);
    let expected = Machine {
        qemu: "/opt/qemu/bin/qemu-system-x86_64".into(),
        board: "pc-i440fx-7.2".to_owned(),
        cpu: Some("Skylake-Server-IBRS,+pdpe1gb,-hle".to_owned()),
        vcpus: 3,
        memory: Bytes(5 * GIB),
        backing: Backing::Huge1g,
        ..Machine::new(Accel::Kvm)
    };
    assert_eq!(machine, expected);
    assert!(machine.check().is_ok());
    let expected = [
        "Its firmware is not used: the kernel is started directly.",
        "Its memory is of type memfd; here it is anonymous, or from a pool.",
        "Its memory is shared with other programs; here it is not.",
        "Of its 8 GiB a balloon takes all but 4500 MiB; here that is all there is.",
        "Its 4500 MiB are no whole pages; here it has 5 GiB.",
        "Not taken over: numatune, cpu/topology, features/hyperv, devices/hostdev.",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn a_card_that_qemu_serves_and_a_raw_disk_are_taken_over() {
    let Domain { machine, notes, .. } = domain(VHOST_OFF);
    let disk = Disk { file: "/srv/vm/root,1.img".into(), access: Access::ReadOnly };
    let expected = Machine {
        memory: Bytes(512 * MIB),
        net: Some(Net::Tap { name: None, vhost: Vhost::Off }),
        disks: vec![disk],
        ..Machine::new(Accel::Kvm)
    };
    assert_eq!(machine, expected);
    let expected = [
        "Its network card (bridge) has a tap of its own here, connected to nothing.",
        "It has more network cards; here it has the first.",
        "Its network card of model e1000e is left out: only virtio's can be had.",
        "Its disk sda is virtio's here.",
        "Its cdrom sdb is left out.",
        "Its disks are read, and never written; the domain itself must be shut down.",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn pins_are_in_the_order_of_vcpus() {
    let Domain { machine, pin, notes, .. } = domain(PINNED);
    assert_eq!(pin, [1, 0]);
    assert_eq!((machine.accel, machine.cpu, machine.net), (Accel::Tcg, None, Some(Net::User)));
    assert_eq!(notes, [""; 0]);
    let free = domain(&PINNED.replace("cpuset='0'", "cpuset='0-1'"));
    assert_eq!(free.pin, [0; 0]);
    assert_eq!(free.notes[0], "Its vCPU 1 has several CPUs to run on; here none is bound.");
    let half = domain(&PINNED.replace("vcpu='1'", "vcpu='9'"));
    assert_eq!(half.pin, [0; 0]);
    assert_eq!(half.notes[0], "Not each of its vCPUs is bound to one CPU; here none is.");
}

#[test]
fn what_cannot_be_taken_over_is_named_with_its_line() {
    let check = |xml: &str, from: &str, to: &str, expected: &str| {
        assert!(xml.contains(from), "{from}");
        let error = read("vm.xml", &xml.replace(from, to)).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(!error.remedy().unwrap().is_empty());
    };
    check(PLAIN, "type='kvm'", "type='xen'", "vm.xml:1: <domain>: its type is xen, which QEMU does not run");
    check(PLAIN, "x86_64'", "aarch64'", "vm.xml:8: <type>: it is no x86-64 machine");
    check(PLAIN, "pc-q35-7.2", "q35,usb=on", "vm.xml:8: <type>: \"q35,usb=on\" is no name");
    check(PLAIN, ">2</vcpu>", ">two</vcpu>", "vm.xml:6: <vcpu>: \"two\" is no number from 1 on");
    check(PLAIN, "<memory unit='KiB'>", "<memory unit='pages'>", "vm.xml:4: <memory>: no unit is called pages");
    check(HUGE, "page size='1'", "page size='3'", "vm.xml:7: <page>: no page is of 3 GiB");
    check(HUGE, "name='hle'", "name='hle,-x'", "vm.xml:23: <feature>: \"hle,-x\" is no name");
    let card = "vm.xml:26: <driver>: no driver of a network card is called vdpa";
    check(VHOST_OFF, "<driver name='qemu'/>", "<driver name='vdpa'/>", card);
    let error = read("vm.xml", "<network/>").unwrap_err();
    assert_eq!(error.to_string(), "vm.xml:1: <network>: it describes no domain");
    assert!(read("vm.xml", "no XML").unwrap_err().to_string().starts_with("vm.xml:1: <domain>: it is no XML"));
}

#[test]
fn sizes_are_in_their_unit() {
    let check = |memory: &str, expected: u64| {
        let xml = PINNED.replace("<memory unit='MiB'>768</memory>", memory);
        assert_eq!(domain(&xml).machine.memory, Bytes(expected));
    };
    check("<memory>1048576</memory>", GIB);
    check("<memory unit='G'>2</memory>", 2 * GIB);
    check("<memory unit='GB'>1</memory>", 954 * MIB);
    check("<memory unit='bytes'>4194304</memory>", 4 * MIB);
}
