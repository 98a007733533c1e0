//! The two steps that need `unsafe`: what is done between fork and exec, and `wait4`.

use std::{
    env, io,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, set_parent_process_death_signal, setrlimit};
use vmtax_core::program::Usage;

use super::{Command, Error};

/// Starts it with an environment that is the same on every machine, but for `PATH`.
pub(super) fn spawn(command: &Command) -> Result<Child, Error> {
    let (program, arguments) = command.words.split_first().ok_or_else(|| Error::Missing { program: String::new() })?;
    let files = limit(program, command.open_files)?;
    let mut builder = std::process::Command::new(program);
    builder
        .args(arguments)
        .current_dir(command.directory)
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()))
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .env("HOME", command.directory)
        .env("TMPDIR", command.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let prepare = move || {
        set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        match files {
            Some(files) => Ok(setrlimit(Resource::Nofile, files)?),
            None => Ok(()),
        }
    };
    // SAFETY: between fork and exec only two system calls are made: nothing allocates or takes a lock.
    unsafe { builder.pre_exec(prepare) };
    builder.spawn().map_err(|source| match source.kind() {
        // It may be the directory that is not there.
        io::ErrorKind::NotFound if command.directory.is_dir() => Error::Missing { program: program.clone() },
        _ => Error::Start { program: program.clone(), source },
    })
}

/// The limit of open files to set; none where the present one is enough.
fn limit(program: &str, needed: u64) -> Result<Option<Rlimit>, Error> {
    let now = getrlimit(Resource::Nofile);
    if now.current.is_none_or(|soft| soft >= needed) {
        return Ok(None);
    }
    match now.maximum {
        Some(limit) if limit < needed => Err(Error::OpenFiles { program: program.to_owned(), needed, limit }),
        maximum => Ok(Some(Rlimit { current: Some(needed), maximum })),
    }
}

/// Waits for its end, and asks what it took; elapsed time is not known here.
pub(super) fn reap(pid: Pid) -> io::Result<(ExitStatus, Usage)> {
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid one.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to values of ours.
        let outcome = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &mut status, 0, &mut usage) };
        if outcome != -1 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    let usage = Usage {
        elapsed: Duration::ZERO,
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    };
    Ok((ExitStatus::from_raw(status), usage))
}
