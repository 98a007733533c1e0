//! What was observed of a guest's network card: which tap it has, and who moves its packets.
//!
//! | | `vhost=on` | `vhost=off` |
//! |---|---|---|
//! | QEMU holds `/dev/vhost-net` open | yes | no |
//! | a thread is called `vhost-PID` | yes: the kernel's own, since Linux 6.4 one of QEMU's | no |
//!
//! All of it from files below two roots, so that hosts which we do not have can be read from a record of them.

use std::{fs, io, path::Path};

use serde::Serialize;

use super::machine::Vhost;

/// `include/uapi/linux/if_tun.h`: IFF_TAP, IFF_VNET_HDR.
const TAP: u64 = 0x2;
const VNET_HDR: u64 = 0x4000;

/// A tap device, and who serves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The tap that QEMU holds open (`/proc/PID/fdinfo`).
    pub tap: Option<String>,
    /// Its flags (`/sys/class/net/NAME/tun_flags`), such as `0x5002`; none where sysfs shows another network.
    pub tap_flags: Option<String>,
    /// Whether QEMU holds `/dev/vhost-net` open.
    pub vhost_device: bool,
    /// The thread `vhost-PID`.
    pub vhost_thread: Thread,
}

/// A thread that was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Thread {
    /// This one.
    Seen(u32),
    /// There is none.
    Absent,
    /// In this container threads of the kernel cannot be seen.
    Hidden,
}

impl Link {
    /// Observes process `pid` below `proc` and `sys`.
    pub fn observe(proc: &Path, sys: &Path, pid: u32) -> io::Result<Link> {
        let own = proc.join(pid.to_string());
        let tap = numbers(&own.join("fdinfo"))?.into_iter().find_map(|fd| {
            let info = fs::read_to_string(own.join(format!("fdinfo/{fd}"))).ok()?;
            info.lines().find_map(|line| Some(line.strip_prefix("iff:")?.trim().to_owned()))
        });
        let flags = |tap: &String| fs::read_to_string(sys.join("class/net").join(tap).join("tun_flags")).ok();
        let opens = |fd: u32| fs::read_link(own.join(format!("fd/{fd}"))).is_ok_and(|to| to.ends_with("vhost-net"));
        Ok(Link {
            tap_flags: tap.as_ref().and_then(flags).map(|flags| flags.trim().to_owned()),
            tap,
            vhost_device: numbers(&own.join("fd"))?.into_iter().any(opens),
            vhost_thread: thread(proc, pid)?,
        })
    }

    /// What contradicts the card that was asked for, in words.
    pub fn contradiction(&self, vhost: Vhost) -> Option<String> {
        let Link { tap, tap_flags, vhost_device, vhost_thread } = self;
        let Some(tap) = tap else { return Some("QEMU holds no tap device".to_owned()) };
        let bits = tap_flags.as_ref().map(|flags| u64::from_str_radix(flags.trim_start_matches("0x"), 16));
        match bits {
            Some(Ok(bits)) if bits & (TAP | VNET_HDR) == TAP | VNET_HDR => {}
            None => {}
            Some(_) => {
                let flags = tap_flags.as_deref().unwrap_or_default();
                return Some(format!(
                    "{tap} is no tap device whose packets carry virtio's header: its flags are {flags}"
                ));
            }
        }
        match (vhost, vhost_device, vhost_thread) {
            (Vhost::On, true, Thread::Seen(_) | Thread::Hidden)
            | (Vhost::Off, false, Thread::Absent | Thread::Hidden) => None,
            (Vhost::On, false, _) => Some("vhost is on, and QEMU has not opened /dev/vhost-net".to_owned()),
            (Vhost::On, true, Thread::Absent) => Some("vhost is on, and there is no thread vhost-PID".to_owned()),
            (Vhost::Off, true, _) => Some("vhost is off, and QEMU has opened /dev/vhost-net".to_owned()),
            (Vhost::Off, false, Thread::Seen(thread)) => {
                Some(format!("vhost is off, and thread {thread} serves the guest's packets"))
            }
        }
    }
}

/// The thread that serves the packets of `pid`: among QEMU's own, where its name may tell the number of another namespace,
/// else among the kernel's.
fn thread(proc: &Path, pid: u32) -> io::Result<Thread> {
    let name = |at: &Path| fs::read_to_string(at.join("comm")).unwrap_or_default().trim().to_owned();
    let tasks = proc.join(format!("{pid}/task"));
    let own = numbers(&tasks)?.into_iter().find(|task| name(&tasks.join(task.to_string())).starts_with("vhost-"));
    if let Some(task) = own {
        return Ok(Thread::Seen(task));
    }
    let names: Vec<(u32, String)> =
        numbers(proc)?.into_iter().map(|number| (number, name(&proc.join(number.to_string())))).collect();
    let wanted = format!("vhost-{pid}");
    let kernels = names.iter().find(|(_, name)| *name == wanted).map(|(number, _)| Thread::Seen(*number));
    let hidden = if names.iter().any(|(_, name)| name == "kthreadd") { Thread::Absent } else { Thread::Hidden };
    Ok(kernels.unwrap_or(hidden))
}

