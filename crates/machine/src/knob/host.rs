//! Where the host's knobs are, and how they are read and written: parameters, so that tests bring their own.

use std::{
    ffi::CString,
    fmt, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

/// Reads and writes the kernel's files. A test replaces it to grant pages as it likes.
pub trait Kernel: fmt::Debug + Send + Sync {
    /// The whole file.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Writes `text` in one `write(2)`: the kernel takes each write for a whole value. Never creates a file.
    fn write(&self, path: &Path, text: &str) -> io::Result<()>;
    /// Loads a kernel module and what it depends on.
    fn load(&self, module: &str, parameters: &[&str]) -> io::Result<()> {
        let _ = (module, parameters);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Unloads a kernel module, and nothing it depends on: `modprobe -r kvm_intel` takes `kvm` and its settings along.
    fn unload(&self, module: &str) -> io::Result<()> {
        let _ = module;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The kernel itself.
#[derive(Debug, Clone, Copy)]
pub struct Sysfs;

impl Kernel for Sysfs {
    fn read(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(path)
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
    }

    fn load(&self, module: &str, parameters: &[&str]) -> io::Result<()> {
        // A service, and sudo on some hosts, has no sbin in its path.
        let path = "/usr/sbin:/usr/bin:/sbin:/bin";
        let loader =
            Command::new("modprobe").arg(module).args(parameters).env("PATH", path).stdin(Stdio::null()).output()?;
        if loader.status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!("modprobe: {}", String::from_utf8_lossy(&loader.stderr).trim())))
    }

    fn unload(&self, module: &str) -> io::Result<()> {
        let name = CString::new(module)?;
        // SAFETY: the kernel reads the name up to its NUL, and nothing else of ours.
        match unsafe { libc::syscall(libc::SYS_delete_module, name.as_ptr(), libc::O_NONBLOCK) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The host whose knobs are turned.
#[derive(Debug, Clone)]
pub struct Host {
    /// Where the lock and the journal are: `/run/vmtax`.
    pub state: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
    /// `/proc`.
    pub proc: PathBuf,
    /// Who reads and writes there. The guardian is another process and always uses [`Sysfs`].
    pub kernel: Arc<dyn Kernel>,
}

impl Default for Host {
    fn default() -> Self {
        Host::at("/run/vmtax", "/sys", "/proc")
    }
}

impl Host {
    /// A host with its state, `/sys` and `/proc` elsewhere.
    pub fn at(state: impl Into<PathBuf>, sys: impl Into<PathBuf>, proc: impl Into<PathBuf>) -> Self {
        Host { state: state.into(), sys: sys.into(), proc: proc.into(), kernel: Arc::new(Sysfs) }
    }

    pub(super) fn lock_path(&self) -> PathBuf {
        self.state.join("lock")
    }

    pub(super) fn journal_path(&self) -> PathBuf {
        self.state.join("journal")
    }
}
