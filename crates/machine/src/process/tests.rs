use std::{
    sync::{Arc, atomic::AtomicBool},
    thread,
};

use tempfile::TempDir;

use super::*;

/// Enough for anything that ends by itself, on a loaded host.
const LONG: Duration = Duration::from_secs(120);

fn run_within(script: &str, bounds: Bounds) -> (Ended, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let words = ["sh", "-c", script].map(str::to_owned);
    let command = Command { words: &words, directory: directory.path(), open_files: 0 };
    let ended = run(&command, &bounds, &AtomicBool::new(false)).unwrap();
    (ended, directory)
}

fn ended(script: &str) -> Ended {
    run_within(script, Bounds::within(LONG)).0
}

#[test]
fn a_program_is_run_with_its_output_and_its_code() {
    let ended = ended("echo out; echo err >&2; exit 3");
    assert_eq!(ended.end, End::Code(3));
    assert_eq!((ended.stdout.as_slice(), ended.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
}

#[test]
fn its_environment_is_fixed() {
    let (ended, directory) = run_within("echo $LC_ALL $TMPDIR; pwd; env | grep -c CARGO", Bounds::within(LONG));
    let directory = directory.path().display();
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), format!("C {directory}\n{directory}\n0\n"));
}

#[test]
fn a_program_that_hangs_is_killed_with_its_children() {
    let directory = tempfile::tempdir().unwrap();
    let pids = directory.path().join("pids");
    let words = ["sh".to_owned(), "-c".to_owned(), "sleep 1000 & echo $! > pids; wait".to_owned()];
    let command = Command { words: &words, directory: directory.path(), open_files: 0 };
    let running = Running::start(&command).unwrap();
    while std::fs::read_to_string(&pids).unwrap_or_default().is_empty() {
        thread::sleep(Duration::from_millis(10));
    }
    let ended = running.finish(&Bounds::within(Duration::from_millis(1)), &AtomicBool::new(false)).unwrap();
    assert_eq!(ended.end, End::Hung);
    assert_gone(std::fs::read_to_string(&pids).unwrap().trim());
}

/// The process has ended, though nobody may have waited for it yet.
#[track_caller]
fn assert_gone(pid: &str) {
    let begin = Instant::now();
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").map_or('X', |(_, rest)| rest.chars().next().unwrap_or('X'))
    };
    while !matches!(state(), 'X' | 'Z') {
        assert!(begin.elapsed() < LONG, "process {pid} lives");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_a_program_leaves_behind_is_killed_and_not_waited_for() {
    let ended = ended("sleep 1000 & echo $!");
    assert_eq!(ended.end, End::Code(0));
    assert_gone(std::str::from_utf8(&ended.stdout).unwrap().trim());
}

#[test]
fn a_program_that_prints_without_end_is_killed() {
    let bounds = Bounds { output: Bytes(MIB), ..Bounds::within(LONG) };
    let (ended, _directory) = run_within("yes", bounds);
    assert_eq!((ended.end, ended.stdout.len() as u64), (End::Flooded, MIB));
}

#[test]
fn a_program_that_fills_the_disk_is_killed() {
    let bounds = Bounds { free: Bytes(u64::MAX), ..Bounds::within(LONG) };
    assert_eq!(run_within("sleep 1000", bounds).0.end, End::DiskFull);
}

#[test]
fn a_program_that_is_killed_says_by_what() {
    assert_eq!(ended("kill -SEGV $$").end, End::Signal(libc::SIGSEGV));
}

#[test]
fn a_stop_ends_it() {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    let asker = thread::spawn(move || asked.store(true, Ordering::Release));
    let words = ["sleep", "1000"].map(str::to_owned);
    let command = Command { words: &words, directory: Path::new("/"), open_files: 0 };
    assert_eq!(run(&command, &Bounds::within(LONG), &stop).unwrap().end, End::Stopped);
    asker.join().unwrap();
}

#[test]
fn what_is_dropped_is_killed() {
    let words = ["sleep", "1000"].map(str::to_owned);
    let command = Command { words: &words, directory: Path::new("/"), open_files: 0 };
    let running = Running::start(&command).unwrap();
    assert!(running.is_alive());
    let pid = running.pid.as_raw_nonzero().to_string();
    drop(running);
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "it is reaped too");
}

#[test]
fn time_and_switches_of_children_count() {
    // A shell waits for its children: their time is its own.
    let usage = ended("sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; sleep 0.01").usage;
    assert!(usage.user + usage.system > Duration::ZERO && usage.voluntary_switches > 0, "{usage:?}");
    assert!(usage.elapsed >= Duration::from_millis(10), "{usage:?}");
}

#[test]
fn a_missing_program_and_too_many_files_are_errors_with_names() {
    let error = |name: &str, open_files| {
        let words = [name.to_owned()];
        let command = Command { words: &words, directory: Path::new("/"), open_files };
        run(&command, &Bounds::within(LONG), &AtomicBool::new(false)).unwrap_err().to_string()
    };
    assert_eq!(error("no-such-benchmark", 0), "`no-such-benchmark` is not installed");
    let words = ["true".to_owned()];
    let nowhere = Command { words: &words, directory: Path::new("/no/such/directory"), open_files: 0 };
    let nowhere = run(&nowhere, &Bounds::within(LONG), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(nowhere, Error::Start { .. }), "the program is there: {nowhere}");
    if let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum {
        let needed = limit + 1;
        let expected =
            format!("`true` needs {needed} open files, and the limit is {limit}: ulimit -n {needed}, as root");
        assert_eq!(error("true", needed), expected);
    }
}

#[test]
fn a_program_may_open_as_many_files_as_it_needs() {
    let words = ["sh", "-c", "ulimit -n"].map(str::to_owned);
    let soft = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let directory = tempfile::tempdir().unwrap();
    let needed = soft.saturating_add(1);
    let command = Command { words: &words, directory: directory.path(), open_files: needed };
    match run(&command, &Bounds::within(LONG), &AtomicBool::new(false)) {
        Ok(ended) if soft < u64::MAX => {
            assert_eq!(String::from_utf8(ended.stdout).unwrap().trim(), needed.to_string());
        }
        Ok(_) => println!("skipped: no limit here"),
        Err(error) => println!("skipped: {error}"),
    }
}
