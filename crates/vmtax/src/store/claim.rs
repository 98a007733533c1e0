//! One session a run: whoever measures a run of a file holds a name in the kernel, and the second is told who.
//!
//! The name is an abstract Unix socket (unix(7)) of the file and the run. The kernel gives it back when its process ends,
//! however it ends, and no file is left behind. It is one of the network namespace: two containers with one results file do
//! not see each other, and then the file alone keeps trials from being recorded twice.
//!
//! Rejected: a lock on the results file (SQLite locks the same file, and closing any descriptor of it would drop SQLite's
//! own locks), a lock file beside it (stays behind), a row in it (is not gone with its process).

use std::{
    fs, io,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::MetadataExt,
            net::{SocketAddr, UnixListener, UnixStream},
        },
    },
};

use rustix::net::sockopt::socket_peercred;

use super::{Store, StoreError};

/// The right to add trials to one run; gone with this value.
#[derive(Debug)]
pub struct Claim(#[allow(dead_code, reason = "held, not used")] UnixListener);

impl Store {
    /// Keeps every other session off this run.
    ///
    /// # Errors
    /// Another process measures it.
    pub fn claim(&self, run: &str) -> Result<Claim, StoreError> {
        let unusable = |source| StoreError::Open { path: self.path.clone(), source };
        let file = fs::metadata(&self.path).map_err(unusable)?;
        let name = format!("vmtax-{}-{}-{run}", file.dev(), file.ino());
        let address = SocketAddr::from_abstract_name(name).map_err(unusable)?;
        match UnixListener::bind_addr(&address) {
            Ok(listener) => Ok(Claim(listener)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Err(StoreError::Claimed { run: run.to_owned(), pid: holder(&address) })
            }
            Err(source) => Err(unusable(source)),
        }
    }
}

fn holder(address: &SocketAddr) -> Option<u32> {
    let socket = UnixStream::connect_addr(address).ok()?;
    socket_peercred(&socket).ok().map(|peer| peer.pid.as_raw_nonzero().get() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_claimed_once_and_free_again_when_the_claim_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let open = |name| Store::open(&directory.path().join(name)).unwrap();
        let (store, other) = (open("results.db"), open("other.db"));
        let claim = store.claim("20260101-000000").unwrap();
        let expected =
            format!("run 20260101-000000 is being measured by process {}; wait until it ends", std::process::id());
        assert_eq!(open("results.db").claim("20260101-000000").unwrap_err().to_string(), expected);
        let _another_run = store.claim("20260101-000001").unwrap();
        let _another_file = other.claim("20260101-000000").unwrap();
        drop(claim);
        store.claim("20260101-000000").unwrap();
    }
}
