//! The port to the host: found by name in sysfs, since no udev makes links here.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd},
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

/// The name of the virtio-serial port.
pub const NAME: &str = "vmtax.agent";

/// How long the device may take to appear after its module was loaded, and the host's end to be seen open.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// The agent's end.
#[derive(Debug)]
pub struct Port {
    file: File,
    /// Until the first byte came, an end of file says that the host's end is not yet seen open.
    opened: Option<Instant>,
}

impl Port {
    /// Opens it, as soon as there is one.
    pub fn open() -> io::Result<Port> {
        let begun = Instant::now();
        loop {
            if let Some(path) = find() {
                let file = File::options().read(true).write(true).open(path)?;
                return Ok(Port { file, opened: Some(Instant::now()) });
            }
            if begun.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("no virtio-serial port is named {NAME}")));
            }
            thread::sleep(PAUSE);
        }
    }
}

fn find() -> Option<PathBuf> {
    let ports = fs::read_dir("/sys/class/virtio-ports").ok()?.flatten();
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

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
