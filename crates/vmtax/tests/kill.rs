//! Whatever ends a run, the host is put back and what was measured is kept. On the real pool of 2 MiB pages.
#![allow(clippy::unwrap_used, reason = "a test, whose helpers clippy takes for the program")]

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use host::{AS_NOBODY, Ran, has_kvm, has_pool, has_root, pool, public_copy, random, run, under, vmtax};
use rusqlite::{Connection, OpenFlags};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

mod host;

const ROUNDS: u64 = 10;
/// Far more than is needed; a shared machine may leave a process without a CPU for a while.
const BOUND: Duration = Duration::from_secs(30);
const LONG: &str = "matrix --reserve --size 64M --host 2m --guest 2m --blocks 100000 --db";

/// One test at a time: there is one pool.
fn the_host() -> Option<MutexGuard<'static, ()>> {
    static HOST: Mutex<()> = Mutex::new(());
    (has_pool() && has_kvm()).then(|| HOST.lock().unwrap_or_else(PoisonError::into_inner))
}

#[test]
fn the_pool_is_back_after_sigkill_at_random_moments() {
    let Some(_host) = the_host() else { return };
    let (directory, before) = (tempfile::tempdir().unwrap(), free_pool());
    let db = directory.path().join("results.db");
    let (mut borrowed, mut slowest) = (0, Duration::ZERO);
    for seed in 0..ROUNDS {
        let mut run = Run::start(&db);
        // Half of them while it starts and borrows, half while it measures.
        let longest = if seed.is_multiple_of(2) { 50_000 } else { 500_000 };
        thread::sleep(Duration::from_micros(random(seed) % longest));
        borrowed += u32::from(pool() != before);
        run.signal(Signal::KILL);
        let killed = Instant::now();
        run.0.wait().unwrap();
        wait_until(|| pool() == before, "the pool is back");
        slowest = slowest.max(killed.elapsed());
        is_whole(&db);
    }
    println!("borrowed at {borrowed} of {ROUNDS} kills; back after {:.0} ms at most", slowest.as_secs_f64() * 1e3);
    assert!(borrowed > 0, "no kill came while pages were borrowed");
    wait_until(|| !Path::new(JOURNAL).exists(), "the journal is gone");
}

#[test]
fn what_a_killed_run_has_kept_is_shown_as_not_ended() {
    let Some(_host) = the_host() else { return };
    let (_directory, db, mut run, _) = started();
    run.signal(Signal::KILL);
    run.0.wait().unwrap();
    is_whole(&db);
    let text = show(&db);
    assert!(text.contains(", not ended\n"), "{text}");
    assert!(text.contains("2 MiB pages"), "{text}");
}

#[test]
fn a_polite_signal_ends_a_run_with_its_table_and_its_exit_code() {
    let Some(_host) = the_host() else { return };
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let (_directory, db, run, before) = started();
        run.signal(signal);
        let sent = Instant::now();
        let ran = run.end();
        assert!(sent.elapsed() < Duration::from_secs(5), "{signal:?} took {:?}", sent.elapsed());
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert_eq!(pool(), before);
        assert!(
            ran.stdout.starts_with("Cost of a memory access: ") && ran.stdout.contains(", interrupted\n"),
            "{ran:?}"
        );
        assert!(ran.stderr.contains(&format!("put back to {before}\n")), "{ran:?}");
        assert_eq!(ran.stdout, show(&db));
    }
}

#[test]
fn a_signal_before_the_first_trial_leaves_the_host_as_it_was() {
    let Some(_host) = the_host() else { return };
    let directory = tempfile::tempdir().unwrap();
    let db = directory.path().join("results.db");
    let before = free_pool();
    let run = Run::start(&db);
    wait_until(|| pool() != before, "pages are borrowed");
    run.signal(Signal::INT);
    assert_eq!(run.end().code, Some(130));
    assert_eq!(pool(), before);
}

