//! A benchmark program run for a trial: its server started, its steps done in a private directory, its output read.
//!
//! Whatever a program does, the trial ends: with a finding, or with a [`Failure`] that says what to do. The directory
//! is removed in either case. Huge pages that a [`Script`] asks for must be in the pool before ([`Script::huge`]).

mod failure;
mod step;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use vmtax_core::{
    experiment::Finding,
    program::{Needs, Outputs, Program, Script, Server, Site, Usage, Values, command},
    units::Bytes,
};
use vmtax_machine::process::{self, Bounds, Running};

pub use failure::Failure;
use step::{Step, Text};

/// Where programs run, and whom they talk to.
#[derive(Debug, Clone)]
pub struct Place {
    /// In which the private directories are made.
    pub parent: PathBuf,
    /// The address of the machine under test.
    pub host: String,
    /// The port of its server.
    pub port: u16,
    /// A source tree, for what runs in one.
    pub tree: Option<String>,
    /// Who starts the servers of network benchmarks.
    pub servers: Servers,
}

/// Who starts the other end of a network benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Servers {
    /// This process, on this machine.
    Ours,
    /// Somebody else, on the machine under test.
    #[expect(dead_code, reason = "guests hold no programs yet")]
    Theirs,
}

/// How long a program may take whose script does not say how long it should.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How long a server may take until it listens.
const SERVER_PATIENCE: Duration = Duration::from_secs(20);
/// How long a program may take to tell its version.
const VERSION_PATIENCE: Duration = Duration::from_secs(20);

impl Place {
    /// This machine, with private directories in `TMPDIR` or `/tmp`.
    pub fn here(port: u16) -> Place {
        let host = "127.0.0.1".to_owned();
        Place { parent: std::env::temp_dir(), host, port, tree: None, servers: Servers::Ours }
    }

    /// A private directory, removed when it is dropped.
    pub fn private(&self) -> Result<TempDir, Failure> {
        tempfile::Builder::new().prefix("vmtax-").tempdir_in(&self.parent).map_err(Failure::Directory)
    }

    fn site(&self, directory: &Path) -> Site {
        let directory = directory.display().to_string();
        Site { directory, host: self.host.clone(), port: self.port, tree: self.tree.clone() }
    }
}

/// Runs a trial of `program`.
pub fn run(program: &Program, values: &Values, place: &Place, stop: &AtomicBool) -> Result<Finding, Failure> {
    let directory = place.private()?;
    let script = (program.script)(values, &place.site(directory.path()))?;
    room(&script, directory.path())?;
    let version = version(&program.needs, directory.path(), stop)?;
    let server = match (&script.server, place.servers) {
        (Some(server), Servers::Ours) => Some(serve(server, directory.path(), stop)?),
        (None, _) | (_, Servers::Theirs) => None,
    };
    let within =
        |words| Step { words, directory: directory.path(), open_files: script.open_files, time: time(&script) };
    let measured = measure(&script, &within, stop);
    for words in &script.cleanup {
        // The directory goes anyway; what matters has been measured, or has failed, by now.
        let _ = within(words).run(stop);
    }
    let Measured { run, reference } = measured.map_err(|failure| failure.with_remedy(&program.needs))?;
    let outputs = Outputs { run: run.output(), reference: reference.as_ref().map(Text::output) };
    let mut finding = run.explain((program.read)(values, &outputs))?;
    finding.evidence.extend(evidence(&run.usage));
    finding.evidence.extend(version.map(|version| (program.needs.version_evidence(), version)));
    finding.caveats.extend(on_memory(&script, directory.path()));
    finding.caveats.extend(server.map(|_| "client and server shared the CPUs of one machine".to_owned()));
    directory.close().map_err(Failure::Directory)?;
    Ok(finding)
}

/// Runs a trial of the user's own command, which may take so long.
pub fn run_command(
    own: &command::Command,
    time: Duration,
    place: &Place,
    stop: &AtomicBool,
) -> Result<Finding, Failure> {
    let directory = place.private()?;
    let ran = Step { words: &own.command, directory: directory.path(), open_files: 0, time }.run(stop)?;
    let mut finding = ran.explain(own.read(&Outputs { run: ran.output(), reference: None }))?;
    finding.evidence.extend(evidence(&ran.usage));
    directory.close().map_err(Failure::Directory)?;
    Ok(finding)
}

struct Measured {
    run: Text,
    reference: Option<Text>,
}

