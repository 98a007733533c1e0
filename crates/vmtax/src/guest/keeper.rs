//! A process between vmtax and QEMU that lets nothing outlive vmtax.
//!
//! ```text
//!   vmtax                              keeper (/proc/self/exe __guest-keeper PARENT)
//!     socketpair, spawn ─────────────►  own session; makes the private directory
//!     reads its path ◄────────────────  {"directory": …}
//!     listens there
//!     sends the order ───────────────►  {"program": …, "arguments": […]}
//!                                       spawns /proc/self/exe __guest-tied, which ties itself to the keeper's
//!     reads the pid ◄─────────────────  life (PR_SET_PDEATHSIG) and becomes QEMU
//!     … boots, asks, …
//!     reads the end ◄─────────────────  {"ended": …}
//!     closes the socket, or is killed ►  end of file: kills QEMU, removes the directory, ends
//! ```
//!
//! So QEMU ends with vmtax, also after SIGKILL of vmtax; with the keeper, also after SIGKILL of the keeper (its directory
//! then stays); and the directory is removed in one place. A death signal from vmtax itself would not do: it fires when the
//! *thread* ends that started QEMU, and removes no directory. The keeper has one thread that starts processes, its first.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{self, Child, Command, ExitCode, Stdio},
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    thread,
    time::Duration,
};

use rustix::{
    process::{
        Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal, set_parent_process_death_signal, setsid,
    },
    thread::disable_transparent_huge_pages,
};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use vmtax_machine::tap;

use super::{GuestError, console::Console, line::Lines, stream::Until};

const KEEPER: &str = "__guest-keeper";
const TIED: &str = "__guest-tied";
/// How long a keeper may take to start, on a loaded host.
const PATIENCE: Duration = Duration::from_secs(30);

/// Transparent huge pages of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThpRule {
    /// As the host has it.
    Host,
    /// None, of any size.
    Never,
}

/// What a keeper starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The program, by its absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What its memory may be.
    pub thp: ThpRule,
    /// What its standard input is.
    pub input: Input,
}

/// The standard input of a program: what it has open from its start, and alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// Nothing.
    Null,
    /// A tap device: one that exists, or a new one.
    Tap(Option<String>),
}

/// What a keeper says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Directory(PathBuf),
    Started(u32),
    Ended(String),
    Failed(String),
}

/// A keeper, as vmtax sees it. Dropping it ends all that it keeps, and waits for that.
#[derive(Debug)]
pub struct Keeper {
    child: Child,
    socket: UnixStream,
    lines: Lines,
    directory: PathBuf,
    stderr: Console,
    ended: Arc<Mutex<Option<String>>>,
}

impl Keeper {
    /// Starts a keeper, with a private directory under `parent`.
    pub fn start(parent: &Path) -> Result<Keeper, GuestError> {
        let failed = |e| GuestError::host("start a keeper for the guest", e);
        let (socket, theirs) = UnixStream::pair().map_err(failed)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("vmtax-keeper").arg(KEEPER).arg(parent).current_dir("/");
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        // Its own copy of their end: the command keeps one until it goes.
        drop(command);
        let stderr = Console::follow(child.stderr.take().expect("piped"));
        let (lines, ended, directory) = (Lines::default(), Arc::default(), PathBuf::new());
        let mut keeper = Keeper { child, socket, lines, directory, stderr, ended };
        match keeper.hear()? {
            Word::Directory(directory) => keeper.directory = directory,
            other => return Err(failed(io::Error::other(format!("{other:?}")))),
        }
        Ok(keeper)
    }

    /// The private directory, in which the program will run.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What the program wrote to its standard error.
    pub fn stderr(&self) -> &Console {
        &self.stderr
    }

    /// Starts the program; its process.
    pub fn run(&mut self, order: &Order) -> Result<u32, GuestError> {
        let failed = |e| GuestError::host(format!("start {}", order.program.display()), e);
        send(&mut &self.socket, order).map_err(failed)?;
        let pid = match self.hear()? {
            Word::Started(pid) => pid,
            Word::Failed(why) => return Err(failed(io::Error::other(why))),
            other => return Err(failed(io::Error::other(format!("{other:?}")))),
        };
        let mut socket = self.socket.try_clone().map_err(failed)?;
        socket.set_read_timeout(None).map_err(failed)?;
        let (ended, mut lines) = (Arc::clone(&self.ended), std::mem::take(&mut self.lines));
        thread::spawn(move || {
            let word = lines.next(&mut socket).ok().flatten().and_then(|line| serde_json::from_str(&line).ok());
            let how = match word {
                Some(Word::Ended(how)) => how,
                Some(Word::Directory(_) | Word::Started(_) | Word::Failed(_)) | None => "an unknown status".to_owned(),
            };
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(how);
        });
        Ok(pid)
    }