#[test]
fn a_terminal_that_closes_ends_a_run_in_good_order() {
    let Some(_host) = the_host() else { return };
    let (_directory, db, mut run, before) = started();
    // Nobody reads either stream any more.
    drop((run.0.stdout.take(), run.0.stderr.take()));
    run.signal(Signal::HUP);
    assert_eq!(run.end().code, Some(129));
    assert_eq!(pool(), before);
    assert!(show(&db).contains(", interrupted\n"));
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let directory = tempfile::tempdir().unwrap();
    let db = directory.path().join("results.db");
    run(vmtax("matrix --guest none --host 4k --size 4M --blocks 1 --db").arg(&db)).ok();
    for command in ["show", "show --json", "matrix --guest none --host 4k --size 4M --blocks 1", "--help"] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut command = vmtax(command);
        if command.get_args().next() != Some("--help".as_ref()) {
            command.arg("--db").arg(&db);
        }
        let ran = Ran::of(command.stdout(writer).stderr(Stdio::piped()).output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.stderr.contains("panic") && !ran.stderr.contains("error"), "{ran:?}");
    }
}

#[test]
fn a_disk_that_fills_ends_a_run_and_what_was_measured_is_kept() {
    if !has_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = r#"mount -t tmpfs -o size=3m none "$1" && cd "$1"
        { sleep 1; cat /dev/zero > filling; } 2> /dev/null &
        "$2" matrix --guest none --host 4k --size 4M --blocks 100000 --db results.db
        echo "exit code $?"
        wait; rm filling
        "$2" show --db results.db"#;
    let place = directory.path().to_str().unwrap();
    let prefix = ["unshare", "--mount", "sh", "-c", script, "-", place];
    let ran = run(&mut under(&prefix, Path::new(env!("CARGO_BIN_EXE_vmtax")), ""));
    assert!(ran.stderr.contains("What was measured before the error is kept: vmtax show "), "{ran:?}");
    assert!(
        ran.stderr.contains("error: the run broke off: cannot write results to results.db: no space left"),
        "{ran:?}"
    );
    assert!(ran.stdout.starts_with("exit code 1\nCost of a memory access: "), "{ran:?}");
    assert!(ran.stdout.contains(", not ended\n"), "{ran:?}");
}

#[test]
fn restore_puts_back_what_run_and_guardian_left() {
    let Some(_host) = the_host() else { return };
    let (left, before) = killed_with_its_guardian();
    let said = run(&mut vmtax("restore")).ok();
    assert_eq!(said, format!("pool of 2 MiB pages: {left} put back to {before}\n"));
    assert_eq!(pool(), before);
    let again = run(&mut vmtax("restore")).ok();
    assert_eq!(again, "Nothing to put back: vmtax has left no change on this host.\n");
}

#[test]
fn the_next_run_puts_back_what_run_and_guardian_left() {
    let Some(_host) = the_host() else { return };
    for reserve in ["", "--reserve --host 2m"] {
        let (left, before) = killed_with_its_guardian();
        let directory = tempfile::tempdir().unwrap();
        let next = format!("matrix {reserve} --guest none --size 4M --blocks 1 --db");
        let ran = run(vmtax(&next).arg(directory.path().join("results.db")));
        let said = format!("left by an earlier run: pool of 2 MiB pages: {left} put back to {before}\n");
        assert!(ran.stderr.contains(&said), "{ran:?}");
        ran.ok();
        assert_eq!(pool(), before);
    }
}

#[test]
fn who_may_not_put_back_what_was_left_is_told_how() {
    let Some(_host) = the_host().filter(|_| has_root()) else { return };
    let (_, before) = killed_with_its_guardian();
    let (directory, program) = public_copy();
    let next = "matrix --guest none --host 4k --size 4M --blocks 1 --db";
    let ran = run(under(AS_NOBODY, &program, next).arg(directory.path().join("results.db")));
    assert!(ran.stderr.contains("sudo vmtax restore puts it back"), "{ran:?}");
    ran.ok();
    run(&mut vmtax("restore")).ok();
    assert_eq!(pool(), before);
}