fn measure<'a>(
    script: &'a Script,
    within: &impl Fn(&'a [String]) -> Step<'a>,
    stop: &AtomicBool,
) -> Result<Measured, Failure> {
    for words in &script.prepare {
        within(words).run(stop)?.success()?;
    }
    let reference = script.reference.as_ref().map(|words| within(words).run(stop)).transpose()?;
    Ok(Measured { run: within(&script.run).run(stop)?, reference })
}

/// Twice what it should take, and a minute: on a loaded host a program starts and ends late.
fn time(script: &Script) -> Duration {
    script.expected.map_or(PATIENCE, |expected| expected * 2 + Duration::from_secs(60))
}

/// The disk has room for what the script writes.
fn room(script: &Script, directory: &Path) -> Result<(), Failure> {
    let needed = Bytes(script.disk.0.saturating_add(Bounds::within(Duration::ZERO).free.0));
    match process::free(directory) {
        Some(free) if script.disk.0 > 0 && free < needed => {
            Err(Failure::Room { needed, free, directory: directory.to_owned() })
        }
        Some(_) | None => Ok(()),
    }
}

/// The version the program tells; none where it tells none. Whether it is there at all shows here too.
fn version(needs: &Needs, directory: &Path, stop: &AtomicBool) -> Result<Option<String>, Failure> {
    let mut words = vec![needs.program.to_owned()];
    words.extend(needs.version.iter().map(|&word| word.to_owned()));
    let step = Step { words: &words, directory, open_files: 0, time: VERSION_PATIENCE };
    // Some tell it with an exit code of failure: hackbench in the help for a wrong option.
    let told = step.run(stop).map_err(|failure| failure.with_remedy(needs))?;
    Ok(needs.read_version(&told.stdout).or_else(|| needs.read_version(&told.stderr)))
}

/// Starts a server and waits until it listens.
fn serve(server: &Server, directory: &Path, stop: &AtomicBool) -> Result<Running, Failure> {
    let command = process::Command { words: &server.command, directory, open_files: 0 };
    let running = Running::start(&command)?;
    let begin = Instant::now();
    let shown = || server.command.join(" ");
    while !listens(server.port) {
        if !running.is_alive() {
            let ended = running.finish(&Bounds::within(SERVER_PATIENCE), stop)?;
            let last = step::last_line(&[&ended.stderr, &ended.stdout].map(|bytes| step::text(bytes)));
            return Err(Failure::Server { command: shown(), last });
        }
        if begin.elapsed() > SERVER_PATIENCE {
            return Err(Failure::Deaf { command: shown(), port: server.port });
        }
        if stop.load(Ordering::Acquire) {
            return Err(Failure::Stopped);
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(running)
}

/// Whether something listens on a TCP port of this machine. Asked of the kernel, not of the server: to iperf3 a
/// connection that says nothing is a client, and the next one finds it busy.
fn listens(port: u16) -> bool {
    // Columns: number, local address `HEX:PORT`, remote address, state (0A is LISTEN).
    let is_it = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        let local = columns.next().and_then(|address| u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok());
        local == Some(port) && columns.nth(1) == Some("0A")
    };
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    tables.iter().any(|table| table.lines().any(is_it))
}

/// What the program took, beside what it says.
fn evidence(usage: &Usage) -> BTreeMap<String, String> {
    let seconds = |time: Duration| format!("{:.6}", time.as_secs_f64());
    let facts = [
        ("program.elapsed_s", seconds(usage.elapsed)),
        ("program.user_s", seconds(usage.user)),
        ("program.system_s", seconds(usage.system)),
        ("program.voluntary_switches", usage.voluntary_switches.to_string()),
        ("program.involuntary_switches", usage.involuntary_switches.to_string()),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The kind of file system that a directory lies on, as `/proc/mounts` names it.
pub fn filesystem(directory: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let holds = |line: &&str| line.split(' ').nth(1).is_some_and(|point| directory.starts_with(point));
    let mount = mounts.lines().filter(holds).max_by_key(|line| line.split(' ').nth(1).map_or(0, str::len))?;
    mount.split(' ').nth(2).map(str::to_owned)
}

/// Files on tmpfs are memory.
fn on_memory(script: &Script, directory: &Path) -> Option<String> {
    let is_memory = script.disk.0 > 0 && filesystem(directory).as_deref() == Some("tmpfs");
    is_memory.then(|| "its files lie on tmpfs, in memory; TMPDIR on a disk measures the disk".to_owned())
}
