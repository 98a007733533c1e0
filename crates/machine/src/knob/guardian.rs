//! A process that puts the host back when its parent disappears, by SIGKILL too.
//!
//! ```text
//!   vmtax                                   guardian (/proc/self/exe __guardian STATE SYS PROC)
//!     socketpair, spawn ──────────────────►  stdin = socket, stdout = the lock
//!                                            closes all else, ignores signals, own session
//!     reads one byte ◄─────────────────────  "ready": only now may a knob be turned
//!     … measures, restores, removes the journal …
//!     closes the socket, or is killed ─────► end of file: puts back what is in the journal; ends
//!     waits for it
//! ```
//!
//! No word is needed for "released": the journal is the one truth, and after a release there is none.
//!
//! By the end of file no write of the parent to a knob is under way and its memory is gone: a thread gives up its memory
//! before its files (`do_exit`, `kernel/exit.c`, 6.18: `exit_mm`, then `exit_files`), and the socket closes with the last
//! thread. A fork of the parent that never calls exec would hold the socket open; vmtax makes none.
//!
//! Rejected: `PR_SET_PDEATHSIG` (fires when the parent's *thread* ends), a double-forked daemon (fork is not safe in a
//! process with threads), a systemd unit (needs systemd, and rights there).

use std::{
    env,
    ffi::OsStr,
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::{self, Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    time::Duration,
};

use super::{Error, Host, journal::Journal, lock::Lock, restore};

/// The hidden argument that makes a program its own guardian.
pub const ARGUMENT: &str = "__guardian";

/// How long a guardian may take to say that it is ready. A loaded host takes its time to run a new process.
const START_PATIENCE: Duration = Duration::from_secs(30);

const READY: &[u8] = b"!";

/// Runs the guardian if this process was started as one. The first statement of every `main` that acquires a lease:
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     if let Some(code) = vmtax_machine::knob::guardian::dispatch() {
///         return code;
///     }
///     std::process::ExitCode::SUCCESS // what the program is for
/// }
/// ```
pub fn dispatch() -> Option<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    if arguments.next()? != OsStr::new(ARGUMENT) {
        return None;
    }
    let paths: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let [state, sys, proc] = paths.try_into().ok()?;
    // Nobody is left to read a reason: what is not put back stays in the journal.
    Some(if watch(&Host::at(state, sys, proc)).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn watch(host: &Host) -> io::Result<()> {
    close_inherited();
    ignore_signals();
    let mut parent = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let lock = Lock::adopt(host, io::stdout().as_fd().try_clone_to_owned()?)?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    // Out of the terminal's session: no hang-up, no Ctrl-C.
    rustix::process::setsid()?;
    rustix::thread::set_name(c"vmtax-guardian")?;
    // The parent holds the memory that an out-of-memory killer looks for; its guardian must not go first. Best effort.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    parent.write_all(READY)?;
    // A connection reset is an end like any other.
    let _ = parent.read_to_end(&mut Vec::new());
    lock.sign_as_guardian()?;
    let mut journal = Journal::open(host).map_err(io::Error::other)?;
    restore::put_back(host, &mut journal);
    Ok(())
}

/// Closes what the parent's parents left open: a pipe kept open here would keep its reader waiting.
fn close_inherited() {
    // Kernels before 5.9 have no close_range; there such a pipe stays open until vmtax ends, no worse than in vmtax.
    // SAFETY: called first in `main` of a fresh process, so no object of this program owns a descriptor above 2 yet.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

/// Whatever ends the parent politely must not end its guardian, which ends by itself right after.
fn ignore_signals() {
    use libc::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU};
    for signal in [SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU] {
        // SAFETY: SIG_IGN installs no handler, so no code of ours runs in signal context.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// The guardian as its parent sees it.
#[derive(Debug)]
pub(super) struct Guardian {
    child: Child,
    socket: UnixStream,
}

impl Guardian {
    /// Starts a guardian that shares `lock`, and waits until it is ready.
    pub fn start(host: &Host, lock: &Lock) -> Result<Guardian, Error> {
        let (socket, theirs) = UnixStream::pair().map_err(Error::Guardian)?;
        let child = spawn(host, lock, theirs.into()).map_err(Error::Guardian)?;
        let mut guardian = Guardian { child, socket };
        match guardian.wait_until_ready() {
            Ok(()) => Ok(guardian),
            Err(error) => {
                // It has nothing to guard yet. Both fail only if it is gone already.
                let _ = guardian.child.kill();
                let _ = guardian.child.wait();
                Err(Error::Guardian(error))
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it look into the journal a last time, and end.
    pub fn dismiss(self) {
        let Guardian { mut child, socket } = self;
        drop(socket);
        // Fails only where the program has children reaped by somebody else: then it is gone as well.
        let _ = child.wait();
    }

    fn wait_until_ready(&mut self) -> io::Result<()> {
        self.socket.set_read_timeout(Some(START_PATIENCE))?;
        let mut byte = [0; READY.len()];
        self.socket.read_exact(&mut byte)
    }
}

fn spawn(host: &Host, lock: &Lock, socket: OwnedFd) -> io::Result<Child> {
    let absolute = |path: &Path| path::absolute(path);
    Command::new("/proc/self/exe")
        .arg0("vmtax-guardian")
        .arg(ARGUMENT)
        .args([absolute(&host.state)?, absolute(&host.sys)?, absolute(&host.proc)?])
        .current_dir("/")
        .stdin(socket)
        .stdout(lock.share()?)
        .stderr(Stdio::null())
        .spawn()
}
