//! A foreign program run to its end, within bounds: of time, of output, of disk.
//!
//! It runs in a process group of its own, which is killed when a bound is passed, when a stop is asked for, and when its
//! first process has ended and left others behind. What leaves the group by `setsid` escapes; no program of ours is
//! started so that it does. If vmtax itself is killed, the kernel kills the first process of the group.
//!
//! User and system time are what `wait4` reports: of the process and of all it waited for, which is what `time` tells of
//! a build.

mod outcome;
mod spawn;
#[cfg(test)]
mod tests;

use std::{
    fs::File,
    io::Read,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};
use vmtax_core::units::{Bytes, MIB};

pub use outcome::{End, Ended, Error};

/// What is run, and where.
#[derive(Debug, Clone, Copy)]
pub struct Command<'a> {
    /// The program, looked up in `PATH`, and its arguments.
    pub words: &'a [String],
    /// Its working directory, also its `HOME` and `TMPDIR`.
    pub directory: &'a Path,
    /// Files it may have open at once; 0 leaves that as it is.
    pub open_files: u64,
}

/// What it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Until it ends.
    pub time: Duration,
    /// That it prints, on each of its two outputs.
    pub output: Bytes,
    /// That it must leave free on the disk of its directory.
    pub free: Bytes,
}

impl Bounds {
    /// So much time, 16 MiB of output, and 64 MiB left free.
    pub fn within(time: Duration) -> Bounds {
        Bounds { time, output: Bytes(16 * MIB), free: Bytes(64 * MIB) }
    }
}

/// How often a stop and the disk are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// A program that runs. It is killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    handle: OwnedFd,
    started: Instant,
    directory: PathBuf,
    is_reaped: bool,
    stdout: Stream,
    stderr: Stream,
}

/// One of its outputs, as far as it was read.
#[derive(Debug, Default)]
struct Stream {
    /// None once it has ended.
    pipe: Option<File>,
    bytes: Vec<u8>,
}

impl Running {
    /// Starts it.
    pub fn start(command: &Command) -> Result<Running, Error> {
        let program = command.words.first().cloned().unwrap_or_default();
        let failed = |source| Error::Start { program: program.clone(), source };
        let started = Instant::now();
        let mut child = spawn::spawn(command)?;
        let pid = Pid::from_child(&child);
        let pipes = (child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from));
        let handle = pidfd_open(pid, PidfdFlags::empty());
        let mut running = match handle {
            Ok(handle) => Running {
                pid,
                handle,
                started,
                directory: command.directory.to_owned(),
                is_reaped: false,
                stdout: Stream::default(),
                stderr: Stream::default(),
            },
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(error.into()));
            }
        };
        running.stdout = Stream::of(pipes.0).map_err(failed)?;
        running.stderr = Stream::of(pipes.1).map_err(failed)?;
        Ok(running)
    }

    /// Whether it still runs.
    pub fn is_alive(&self) -> bool {
        let mut polled = [PollFd::new(&self.handle, PollFlags::IN)];
        !matches!(poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1..))
    }

    /// Waits for its end, or ends it.
    pub fn finish(mut self, bounds: &Bounds, stop: &AtomicBool) -> Result<Ended, Error> {
        let early = self.watch(bounds, stop).map_err(Error::Wait)?;
        // While its first process is not reaped, nothing else can have the number of the group.
        self.kill_group();
        let (status, mut usage) = spawn::reap(self.pid).map_err(Error::Wait)?;
        self.is_reaped = true;
        usage.elapsed = self.started.elapsed();
        for stream in [&mut self.stdout, &mut self.stderr] {
            stream.drain(bounds.output);
        }
        let end = early.unwrap_or_else(|| outcome::end_of(status));
        let [stdout, stderr] = [&mut self.stdout, &mut self.stderr].map(|stream| std::mem::take(&mut stream.bytes));
        Ok(Ended { end, stdout, stderr, usage })
    }

    /// Until it has ended (none), or a bound is passed.
    fn watch(&mut self, bounds: &Bounds, stop: &AtomicBool) -> std::io::Result<Option<End>> {
        loop {
            if stop.load(Ordering::Acquire) {
                return Ok(Some(End::Stopped));
            }
            if self.started.elapsed() >= bounds.time {
                return Ok(Some(End::Hung));
            }
            if free(&self.directory).is_some_and(|free| free < bounds.free) {
                return Ok(Some(End::DiskFull));
            }
            let until = Instant::now() + LOOK;
            while Instant::now() < until {
                if self.poll(until)? {
                    return Ok(None);
                }
                let streams = [&mut self.stdout, &mut self.stderr];
                if streams.into_iter().any(|stream| stream.drain(bounds.output) == Room::Full) {
                    return Ok(Some(End::Flooded));
                }
            }
        }
    }

    /// Sleeps until there is output or an end; true for the end.
    fn poll(&self, until: Instant) -> std::io::Result<bool> {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).expect("a tenth of a second is a time");
        let pipes = [&self.stdout, &self.stderr].into_iter().filter_map(|stream| stream.pipe.as_ref());
        let fds = std::iter::once(self.handle.as_fd()).chain(pipes.map(AsFd::as_fd));
        let mut polled: Vec<PollFd> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) => Ok(!polled[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn kill_group(&self) {
        // Fails only where nobody is left.
        let _ = kill_process_group(self.pid, Signal::KILL);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.kill_group();
            let _ = spawn::reap(self.pid);
        }
    }
}

/// Runs it to its end.
pub fn run(command: &Command, bounds: &Bounds, stop: &AtomicBool) -> Result<Ended, Error> {
    Running::start(command)?.finish(bounds, stop)
}

/// Free bytes for an ordinary user on the disk of `directory`; none where that cannot be told, or is no disk, as `/proc`.
pub fn free(directory: &Path) -> Option<Bytes> {
    let stat = rustix::fs::statvfs(directory).ok().filter(|stat| stat.f_blocks > 0)?;
    Some(Bytes(stat.f_bavail.saturating_mul(stat.f_frsize)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Left,
    Full,
}

impl Stream {
    /// Read without waiting: a process that outlives the first one may keep it open.
    fn of(pipe: Option<OwnedFd>) -> std::io::Result<Stream> {
        if let Some(pipe) = &pipe {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Stream { pipe: pipe.map(File::from), bytes: Vec::new() })
    }

    /// Takes what is there, up to `most` bytes in all.
    fn drain(&mut self, most: Bytes) -> Room {
        let mut buffer = [0; 1 << 16];
        while let Some(pipe) = &mut self.pipe {
            let room = usize::try_from(most.0).unwrap_or(usize::MAX).saturating_sub(self.bytes.len());
            if room == 0 {
                return Room::Full;
            }
            let wanted = room.min(buffer.len());
            match pipe.read(&mut buffer[..wanted]) {
                Ok(0) => self.pipe = None,
                Ok(n) => self.bytes.extend_from_slice(&buffer[..n]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(_) => self.pipe = None,
            }
        }
        Room::Left
    }
}
