//! The port to the host: virtio-serial, found by name in sysfs, since no udev makes links here; where the kernel has none, the
//! second serial port.
//!
//! A serial port loses what is sent before somebody has opened it. So the agent speaks first there: [`GREETING`], and the
//! host asks after it. Nobody controls the flow either: what the host sends at once must fit into the kernel's buffer, and
//! [`SERIAL_LIMIT`] is half of that. What the agent sends waits in the port until it is taken.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::OFlags,
    termios::{ControlModes, OptionalActions, SpecialCodeIndex, tcdrain, tcgetattr, tcsetattr},
};

/// The name of the virtio-serial port.
pub const NAME: &str = "vmtax.agent";

/// What the agent says first on a serial port, and nowhere else.
pub const GREETING: &[u8] = b"\0vmtax.agent\n";

/// Bytes of a frame that can be sent to the agent by a serial port: half of `TTYB_DEFAULT_MEM_LIMIT` before Linux 5.15.
pub const SERIAL_LIMIT: usize = 32 << 10;

/// The second serial port.
const SERIAL: &str = "/dev/ttyS1";
const SPEED: u32 = 115_200;

/// Where the driver of virtio-serial shows its ports, as soon as it is loaded.
const PORTS: &str = "/sys/class/virtio-ports";

/// How long the device may take to appear after its module was loaded, and the host's end to be seen open.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// By what the agent is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// A port of virtio-serial.
    VirtioSerial,
    /// A serial port, a byte at a time.
    Serial,
}

/// The agent's end.
#[derive(Debug)]
pub struct Port {
    file: File,
    way: Way,
    /// Until the first byte came, an end of file says that the host's end is not yet seen open.
    opened: Option<Instant>,
}

impl Port {
    /// Opens it, as soon as there is one. Without the driver, none is waited for.
    pub fn open() -> io::Result<Port> {
        let begun = Instant::now();
        while Path::new(PORTS).exists() && begun.elapsed() < PATIENCE {
            if let Some(path) = find() {
                let file = File::options().read(true).write(true).open(path)?;
                return Ok(Port { file, way: Way::VirtioSerial, opened: Some(Instant::now()) });
            }
            thread::sleep(PAUSE);
        }
        Port::serial().map_err(|e| {
            io::Error::other(format!("no virtio-serial port is named {NAME}, and {SERIAL} is no other way: {e}"))
        })
    }

    fn serial() -> io::Result<Port> {
        let noctty = OFlags::NOCTTY.bits() as i32;
        let file = File::options().read(true).write(true).custom_flags(noctty).open(SERIAL)?;
        let mut line = tcgetattr(&file)?;
        line.make_raw();
        line.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
        line.special_codes[SpecialCodeIndex::VMIN] = 1;
        line.special_codes[SpecialCodeIndex::VTIME] = 0;
        line.set_speed(SPEED)?;
        tcsetattr(&file, OptionalActions::Flush, &line)?;
        let mut port = Port { file, way: Way::Serial, opened: None };
        port.write_all(GREETING)?;
        port.flush()?;
        Ok(port)
    }
}

fn find() -> Option<PathBuf> {
    let ports = fs::read_dir(PORTS).ok()?.flatten();
    let named = |path: PathBuf| fs::read_to_string(path.join("name")).is_ok_and(|name| name.trim() == NAME);
    let port = ports.map(|entry| entry.path()).find(|path| named(path.clone()))?;
    Some(PathBuf::from("/dev").join(port.file_name()?))
}

impl Read for Port {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let got = self.file.read(buffer)?;
            match self.opened {
                Some(opened) if got == 0 && opened.elapsed() < PATIENCE => thread::sleep(PAUSE),
                Some(_) | None => {
                    self.opened = None;
                    return Ok(got);
                }
            }
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Write for Port {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    /// The last words are said before the power goes.
    fn flush(&mut self) -> io::Result<()> {
        match self.way {
            Way::VirtioSerial => Ok(()),
            Way::Serial => Ok(tcdrain(&self.file)?),
        }
    }
}
