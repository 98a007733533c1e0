//! A socket with a deadline for a whole conversation, not for each read: who sends a byte a second is late all the same.

use std::{
    io::{self, ErrorKind, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// How often a listener is asked.
const PAUSE: Duration = Duration::from_millis(5);

/// A socket until a moment. Reads and writes after it are errors of the kind `TimedOut`.
#[derive(Debug)]
pub struct Until<'a> {
    stream: &'a UnixStream,
    deadline: Instant,
}

impl<'a> Until<'a> {
    /// `stream`, for `patience` from now on.
    pub fn new(stream: &'a UnixStream, patience: Duration) -> Until<'a> {
        Until { stream, deadline: Instant::now() + patience }
    }

    /// What is left, as a timeout: never zero, which would mean none.
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

fn late(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { error }
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer).map_err(late)
    }
}

impl Write for Until<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes).map_err(late)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A socket on which one connection is awaited.
#[derive(Debug)]
pub struct Door(UnixListener);

impl Door {
    /// Listens at `path`.
    pub fn at(path: &Path) -> io::Result<Door> {
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(Door(listener))
    }

    /// The connection; an error of the kind `TimedOut` at `deadline`, or none if `is_over` says that nobody will come.
    pub fn enter(self, deadline: Instant, is_over: impl Fn() -> bool) -> io::Result<Option<UnixStream>> {
        loop {
            match self.0.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false)?;
                    return Ok(Some(stream));
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
            if is_over() {
                return Ok(None);
            }
            if Instant::now() > deadline {
                return Err(ErrorKind::TimedOut.into());
            }
            thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_drips_is_late_all_the_same() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let dripping = thread::spawn(move || {
            while theirs.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(10));
            }
        });
        let mut until = Until::new(&ours, Duration::from_millis(200));
        let error = until.read_exact(&mut [0; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(ours);
        dripping.join().unwrap();
    }

    #[test]
    fn who_does_not_read_is_not_waited_for() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut until = Until::new(&ours, Duration::from_millis(100));
        assert_eq!(until.write_all(&vec![0; 8 << 20]).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
