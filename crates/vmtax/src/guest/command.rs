//! A vmtax command in a guest: files sent, output told as it comes, files fetched.

use std::{
    io::ErrorKind,
    os::unix::net::UnixStream,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::{Guest, GuestError, talk::unexpected};
use crate::agent::{
    blob::Blob,
    message::{Ask, Order, Say, Stream},
};

/// How often somebody's wish to stop is looked for.
const GLANCE: Duration = Duration::from_millis(100);
/// How long a command has to end in good order once it was interrupted: emulated, a trial takes seconds.
const PARTING: Duration = Duration::from_secs(120);
/// Bytes of a fetched file at most: the guest is not trusted with our memory.
pub const LARGEST: usize = 256 << 20;

impl Guest {
    /// Writes a file in the guest.
    pub fn send(&mut self, path: &str, contents: &[u8]) -> Result<(), GuestError> {
        let ask = Ask::Write { path: path.to_owned(), contents: Blob(contents.to_vec()) };
        match self.talk.ask(ask, "to write a file", self.patience.answer)? {
            Say::Written => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Reads a file of the guest; empty where there is none.
    pub fn fetch(&mut self, path: &str) -> Result<Vec<u8>, GuestError> {
        let mut contents = Vec::new();
        loop {
            let ask = Ask::Read { path: path.to_owned(), from: contents.len() as u64 };
            match self.talk.ask(ask, "for a file", self.patience.answer)? {
                Say::Piece(Blob(piece)) if piece.is_empty() => return Ok(contents),
                Say::Piece(Blob(piece)) => contents.extend(piece),
                other => return Err(unexpected(&other)),
            }
            if contents.len() > LARGEST {
                return Err(GuestError::Protocol(format!("{path} is larger than {LARGEST} bytes")));
            }
        }
    }

    /// Runs vmtax in the guest; its exit code. `hear` gets its output as it comes. When `stop` becomes true it is
    /// interrupted, and has some time to end in good order.
    pub fn run(
        &mut self,
        order: Order,
        stop: &AtomicBool,
        mut hear: impl FnMut(Stream, &[u8]),
    ) -> Result<u8, GuestError> {
        let id = self.talk.say(Ask::Run(order), "to run vmtax", self.patience.answer)?;
        let mut interrupted: Option<Instant> = None;
        loop {
            if stop.load(Ordering::Relaxed) && interrupted.is_none() {
                self.talk.say(Ask::Interrupt, "to interrupt vmtax", self.patience.answer)?;
                interrupted = Some(Instant::now());
            }
            if !self.talk.is_ready(GLANCE)? {
                match interrupted {
                    Some(since) if since.elapsed() > PARTING => {
                        let (asked, console) = ("to interrupt vmtax", self.talk.console().tail());
                        return Err(GuestError::Silent { asked, after: PARTING, console });
                    }
                    Some(_) | None => continue,
                }
            }
            match self.talk.hear(id, "while vmtax ran", self.patience.answer)? {
                Say::Wrote { stream, bytes } => hear(stream, &bytes.0),
                Say::Ended(code) => return Ok(code),
                other => return Err(unexpected(&other)),
            }
        }
    }
}

/// Whether something can be read within `patience`, the end included.
pub(super) fn is_ready(stream: &UnixStream, patience: Duration) -> std::io::Result<bool> {
    use rustix::net::{RecvFlags, recv};
    stream.set_read_timeout(Some(patience))?;
    let mut byte = [0; 1];
    match recv(stream, &mut byte, RecvFlags::PEEK) {
        Ok(_) => Ok(true),
        // So ends a QEMU that dies with a question unread.
        Err(rustix::io::Errno::CONNRESET) => Ok(true),
        Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted].contains(&error.kind()) => {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}
