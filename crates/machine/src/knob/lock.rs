//! One vmtax at a time on a host: `flock` on `/run/vmtax/lock`.
//!
//! The guardian inherits the lock's open file description, and the kernel drops such a lock when its last descriptor is
//! closed (flock(2)): a killed vmtax keeps the next one out until its guardian has put the host back. Nobody calls
//! `LOCK_UN`, which would take it from both. The file is never removed: a lock on a removed file excludes nobody.
//!
//! Who changes nothing needs no lock, but must not measure while somebody else does: [`check_free`] looks, without rights
//! and without leaving a trace. For that the file is readable to all; `flock` asks for no more. The price: any user of the
//! host can keep vmtax from starting. The journal stays root's.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{FileExt, MetadataExt, PermissionsExt},
    },
    path::Path,
    process, thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use super::{Error, Host};

/// What the guardian writes into the lock: who waits for it waits for a few milliseconds.
const RESTORING: &str = "putting the host back";
const MEASURING: &str = "measuring";

/// A guardian gives up restoring within this time.
const GUARDIAN_PATIENCE: Duration = Duration::from_secs(10);

/// A killed process keeps the lock until it is dead, and only then does its guardian say that it restores.
const DEATH_PATIENCE: Duration = Duration::from_millis(250);

/// What to do when another vmtax holds the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contention {
    /// Return [`Error::Held`], within a blink; only a guardian that is putting the host back is waited for.
    Refuse,
    /// Wait so long for the other to end, then refuse.
    WaitAtMost(Duration),
}

/// Refuses while another vmtax holds `host`; a guardian that is putting it back is waited for. Creates nothing, and asks
/// for no right beyond reading the lock; a lock that cannot be read is taken for free.
pub fn check_free(host: &Host) -> Result<(), Error> {
    match File::open(host.lock_path()) {
        // Shared: those who only look do not see each other. Closing the file lets go.
        Ok(file) => Lock(file).wait(FlockOperation::NonBlockingLockShared, Contention::Refuse, &host.lock_path()),
        Err(_) => Ok(()),
    }
}

/// The lock, held.
#[derive(Debug)]
pub(super) struct Lock(File);

const FOR_ALL_TO_ENTER: u32 = 0o755;
const FOR_ALL_TO_READ: u32 = 0o644;

impl Lock {
    /// Takes the lock of `host`.
    pub fn take(host: &Host, contention: Contention) -> Result<Lock, Error> {
        // /run is root's, so nobody else can have made the directory. The umask may take rights from both modes.
        let created = DirBuilder::new().recursive(true).create(&host.state);
        created
            .and_then(|()| permit(&host.state, FOR_ALL_TO_ENTER))
            .map_err(|e| Error::io("create", &host.state, e))?;
        let path = host.lock_path();
        let opened = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let lock = Lock(opened.map_err(|e| Error::io("open", &path, e))?);
        permit(&path, FOR_ALL_TO_READ).map_err(|e| Error::io("open", &path, e))?;
        lock.wait(FlockOperation::NonBlockingLockExclusive, contention, &path)?;
        lock.sign(MEASURING).map_err(|e| Error::io("write", &path, e))?;
        Ok(lock)
    }

