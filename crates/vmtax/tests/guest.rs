//! Real guests: booted, asked, and gone afterwards, whatever happens to them or to vmtax.

#![allow(clippy::unwrap_used, reason = "a test, whose helpers clippy takes for the program")]

mod host;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use host::{Ran, has, under, vmtax};
use tempfile::TempDir;

/// The kernel for guests, from this host or from its package mirror; none without it or without QEMU.
fn kernel() -> Option<&'static str> {
    static FOUND: OnceLock<Result<String, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
        qemu.map_err(|e| format!("qemu-system-x86_64: {e}"))?;
        let ran = Ran::of(vmtax("image kernel").output().unwrap());
        let line = ran.stdout.lines().find_map(|line| line.strip_prefix("image ")).map(str::trim);
        line.map(str::to_owned).ok_or(ran.stderr)
    });
    has("qemu", found.as_ref().err().cloned()).then(|| found.as_deref().unwrap())
}

/// A place for the private directories of one test's guests.
fn place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
    place
}

fn boot(place: &Path, arguments: &str) -> Command {
    let mut command = vmtax(&format!("image boot --accel tcg {arguments}"));
    command.env("XDG_RUNTIME_DIR", place);
    command
}

fn is_empty(place: &Path) -> bool {
    fs::read_dir(place).unwrap().next().is_none()
}

#[test]
fn a_guest_boots_answers_measures_and_powers_off() {
    if kernel().is_none() {
        return;
    }
    let place = place();
    let seen = Ran::of(boot(place.path(), "--vcpus 2 --pin 0 --memory 256M --host 4k --json").output().unwrap()).json();
    assert_eq!(seen["agent"], "virtio-serial", "{seen}");
    assert_eq!(seen["hello"]["cpus"], 2, "{seen}");
    assert_eq!(seen["hello"]["unloaded"].as_array().map(Vec::len), Some(0), "{seen}");
    assert_eq!(seen["evidence"]["accel"], "tcg");
    assert_eq!(seen["emulated"], true);
    assert_eq!(seen["evidence"]["vcpu_threads"].as_array().unwrap().len(), 2);
    assert_eq!(seen["evidence"]["vcpu_places"], serde_json::json!(["0", "0"]));
    assert_eq!(seen["evidence"]["qemu_binary"].as_str().unwrap().len(), 64);
    assert_eq!(seen["evidence"]["ram"]["kernel_page_kb"], 4);
    assert_eq!(seen["evidence"]["ram"]["thp_coverage"], 0.0, "4k memory is in no huge page");
    assert!(seen["evidence"]["ram"]["populated"].as_f64().unwrap() > 0.99, "{seen}");
    assert_eq!(seen["facts"]["emulated"], true, "it sees itself that it is emulated");
    assert_eq!(seen["set"]["thp"], "madvise");
    assert_eq!(seen["set"]["pools"][0][0], "2m");
    assert!(seen["set"]["pools"][0][1].as_u64().unwrap() >= 4, "{seen}");
    assert_eq!(seen["finding"]["metrics"][0]["name"], "ns_per_access");
    assert!(seen["finding"]["metrics"][0]["value"].as_f64().unwrap() > 0.0);
    assert!(is_empty(place.path()));
}

#[test]
fn a_guest_that_panics_is_told_with_the_end_of_its_console() {
    if kernel().is_none() {
        return;
    }
    let place = place();
    let ran = Ran::of(boot(place.path(), "--append rdinit=/missing").output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.starts_with("error: the guest ended while it booted; the end of its console:\n  | "), "{ran:?}");
    assert!(ran.stderr.contains("Kernel panic"), "{ran:?}");
    assert!(ran.stderr.contains("help: the kernel did not take the initramfs"), "{ran:?}");
    assert!(is_empty(place.path()));
}

#[test]
fn a_kernel_without_virtio_is_reached_by_its_serial_port() {
    let Some(kernel) = kernel() else { return };
    let place = place();
    // Its modules are said to be built in, and are not.
    let empty = tempfile::tempdir().unwrap();
    fs::write(empty.path().join("modules.builtin"), "virtio_pci.ko\nvirtio_console.ko\n").unwrap();
    let arguments = format!("--json --kernel {kernel} --modules {}", empty.path().display());
    let seen = Ran::of(boot(place.path(), &arguments).output().unwrap()).json();
    assert_eq!(seen["agent"], "serial", "{seen}");
    assert_eq!(seen["hello"]["cpus"], 2, "{seen}");
    assert_eq!(seen["finding"]["metrics"][0]["name"], "ns_per_access");
    // A machine without a second serial port either.
    let line = "for a do shift; case $a in isa-serial,*) a=pvpanic;; esac; set -- \"$@\" \"$a\"; done\n\
                exec qemu-system-x86_64 \"$@\"";
    let qemu = script(empty.path(), line);
    let ran = Ran::of(boot(place.path(), &format!("{arguments} --qemu {qemu}")).output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("| vmtax agent: no virtio-serial port is named vmtax.agent"), "{ran:?}");
    assert!(ran.stderr.contains("help: a kernel with virtio or a second serial port"), "{ran:?}");
    assert!(is_empty(place.path()));
}