#[test]
fn a_second_run_is_refused_while_the_host_is_held() {
    let Some(_host) = the_host() else { return };
    let (directory, db, first, before) = started();
    let pid = first.0.id();
    let expected = format!("another vmtax holds this host: process {pid}, measuring\nhelp: wait until it ends\n");
    let refused = |ran: Ran| {
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.starts_with("error: ") && ran.stderr.ends_with(&expected), "{ran:?}");
    };
    let second = directory.path().join("second.db");
    let attempt = |arguments: &str| Ran::of(vmtax(arguments).arg("--db").arg(&second).output().unwrap());
    refused(attempt("matrix --reserve --size 4M --blocks 1"));
    refused(attempt("matrix --size 4M --blocks 1"));
    if has_root() {
        let (theirs, program) = public_copy();
        let mut command = under(AS_NOBODY, &program, "matrix --size 4M --blocks 1 --db");
        refused(Ran::of(command.arg(theirs.path().join("results.db")).output().unwrap()));
    }
    Ran::of(vmtax("doctor").output().unwrap()).ok();
    show(&db);
    first.signal(Signal::TERM);
    assert_eq!(first.end().code, Some(143));
    assert_eq!(pool(), before);
}

const JOURNAL: &str = "/run/vmtax/journal";

/// A long run, which does not outlive its test.
struct Run(Child);

impl Run {
    fn start(db: &Path) -> Run {
        let mut command = vmtax(LONG);
        Run(command.arg(db).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(pid(self.0.id()), signal).unwrap();
    }

    fn guardian(&self) -> Pid {
        let id = self.0.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        pid(children.trim().parse().expect("one child, the guardian"))
    }

    /// Reads what it says until it ends.
    fn end(mut self) -> Ran {
        use io::Read;
        let read = |stream: Option<&mut dyn Read>| {
            let mut text = String::new();
            stream.map(|stream| stream.read_to_string(&mut text).unwrap());
            text
        };
        let stdout = read(self.0.stdout.as_mut().map(|stream| stream as &mut dyn Read));
        let stderr = read(self.0.stderr.as_mut().map(|stream| stream as &mut dyn Read));
        Ran { code: self.0.wait().unwrap().code(), stdout, stderr }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Pages of the pool while no test of another program holds the host.
fn free_pool() -> u64 {
    let start = Instant::now();
    while fs::File::open("/run/vmtax/lock").is_ok_and(|lock| lock.try_lock_shared().is_err()) {
        assert!(start.elapsed() < 4 * BOUND, "the host is held");
        thread::sleep(Duration::from_millis(20));
    }
    pool()
}

/// A run that has measured a block, and the pages of the pool before it.
fn started() -> (TempDir, PathBuf, Run, u64) {
    let directory = tempfile::tempdir().unwrap();
    let (db, before) = (directory.path().join("results.db"), free_pool());
    let run = Run::start(&db);
    wait_until(|| trials(&db) >= 3, "a block is measured");
    assert!(pool() >= before + 32, "64 MiB are borrowed");
    (directory, db, run, before)
}

/// Kills both, and returns the pages of the pool they left and those before.
fn killed_with_its_guardian() -> (u64, u64) {
    let (_directory, _db, mut run, before) = started();
    let left = pool();
    let guardian = run.guardian();
    kill_process(guardian, Signal::KILL).unwrap();
    run.signal(Signal::KILL);
    run.0.wait().unwrap();
    assert_eq!(pool(), left);
    (left, before)
}

/// Trials kept so far.
fn trials(db: &Path) -> u32 {
    let file = Connection::open_with_flags(db, OpenFlags::SQLITE_OPEN_READ_ONLY);
    file.and_then(|file| file.query_row("SELECT count(*) FROM trials", [], |row| row.get(0))).unwrap_or(0)
}

fn is_whole(db: &Path) {
    if db.exists() {
        let file = Connection::open(db).unwrap();
        let verdict: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(verdict, "ok");
    }
}

fn show(db: &Path) -> String {
    run(vmtax("show --db").arg(db)).ok()
}

fn wait_until(is_so: impl Fn() -> bool, what: &str) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < BOUND, "{what}: not within {BOUND:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn pid(raw: u32) -> Pid {
    Pid::from_raw(raw.try_into().unwrap()).unwrap()
}