    /// Until the lock is ours, or patience has ended.
    fn wait(&self, operation: FlockOperation, contention: Contention, path: &Path) -> Result<(), Error> {
        let start = Instant::now();
        while !self.is_taken(operation).map_err(|e| Error::io("lock", path, e))? {
            let (pid, doing) = self.holder();
            let patience = match contention {
                Contention::Refuse if doing == RESTORING => GUARDIAN_PATIENCE,
                Contention::Refuse => DEATH_PATIENCE,
                Contention::WaitAtMost(patience) => patience,
            };
            if start.elapsed() >= patience {
                return Err(Error::Held { pid, doing });
            }
            // Not a blocking flock: with SA_RESTART handlers no signal would end that.
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// The lock that a guardian got from its parent; refused when `fd` is another file, or not locked by it.
    pub fn adopt(host: &Host, fd: OwnedFd) -> io::Result<Lock> {
        let lock = Lock(File::from(fd));
        let (ours, theirs) = (lock.0.metadata()?, fs::metadata(host.lock_path())?);
        let is_the_lock = (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino());
        if is_the_lock && lock.is_taken(FlockOperation::NonBlockingLockExclusive)? {
            Ok(lock)
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        }
    }

    /// Another descriptor of the same lock.
    pub fn share(&self) -> io::Result<OwnedFd> {
        self.0.as_fd().try_clone_to_owned()
    }

    /// Tells who waits that the guardian has it now.
    pub fn sign_as_guardian(&self) -> io::Result<()> {
        self.sign(RESTORING)
    }

    fn is_taken(&self, operation: FlockOperation) -> io::Result<bool> {
        match flock(&self.0, operation) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    fn sign(&self, doing: &str) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.write_all_at(format!("{} {doing}\n", process::id()).as_bytes(), 0)
    }

    fn holder(&self) -> (Option<u32>, String) {
        let mut bytes = [0; 64];
        let n = self.0.read_at(&mut bytes, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..n]);
        let (pid, doing) = text.trim().split_once(' ').unwrap_or_default();
        (pid.parse().ok(), doing.to_owned())
    }
}

/// Sets the mode unless it is that already: whoever may not set it does not need to.
fn permit(path: &Path, mode: u32) -> io::Result<()> {
    if fs::metadata(path)?.permissions().mode() & 0o777 == mode {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::fake::FakeHost;

    #[test]
    fn a_second_vmtax_is_told_who_holds_the_host() {
        let fake = FakeHost::new(0, 0);
        let first = Lock::take(&fake.host(), Contention::Refuse).unwrap();
        let error = Lock::take(&fake.host(), Contention::Refuse).unwrap_err();
        let pid = process::id();
        assert_eq!(error.to_string(), format!("another vmtax holds this host: process {pid}, measuring"));
        drop(first);
        Lock::take(&fake.host(), Contention::Refuse).unwrap();
    }

    #[test]
    fn the_lock_is_free_only_when_every_sharer_is_gone() {
        let fake = FakeHost::new(0, 0);
        let first = Lock::take(&fake.host(), Contention::Refuse).unwrap();
        let guardian = Lock::adopt(&fake.host(), first.share().unwrap()).unwrap();
        drop(first);
        assert!(Lock::take(&fake.host(), Contention::WaitAtMost(Duration::from_millis(30))).is_err());
        guardian.sign_as_guardian().unwrap();
        let guardian = thread::spawn(move || {
            thread::sleep(Duration::from_millis(60));
            drop(guardian);
        });
        Lock::take(&fake.host(), Contention::Refuse).expect("a guardian is waited for, even so");
        guardian.join().unwrap();
    }

    #[test]
    fn who_only_looks_sees_a_holder_needs_no_rights_and_leaves_no_trace() {
        let fake = FakeHost::new(0, 0);
        let host = Host { state: fake.host().state.join("run"), ..fake.host() };
        check_free(&host).unwrap();
        assert!(!host.state.exists());
        let held = Lock::take(&host, Contention::Refuse).unwrap();
        assert_eq!(fs::metadata(host.lock_path()).unwrap().permissions().mode() & 0o777, FOR_ALL_TO_READ);
        assert_eq!(fs::metadata(&host.state).unwrap().permissions().mode() & 0o777, FOR_ALL_TO_ENTER);
        assert!(matches!(check_free(&host), Err(Error::Held { pid: Some(_), .. })));
        drop(held);
        check_free(&host).unwrap();
        Lock::take(&host, Contention::Refuse).expect("looking has left no lock");
    }

    #[test]
    fn only_the_locked_lock_can_be_adopted() {
        let fake = FakeHost::new(0, 0);
        let lock = Lock::take(&fake.host(), Contention::Refuse).unwrap();
        let unlocked = File::open(fake.host().lock_path()).unwrap();
        assert!(Lock::adopt(&fake.host(), unlocked.into()).is_err());
        assert!(Lock::adopt(&fake.host(), File::open("/dev/null").unwrap().into()).is_err());
        drop(lock);
    }
}