/// In a network of its own, which goes with it.
const IN_OWN_NETWORK: [&str; 6] =
    ["unshare", "--net", "--mount", "sh", "-c", "mount -t sysfs none /sys && exec \"$0\" $@"];

fn has_taps() -> bool {
    let tried = Command::new(IN_OWN_NETWORK[0]).args(&IN_OWN_NETWORK[1..]).args(["test", "-c /dev/net/tun"]).output();
    let obstacle = match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("unshare, /dev/net/tun: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(e) => Some(format!("unshare: {e}")),
    };
    has("tap", obstacle)
}

#[test]
fn a_guest_on_a_tap_of_its_own_leaves_none_behind() {
    if kernel().is_none() || !has_taps() {
        return;
    }
    let place = place();
    let program = Path::new(env!("CARGO_BIN_EXE_vmtax"));
    let boot = |arguments: &str| {
        let mut command = under(&IN_OWN_NETWORK, program, &format!("image boot --accel tcg --net tap {arguments}"));
        command.env("XDG_RUNTIME_DIR", place.path());
        Ran::of(command.output().unwrap())
    };
    let seen = boot("--vhost off --json").json();
    let link = &seen["evidence"]["link"];
    assert_eq!(link["tap"], "vmtax0", "{seen}");
    assert_eq!(link["tap_flags"], "0x5002", "a tap with virtio's header, not persistent: {seen}");
    assert_eq!(link["vhost_device"], false, "{seen}");
    assert_ne!(link["vhost_thread"].as_str(), None, "absent, or hidden: {seen}");
    assert!(!fs::read_to_string("/proc/net/dev").unwrap().contains("vmtax"));
    if !Path::new("/dev/vhost-net").exists() {
        let ran = boot("--vhost on");
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.starts_with("error: cannot open /dev/vhost-net"), "{ran:?}");
        assert!(ran.stderr.contains("help: sudo modprobe vhost_net"), "{ran:?}");
    }
    assert!(is_empty(place.path()));
}

#[test]
fn without_the_right_to_a_tap_the_way_out_is_told() {
    if kernel().is_none() || !has_taps() || !host::has_root() {
        return;
    }
    let kernel = kernel().unwrap();
    let (_directory, program) = host::public_copy();
    let image = _directory.path().join("vmlinuz");
    fs::copy(kernel, &image).unwrap();
    fs::set_permissions(&image, fs::Permissions::from_mode(0o644)).unwrap();
    let arguments = format!("image boot --accel tcg --net tap --kernel {}", image.display());
    let ran = Ran::of(under(host::AS_NOBODY, &program, &arguments).output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let error = "error: cannot have the tap device vmtax%d";
    let no_device = "error: cannot open /dev/net/tun";
    assert!(ran.stderr.starts_with(error) || ran.stderr.starts_with(no_device), "{ran:?}");
    assert!(ran.stderr.contains("help: "), "{ran:?}");
}

#[test]
fn a_guest_is_made_like_a_domain_of_libvirts() {
    let lacking = thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2).then(|| "one CPU".to_owned());
    if kernel().is_none() || !has("cpus", lacking) {
        return;
    }
    let place = place();
    let domain = concat!(env!("CARGO_MANIFEST_DIR"), "/src/guest/domain/fixture/pinned.xml");
    let ran = Ran::of(boot(place.path(), &format!("--json --domain {domain}")).output().unwrap());
    assert_eq!(ran.stderr, "", "nothing of it was left out");
    let seen = ran.json();
    assert_eq!(seen["evidence"]["vcpu_places"], serde_json::json!(["1", "0"]), "{seen}");
    assert_eq!(seen["hello"]["cpus"], 2, "{seen}");
    let mib = seen["hello"]["memory"].as_u64().unwrap() >> 20;
    assert!((600..=768).contains(&mib), "768 MiB, without what the kernel keeps: {seen}");

    let ran = Ran::of(boot(place.path(), "--domain no-such-domain").output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.starts_with("error: cannot find the domain no-such-domain: "), "{ran:?}");
    assert!(ran.stderr.contains("help: virsh list --all"), "{ran:?}");
    assert!(is_empty(place.path()));
}

