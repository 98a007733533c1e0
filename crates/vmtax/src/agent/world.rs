//! The file system with programs that some guests have: a disk that is only read, what is written above it in memory, and in it
//! what every program expects.
//!
//! ```text
//!   /dev/vda, squashfs ──► /disk ─────┐
//!   tmpfs ──► /above (upper, work) ───┴─ overlay ──► /world ◄── bound from outside: dev proc sys run tmp vmtax init
//!                                                      │
//!     chroot ◄─────────────────────────────────────────┘  sbin/modprobe, boot/vmlinuz-*, lib/modules/*: links to vmtax's own
//! ```
//!
//! Init stays outside, with the kernel's own view of `/sbin/modprobe`.

use std::{
    env,
    ffi::CString,
    fs::{self, File},
    io,
    os::unix::fs::symlink,
    path::Path,
};

use anyhow::Context;
use rustix::{
    mount::{MountFlags, mount, mount_bind, mount_bind_recursive},
    process::chroot,
    system::uname,
};

use crate::image::initramfs::{KERNEL, MODULES};

const LOWER: &str = "/disk";
const ABOVE: &str = "/above";
const WORLD: &str = "/world";
/// What is there as outside.
const SHARED: [&str; 6] = ["/dev", "/proc", "/sys", "/run", "/tmp", "/vmtax"];
const INIT: &str = "/init";

/// Makes it of the file system on `disk`, and makes it this process's root.
pub fn enter(disk: &str) -> anyhow::Result<()> {
    let [upper, work] = ["upper", "work"].map(|name| format!("{ABOVE}/{name}"));
    attach(disk, LOWER, "squashfs", MountFlags::RDONLY, None)?;
    attach("tmpfs", ABOVE, "tmpfs", MountFlags::empty(), None)?;
    for directory in [&upper, &work] {
        fs::create_dir(directory).with_context(|| format!("cannot make {directory}"))?;
    }
    let layers = format!("lowerdir={LOWER},upperdir={upper},workdir={work}");
    attach("overlay", WORLD, "overlay", MountFlags::empty(), Some(&layers))?;
    for path in SHARED {
        let place = format!("{WORLD}{path}");
        fs::create_dir_all(&place).with_context(|| format!("cannot make {place}"))?;
        mount_bind_recursive(path, &place).with_context(|| format!("cannot bind {path}"))?;
    }
    let place = format!("{WORLD}{INIT}");
    File::create(&place).with_context(|| format!("cannot make {place}"))?;
    mount_bind(INIT, &place).with_context(|| format!("cannot bind {INIT}"))?;
    chroot(WORLD).with_context(|| format!("cannot enter {WORLD}"))?;
    env::set_current_dir("/")?;
    furnish()
}

fn attach(source: &str, place: &str, kind: &str, flags: MountFlags, data: Option<&str>) -> anyhow::Result<()> {
    fs::create_dir_all(place).with_context(|| format!("cannot make {place}"))?;
    let data = data.map(CString::new).transpose()?;
    mount(source, place, kind, flags, data.as_deref()).with_context(|| format!("cannot mount {source} at {place}"))
}

/// What belongs to vmtax and its guests, where programs look for it. Links on the disk are followed now as they are meant.
fn furnish() -> anyhow::Result<()> {
    let release = uname().release().to_string_lossy().into_owned();
    let links = [
        ("/usr/bin/vmtax".to_owned(), INIT),
        ("/sbin/modprobe".to_owned(), INIT),
        (format!("/boot/vmlinuz-{release}"), KERNEL),
        (format!("/lib/modules/{release}"), MODULES),
    ];
    for (place, to) in links {
        link(Path::new(&place), to).with_context(|| format!("cannot make {place}"))?;
    }
    Ok(())
}

/// A link, in place of what may be there.
fn link(place: &Path, to: &str) -> io::Result<()> {
    if let Some(directory) = place.parent() {
        fs::create_dir_all(directory)?;
    }
    match place.symlink_metadata() {
        Ok(at) if at.is_dir() => return Ok(()),
        Ok(_) => fs::remove_file(place)?,
        Err(_) => {}
    }
    symlink(to, place)
}
