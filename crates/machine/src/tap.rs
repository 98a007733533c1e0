//! A tap device: a network card's other end, as a file.
//!
//! It is made without `TUNSETPERSIST`, so it lives as long as somebody holds the file, and no longer: a guest that has it as
//! an open file takes it along, however it ends. An administrator's device is attached to in the same way, and stays.
//!
//! Packets carry virtio's header (`IFF_VNET_HDR`), without which the host's kernel cannot serve them for the guest.

use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, OwnedFd},
};

/// Where taps come from.
const DEVICE: &str = "/dev/net/tun";
/// Where the kernel's server of virtio's network cards is reached.
const VHOST: &str = "/dev/vhost-net";
/// The kernel puts the first free number in.
const TEMPLATE: &str = "vmtax%d";

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// A device file cannot be opened.
    #[error("cannot open {device}")]
    Device {
        /// Which.
        device: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The kernel does not give it to us.
    #[error("cannot have the tap device {name}")]
    Refused {
        /// Its name, or the template of one.
        name: String,
        /// Why not.
        source: io::Error,
    },
    /// No interface can be called so.
    #[error("no tap device can be called \"{0}\": a name has 1 to 15 letters, digits, -, _ and .")]
    Name(String),
}

impl TapError {
    /// The way out.
    pub fn remedy(&self) -> Option<String> {
        let is = |source: &io::Error, code: i32| source.raw_os_error() == Some(code);
        match self {
            TapError::Device { device: DEVICE, source } if is(source, libc::ENOENT) => {
                Some("sudo modprobe tun (in a container: pass /dev/net/tun in)".to_owned())
            }
            TapError::Device { device: VHOST, source } if is(source, libc::ENOENT) => {
                Some("sudo modprobe vhost_net, or have QEMU serve the card: vhost off".to_owned())
            }
            TapError::Device { device, .. } => Some(format!("sudo setfacl -m u:$USER:rw {device}")),
            TapError::Refused { source, .. } if is(source, libc::EPERM) => Some(format!(
                "run it as root, or let root make one for you to name:\n      \
                 sudo ip tuntap add dev {}0 mode tap vnet_hdr user $USER",
                TEMPLATE.trim_end_matches("%d")
            )),
            TapError::Refused { source, .. } if is(source, libc::EBUSY) => {
                Some("it is another program's: end that, or name another".to_owned())
            }
            TapError::Refused { source, .. } if is(source, libc::EINVAL) => {
                Some("it is no tap device, or has several queues: ip tuntap add dev NAME mode tap vnet_hdr".to_owned())
            }
            TapError::Refused { .. } | TapError::Name(_) => None,
        }
    }
}

/// The file of the tap device `name`, or of a new one.
///
/// # Errors
/// There is no /dev/net/tun, or neither CAP_NET_ADMIN nor a device of ours of this name.
pub fn open(name: Option<&str>) -> Result<OwnedFd, TapError> {
    if let Some(name) = name
        && !is_name(name)
    {
        return Err(TapError::Name(name.to_owned()));
    }
    let name = name.unwrap_or(TEMPLATE);
    let file = readable(DEVICE)?;
    // SAFETY: `ifreq` is plain data, for which all zeroes are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: the file is open, and `request` lives during the call, which reads and writes an `ifreq`.
    match unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) } {
        0 => Ok(file.into()),
        _ => Err(TapError::Refused { name: name.to_owned(), source: io::Error::last_os_error() }),
    }
}

/// Whether the host's kernel can serve a network card for us.
///
/// # Errors
/// There is no /dev/vhost-net, or it is not for us.
pub fn check_vhost() -> Result<(), TapError> {
    readable(VHOST).map(drop)
}

fn readable(device: &'static str) -> Result<File, TapError> {
    File::options().read(true).write(true).open(device).map_err(|source| TapError::Device { device, source })
}

/// Stricter than the kernel, which takes all but blanks, `/` and `:`; and a `%d` would be a template.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..libc::IFNAMSIZ).contains(&name.len()) && name.chars().all(is_plain) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_interface_can_have_is_refused() {
        for name in ["", "tap%d", "a b", "../x", ".", "sixteen-letters-"] {
            assert!(matches!(open(Some(name)), Err(TapError::Name(_))), "{name}");
        }
        assert!(is_name("vmtax0") && is_name("fifteen-letters"));
    }

    #[test]
    fn each_refusal_has_its_way_out() {
        let check = |error: TapError, word: &str| {
            let remedy = error.remedy().unwrap();
            assert!(remedy.contains(word), "{error}: {remedy}");
        };
        let os = io::Error::from_raw_os_error;
        check(TapError::Device { device: DEVICE, source: os(libc::ENOENT) }, "modprobe tun");
        check(TapError::Device { device: VHOST, source: os(libc::ENOENT) }, "modprobe vhost_net");
        check(TapError::Device { device: VHOST, source: os(libc::EACCES) }, "setfacl -m u:$USER:rw /dev/vhost-net");
        let refused = |code| TapError::Refused { name: "tap0".to_owned(), source: os(code) };
        check(refused(libc::EPERM), "ip tuntap add dev vmtax0 mode tap vnet_hdr user");
        check(refused(libc::EBUSY), "another program");
        check(refused(libc::EINVAL), "no tap device");
    }

    #[test]
    fn a_new_tap_goes_with_its_file() {
        let tap = match open(None) {
            Ok(tap) => tap,
            Err(e) => return println!("skipped: {e}"),
        };
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", tap.as_raw_fd())).unwrap();
        let name = info.lines().find_map(|line| line.strip_prefix("iff:")).unwrap().trim().to_owned();
        assert!(name.starts_with("vmtax"), "{name}");
        let is_there = || std::fs::read_to_string("/proc/net/dev").unwrap().contains(&format!("{name}:"));
        assert!(is_there());
        drop(tap);
        assert!(!is_there());
    }
}