    /// How the program ended, if it has.
    pub fn ended(&self) -> Option<String> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn hear(&mut self) -> Result<Word, GuestError> {
        let mut stream = Until::new(&self.socket, PATIENCE);
        let line =
            self.lines.next(&mut stream).and_then(|line| line.ok_or_else(|| io::ErrorKind::UnexpectedEof.into()));
        let word = line.and_then(|line| serde_json::from_str(&line).map_err(io::Error::other));
        match word {
            Ok(Word::Failed(why)) => Err(GuestError::host("keep a guest", io::Error::other(why))),
            Ok(word) => Ok(word),
            Err(e) => Err(GuestError::host("hear from the guest's keeper", e)),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Both fail only where the keeper is gone already.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let _ = self.child.wait();
    }
}

/// Plays the keeper, or the process that becomes QEMU, if this process was started as one of them.
pub fn dispatch() -> Option<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    let part = arguments.next()?;
    if part == OsStr::new(KEEPER) {
        let parent = PathBuf::from(arguments.next()?);
        return Some(if keep(&parent).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    if part == OsStr::new(TIED) {
        let words: Vec<OsString> = arguments.collect();
        // It returns only if the program could not be started. Its keeper's standard error is read by vmtax.
        let error = become_tied(&words).expect_err("another program took this one's place");
        crate::output::note(format_args!("cannot start it: {error}"));
        return Some(ExitCode::FAILURE);
    }
    None
}

fn keep(parent: &Path) -> io::Result<()> {
    // Out of the terminal's session: no hang-up, no Ctrl-C. What else ends vmtax politely must not end its keeper first.
    setsid()?;
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let null = fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    let directory = match made(parent) {
        Ok(directory) => directory,
        Err(e) => return send(&mut socket, &Word::Failed(format!("{}: {e}", parent.display()))),
    };
    send(&mut socket, &Word::Directory(directory.path().to_owned()))?;
    let mut lines = Lines::default();
    let Some(order) = lines.next(&mut socket)? else { return Ok(()) };
    let order: Order = serde_json::from_str(&order)?;
    let mut child = match tied(&order, directory.path()) {
        Ok(child) => child,
        Err(e) => return send(&mut socket, &Word::Failed(e.to_string())),
    };
    // The end of its standard error is then the end of the program.
    rustix::stdio::dup2_stderr(&null)?;
    send(&mut socket, &Word::Started(child.id()))?;
    let killer = kill_at_end_of(socket.try_clone()?, &child)?;
    let status = child.wait()?;
    // vmtax may be gone.
    let _ = send(&mut socket, &Word::Ended(status.to_string()));
    let _ = killer.join();
    directory.close()
}

fn made(parent: &Path) -> io::Result<tempfile::TempDir> {
    fs::create_dir_all(parent)?;
    tempfile::Builder::new().prefix("vmtax-guest-").tempdir_in(parent)
}

fn tied(order: &Order, directory: &Path) -> io::Result<Child> {
    let thp = serde_json::to_string(&order.thp)?;
    let input = serde_json::to_string(&order.input)?;
    Command::new("/proc/self/exe")
        .args([TIED, &process::id().to_string(), &thp, &input])
        .arg(&order.program)
        .args(&order.arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
}

/// A thread that kills `child` when the other end of `socket` is closed. The child is not waited for before, so its id is its own.
fn kill_at_end_of(mut socket: UnixStream, child: &Child) -> io::Result<thread::JoinHandle<()>> {
    let pid = Pid::from_child(child);
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    Ok(thread::spawn(move || {
        // A connection reset is an end like any other.
        let _ = io::copy(&mut socket, &mut io::sink());
        // Fails only where it has ended by itself.
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    }))
}

/// Ties this process to its parent's life, and becomes another program.
fn become_tied(words: &[OsString]) -> io::Result<std::convert::Infallible> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let [parent, thp, input, program, arguments @ ..] = words else { return Err(invalid()) };
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before.
    let is_parent = getppid().is_some_and(|pid| parent.to_str() == Some(&pid.as_raw_nonzero().to_string()));
    if !is_parent {
        return Err(io::Error::other("its keeper is gone"));
    }
    match serde_json::from_str(thp.to_str().ok_or_else(invalid)?)? {
        ThpRule::Host => {}
        ThpRule::Never => disable_transparent_huge_pages(true)?,
    }
    match serde_json::from_str(input.to_str().ok_or_else(invalid)?)? {
        Input::Null => {}
        // Opened here, so that no other process ever holds it.
        Input::Tap(name) => rustix::stdio::dup2_stdin(tap::open(name.as_deref()).map_err(io::Error::other)?)?,
    }
    Err(Command::new(program).args(arguments).exec())
}

fn send(stream: &mut impl Write, word: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(word)?;
    line.push(b'\n');
    stream.write_all(&line)
}