#[test]
fn an_address_of_a_guests_process_is_followed_to_the_host() {
    if kernel().is_none() {
        return;
    }
    let place = place();
    let mut command = vmtax("translate --venue guest --accel tcg --guest 2m --host 4k --at 3150388 --json");
    let seen = Ran::of(command.env("XDG_RUNTIME_DIR", place.path()).output().unwrap()).json();
    let way = &seen["translation"];
    let address = |value: &serde_json::Value| value.as_u64().unwrap();
    assert_eq!((&seen["venue"], &seen["guest"], &seen["host"]), (&"guest".into(), &"2m".into(), &"4k".into()));
    assert_eq!(seen["emulated"], true);
    assert_eq!(way["walk"]["leaf"], "2m", "{seen}");
    assert_eq!(address(&way["gva"]) % (2 << 20), 0x10_1234, "{seen}");
    assert_eq!(address(&way["walk"]["gpa"]) % (2 << 20), 0x10_1234, "{seen}");
    assert_eq!(address(&way["hva"]) - address(&way["slot"]["hva"]), address(&way["walk"]["gpa"]), "{seen}");
    if let Some(hpa) = way["frame"]["hpa"].as_u64() {
        assert_eq!(hpa % 4096, 0x234, "{seen}");
        assert_eq!(seen["effective_page"], 4096, "{seen}");
    }
    assert!(is_empty(place.path()));
}

#[test]
fn what_is_missing_is_named_with_the_way_out() {
    let Some(kernel) = kernel() else { return };
    let place = place();
    let check = |arguments: &str, message: &str, help: &str| {
        let ran = Ran::of(boot(place.path(), arguments).output().unwrap());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.starts_with(&format!("error: {message}")), "{ran:?}");
        assert!(help.is_empty() || ran.stderr.contains(&format!("help: {help}")), "{ran:?}");
        assert!(is_empty(place.path()));
    };
    check(
        "--qemu /no/such/qemu",
        "cannot start a guest: there is no /no/such/qemu\n",
        "sudo apt-get install qemu-system-x86",
    );
    check("--kernel /bin/sh", "cannot boot /bin/sh: it is no bzImage", "name a bzImage");
    check("--kernel /no/such/kernel", "cannot read /no/such/kernel: No such file", "");
    let no_modules = tempfile::tempdir().unwrap();
    let modules = no_modules.path().display();
    check(
        &format!("--kernel {kernel} --modules {modules}"),
        &format!("cannot boot {kernel} in a guest: it has no module virtio_pci, neither built in nor under {modules}"),
        "name its modules with --modules DIR",
    );
    let qemu = script(no_modules.path(), "exec qemu-system-x86_64 \"$@\" -bios missing.bin");
    check(&format!("--qemu {qemu}"), "QEMU ended with exit status: 1: ", "install QEMU's firmware");
    let old = script(no_modules.path(), "echo \"Property 'pc-q35-5.2-machine.memory-backend' not found\" >&2; exit 1");
    check(&format!("--qemu {old}"), "QEMU ended with exit status: 1: Property 'pc-q35", "a newer QEMU");
    let mute = script(no_modules.path(), "exit 3");
    check(&format!("--qemu {mute}"), "QEMU ended with exit status: 3: it said nothing", "");
}

/// A program in place of QEMU.
fn script(directory: &Path, line: &str) -> String {
    let path = directory.join(format!("qemu-{}", line.len()));
    fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn nothing_outlives_a_vmtax_that_is_killed() {
    if kernel().is_none() {
        return;
    }
    let place = place();
    let mut vmtax = boot(place.path(), "").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let qemu = wait_for("QEMU runs", || {
        running_in(place.path()).into_iter().find(|pid| program(*pid).is_some_and(|name| name.contains("qemu")))
    });
    vmtax.kill().unwrap();
    vmtax.wait().unwrap();
    wait_for("QEMU is gone", || program(qemu).is_none().then_some(()));
    wait_for("its directory is gone", || is_empty(place.path()).then_some(()));
}

#[test]
fn a_killed_keeper_takes_its_guest_along() {
    if kernel().is_none() {
        return;
    }
    let place = place();
    let booting = boot(place.path(), "").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let qemu = wait_for("QEMU runs", || {
        running_in(place.path()).into_iter().find(|pid| program(*pid).is_some_and(|name| name.contains("qemu")))
    });
    let keeper = parent(qemu);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(keeper as i32).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let ran = Ran::of(booting.wait_with_output().unwrap());
    assert!(ran.code == Some(1) || ran.code == Some(2), "{ran:?}");
    assert!(ran.stderr.starts_with("error: "), "{ran:?}");
    wait_for("QEMU is gone", || program(qemu).is_none().then_some(()));
}

/// Processes whose current directory is under `place`.
fn running_in(place: &Path) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_there = |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(place));
    pids.filter(is_there).collect()
}

/// The program of a process; none when it is gone.
fn program(pid: u32) -> Option<String> {
    let path: PathBuf = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(path.display().to_string())
}

fn parent(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap()
}

fn wait_for<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}
