//! A vmtax command run in the guest, its output told as it comes.

use std::{
    fs,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::ExitStatusExt,
    },
    process::{Child, Command, ExitStatus, Stdio},
};

use anyhow::{Context, bail};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{Mode, OFlags, open},
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use super::{
    blob::Blob,
    frame,
    message::{Answer, Ask, Errors, Order, Request, Say, Stream},
};

/// Bytes told at once.
const PIECE: usize = 64 << 10;

/// Runs it to its end, which is the answer that this returns.
pub fn run<P: Read + Write + AsFd>(order: &Order, port: &mut P, id: u64) -> anyhow::Result<Say> {
    fs::create_dir_all(&order.directory).with_context(|| format!("cannot make {}", order.directory))?;
    let (mut child, sources) = start(order).context("cannot start vmtax in the guest")?;
    let told = tell(&child, sources, port, id);
    if told.is_err() {
        // Whoever asked is gone, or talks nonsense.
        let _ = child.kill();
    }
    let status = child.wait()?;
    told.map(|()| Say::Ended(code(status)))
}

/// The code by which a shell tells an end.
fn code(status: ExitStatus) -> u8 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1) as u8
}

/// A stream of the child's that has not ended.
#[derive(Debug)]
struct Source {
    stream: Stream,
    end: OwnedFd,
}

fn start(order: &Order) -> io::Result<(Child, Vec<Source>)> {
    let mut command = Command::new("/proc/self/exe");
    command.args(&order.arguments).current_dir(&order.directory).stdin(Stdio::null()).stdout(Stdio::piped());
    command.env_clear().envs(order.environment.iter().map(|(name, value)| (name, value)));
    let terminal = match order.errors {
        Errors::Pipe => {
            command.stderr(Stdio::piped());
            None
        }
        Errors::Terminal { rows, columns } => {
            let (ours, theirs) = terminal(rows, columns)?;
            command.stderr(Stdio::from(theirs));
            Some(ours)
        }
    };
    let mut child = command.spawn()?;
    let output = child.stdout.take().map(|end| Source { stream: Stream::Output, end: end.into() });
    let errors = child.stderr.take().map(OwnedFd::from).or(terminal);
    let errors = errors.map(|end| Source { stream: Stream::Errors, end });
    Ok((child, output.into_iter().chain(errors).collect()))
}

/// Our end and theirs.
fn terminal(rows: u16, columns: u16) -> io::Result<(OwnedFd, OwnedFd)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    tcsetwinsize(&ours, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    let theirs = open(ptsname(&ours, Vec::new())?, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((ours, theirs))
}

/// Tells what comes, and hears of interrupts, until every stream has ended.
fn tell<P: Read + Write + AsFd>(child: &Child, mut sources: Vec<Source>, port: &mut P, id: u64) -> anyhow::Result<()> {
    let pid = Pid::from_child(child);
    while !sources.is_empty() {
        let ready = ready(port, &sources)?;
        if ready[0] {
            heard(port, pid)?;
        }
        let mut still = Vec::new();
        for (source, is_ready) in sources.into_iter().zip(&ready[1..]) {
            let bytes = if *is_ready { Some(piece(&source)?) } else { None };
            let is_over = bytes.as_ref().is_some_and(Vec::is_empty);
            if let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) {
                let say = Say::Wrote { stream: source.stream, bytes: Blob(bytes) };
                frame::write(port, &serde_json::to_vec(&Answer { id, say })?)?;
            }
            if !is_over {
                still.push(source);
            }
        }
        sources = still;
    }
    Ok(())
}

/// Which of the port and the sources have something, or have ended.
fn ready(port: &impl AsFd, sources: &[Source]) -> io::Result<Vec<bool>> {
    let mut ends = vec![PollFd::new(port, PollFlags::IN)];
    ends.extend(sources.iter().map(|source| PollFd::new(&source.end, PollFlags::IN)));
    poll(&mut ends, None)?;
    Ok(ends.iter().map(|end| !end.revents().is_empty()).collect())
}

fn heard(port: &mut impl Read, pid: Pid) -> anyhow::Result<()> {
    let body = frame::read(port)?.context("the host is gone")?;
    match serde_json::from_slice::<Request>(&body)?.ask {
        // It may have ended already.
        Ask::Interrupt => drop(kill_process(pid, Signal::INT)),
        _ => bail!("asked for something else while vmtax runs"),
    }
    Ok(())
}

/// What there is; nothing where the stream has ended. A terminal ends with an error, when nobody has its other end open.
fn piece(source: &Source) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PIECE];
    match rustix::io::read(&source.end, &mut bytes) {
        Ok(n) => bytes.truncate(n),
        Err(rustix::io::Errno::IO) => bytes.clear(),
        Err(rustix::io::Errno::INTR) => return piece(source),
        Err(error) => return Err(error.into()),
    }
    Ok(bytes)
}
