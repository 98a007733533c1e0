use vmtax_core::units::GIB;

use super::*;

fn words(machine: &Machine) -> Vec<String> {
    let load = Load { kernel: "/boot/vmlinuz".into(), initrd: INITRD.into(), command_line: "console=ttyS0".to_owned() };
    let words = machine.arguments(&load);
    // An option and its value are one row.
    let mut rows: Vec<String> = Vec::new();
    for word in words {
        match rows.last_mut() {
            Some(last) if !word.starts_with('-') && !last.contains(' ') => *last = format!("{last} {word}"),
            Some(_) | None => rows.push(word),
        }
    }
    rows
}

#[test]
fn everything_is_said() {
    let expected = [
        "-no-user-config",
        "-nodefaults",
        "-no-reboot",
        "-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
        "-name vmtax,debug-threads=on",
        "-display none",
        "-machine q35,memory-backend=ram,mem-merge=off,dump-guest-core=off",
        "-accel tcg,thread=multi",
        "-cpu max",
        "-smp 1",
        "-m 512M",
        "-object memory-backend-ram,id=ram,size=512M,prealloc=on,merge=off,dump=off",
        "-kernel /boot/vmlinuz",
        "-initrd initrd",
        "-append console=ttyS0",
        "-chardev socket,id=qmp,path=qmp",
        "-mon chardev=qmp,mode=control",
        "-chardev socket,id=console,path=console",
        "-serial chardev:console",
        "-device virtio-serial-pci",
        "-chardev socket,id=agent,path=agent",
        "-device virtserialport,chardev=agent,name=vmtax.agent",
        "-chardev socket,id=serial,path=serial",
        "-device isa-serial,chardev=serial,index=1",
    ];
    assert_eq!(words(&Machine::new(Accel::Tcg)), expected);
}

/// What a factor changes: rows that go, rows that come.
fn check(change: impl FnOnce(&mut Machine), gone: &[&str], come: &[&str]) {
    let plain = Machine::new(Accel::Tcg);
    let mut changed = plain.clone();
    change(&mut changed);
    let (before, after) = (words(&plain), words(&changed));
    let without = |rows: &[String], others: &[String]| -> Vec<String> {
        rows.iter().filter(|row| !others.contains(row)).cloned().collect()
    };
    assert_eq!(without(&before, &after), gone);
    assert_eq!(without(&after, &before), come);
}

#[test]
fn each_factor_changes_its_own_words() {
    let ram = "-object memory-backend-ram,id=ram,size=512M,prealloc=on,merge=off,dump=off";
    let memfd = |page: &str| {
        format!(
            "-object memory-backend-memfd,id=ram,size=512M,prealloc=on,merge=off,dump=off,hugetlb=on,hugetlbsize={page}"
        )
    };
    let giant = ram.replace("512M", "2048M");
    check(|m| m.accel = Accel::Kvm, &["-accel tcg,thread=multi", "-cpu max"], &["-accel kvm", "-cpu host"]);
    check(|m| m.cpu = Some("EPYC".to_owned()), &["-cpu max"], &["-cpu EPYC"]);
    check(|m| m.vcpus = 4, &["-smp 1"], &["-smp 4"]);
    check(|m| m.memory = Bytes(2 * GIB), &["-m 512M", ram], &["-m 2048M", &giant]);
    // The difference of 4k and thp is no word of QEMU's: see `keeper::ThpRule`.
    check(|m| m.backing = Backing::Small, &[], &[]);
    check(|m| m.backing = Backing::Huge2m, &[ram], &[&memfd("2M")]);
    check(|m| m.backing = Backing::Huge1g, &[ram], &[&memfd("1G")]);
    check(
        |m| m.net = Some(Net::User),
        &[],
        &["-netdev user,id=net,restrict=on", "-device virtio-net-pci,netdev=net,romfile="],
    );
    for (vhost, words) in [(Vhost::On, "vhost=on,vhostforce=on"), (Vhost::Off, "vhost=off")] {
        let netdev = format!("-netdev tap,id=net,fd=0,{words}");
        let net = Some(Net::Tap { name: None, vhost });
        check(|m| m.net = net, &[], &[&netdev, "-device virtio-net-pci,netdev=net,romfile="]);
    }
    for (access, word) in [(Access::ReadOnly, "on"), (Access::ReadWrite, "off")] {
        let blockdev = format!("-blockdev driver=file,node-name=disk0,read-only={word},filename=/a,,b");
        let disks = vec![Disk { file: "/a,b".into(), access }];
        check(|m| m.disks = disks, &[], &[&blockdev, "-device virtio-blk-pci,drive=disk0"]);
    }
    check(|m| m.extra = vec!["-s".to_owned()], &[], &["-s"]);
    check(
        |m| m.board = "microvm".to_owned(),
        &["-machine q35,memory-backend=ram,mem-merge=off,dump-guest-core=off", "-device virtio-serial-pci"],
        &["-machine microvm,memory-backend=ram,mem-merge=off,dump-guest-core=off", "-device virtio-serial-device"],
    );
}

#[test]
fn memory_that_no_backing_could_hold_is_refused() {
    let check = |memory, backing, expected: Option<&str>| {
        let machine = Machine { memory: Bytes(memory), backing, ..Machine::new(Accel::Tcg) };
        assert_eq!(machine.check().err().map(|e| e.to_string()).as_deref(), expected);
    };
    check(512 * MIB, Backing::Small, None);
    check(2 * GIB, Backing::Huge1g, None);
    let uneven = "cannot make the guest: memory of 1536 MiB is no multiple of 1 GiB, which 1g backing needs";
    check(1536 * MIB, Backing::Huge1g, Some(uneven));
    check(0, Backing::Small, Some("cannot make the guest: a guest needs memory and a vCPU"));
}