/// The entries of a directory that are numbers.
fn numbers(directory: &Path) -> io::Result<Vec<u32>> {
    let names = fs::read_dir(directory)?.flatten().map(|entry| entry.file_name());
    Ok(names.filter_map(|name| name.to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// A host on which QEMU is process 700.
    struct Recorded(TempDir);

    impl Recorded {
        fn new(flags: &str) -> Recorded {
            let recorded = Recorded(tempfile::tempdir().unwrap());
            recorded.file("proc/2/comm", "kthreadd\n");
            recorded.file("proc/700/comm", "qemu-system-x86\n");
            recorded.file("proc/700/task/700/comm", "qemu-system-x86\n");
            recorded.file("proc/700/task/703/comm", "CPU 0/KVM\n");
            recorded.file("proc/700/fdinfo/0", "pos:\t0\nflags:\t0104002\nmnt_id:\t6\nino:\t90\niff:\tvmtax0\n");
            recorded.file("proc/700/fdinfo/9", "pos:\t0\nflags:\t02\nmnt_id:\t6\nino:\t91\n");
            recorded.opened(0, "/dev/net/tun");
            recorded.file("sys/class/net/vmtax0/tun_flags", flags);
            recorded
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn opened(&self, fd: u32, device: &str) {
            let at = self.0.path().join("proc/700/fd");
            fs::create_dir_all(&at).unwrap();
            symlink(device, at.join(fd.to_string())).unwrap();
        }

        fn link(&self) -> Link {
            Link::observe(&self.0.path().join("proc"), &self.0.path().join("sys"), 700).unwrap()
        }
    }

    #[test]
    fn a_card_that_qemu_serves_has_neither_thread_nor_device() {
        let link = Recorded::new("0x5002\n").link();
        let (tap, tap_flags) = (Some("vmtax0".to_owned()), Some("0x5002".to_owned()));
        assert_eq!(link, Link { tap, tap_flags, vhost_device: false, vhost_thread: Thread::Absent });
        assert_eq!(link.contradiction(Vhost::Off), None);
        let contradiction = link.contradiction(Vhost::On).unwrap();
        assert_eq!(contradiction, "vhost is on, and QEMU has not opened /dev/vhost-net");
    }

    #[test]
    fn a_card_that_the_kernel_serves_has_both_before_and_since_linux_6_4() {
        let check = |comm: &str, thread| {
            let recorded = Recorded::new("0x5002\n");
            recorded.opened(9, "/dev/vhost-net");
            recorded.file(comm, "vhost-700\n");
            let link = recorded.link();
            assert_eq!((link.vhost_device, link.vhost_thread), (true, Thread::Seen(thread)));
            assert_eq!(link.contradiction(Vhost::On), None);
            assert_eq!(link.contradiction(Vhost::Off).unwrap(), "vhost is off, and QEMU has opened /dev/vhost-net");
        };
        check("proc/705/comm", 705);
        check("proc/700/task/706/comm", 706);
    }

    #[test]
    fn another_guests_thread_is_not_taken_for_this_ones() {
        let recorded = Recorded::new("0x5002\n");
        recorded.opened(9, "/dev/vhost-net");
        recorded.file("proc/905/comm", "vhost-900\n");
        let contradiction = recorded.link().contradiction(Vhost::On).unwrap();
        assert_eq!(contradiction, "vhost is on, and there is no thread vhost-PID");
    }

    #[test]
    fn where_threads_of_the_kernel_are_hidden_the_device_decides() {
        let recorded = Recorded::new("0x5002\n");
        fs::remove_dir_all(recorded.0.path().join("proc/2")).unwrap();
        assert_eq!(recorded.link().vhost_thread, Thread::Hidden);
        assert_eq!(recorded.link().contradiction(Vhost::Off), None);
        recorded.opened(9, "/dev/vhost-net");
        assert_eq!(recorded.link().contradiction(Vhost::On), None);
    }

    #[test]
    fn another_device_than_asked_for_is_a_contradiction() {
        let link = Recorded::new("0x1001\n").link();
        let expected = "vmtax0 is no tap device whose packets carry virtio's header: its flags are 0x1001";
        assert_eq!(link.contradiction(Vhost::Off).unwrap(), expected);
        let link = Link { tap: None, ..link };
        assert_eq!(link.contradiction(Vhost::Off).unwrap(), "QEMU holds no tap device");
    }
}
