//! The tests of the operating system on this machine. They start this program again, so it has a `main` and no harness.
#![allow(clippy::unwrap_used, reason = "a test, which clippy cannot see without a harness")]

use std::{
    fs,
    process::{Command, ExitCode},
    sync::atomic::AtomicBool,
    thread,
    time::{Duration, Instant},
};

use vmtax_core::os::{Mean, Test};
use vmtax_machine::os;

/// The argument that makes this program run a test until it is killed.
const VICTIM: &str = "victim";

/// Enough for anything on a loaded host.
const LONG: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    if let Some(code) = vmtax_machine::dispatch() {
        return code;
    }
    if std::env::args().any(|argument| argument == VICTIM) {
        let endless = Duration::from_secs(600);
        let _ = os::run(Test::Syscall, endless, std::path::Path::new("/"), &AtomicBool::new(false));
        return ExitCode::FAILURE;
    }
    a_program_dies_with_the_process_that_runs_it();
    every_test_counts_and_leaves_nothing_behind();
    a_file_that_cannot_be_made_is_an_error_with_its_reason();
    ExitCode::SUCCESS
}

fn every_test_counts_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let time = Duration::from_millis(100);
    let rates = Test::ALL.map(|test| {
        let count = os::run(test, time, directory.path(), &AtomicBool::new(false)).unwrap();
        println!(
            "{test:<14} {:>12.1} {}/s, {:.1} × the baseline",
            count.rate(),
            test.operation(),
            test.baseline().ratio(count.rate())
        );
        assert!(count.operations > 0 && count.elapsed >= time, "{test}: {count:?}");
        (test, count.rate())
    });
    println!("{}", Mean::of(&rates).unwrap());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

fn a_file_that_cannot_be_made_is_an_error_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("copied-to")).unwrap();
    let copy = Test::named("filecopy-1024").unwrap();
    let error = os::run(copy, Duration::from_millis(10), directory.path(), &AtomicBool::new(false)).unwrap_err();
    assert_eq!(error.to_string(), "`filecopy-1024` ended as Code(1), saying `Is a directory (os error 21)`");
}

fn a_program_dies_with_the_process_that_runs_it() {
    let mut victim = Command::new("/proc/self/exe").arg(VICTIM).spawn().unwrap();
    let list = format!("/proc/{0}/task/{0}/children", victim.id());
    let child = until(|| fs::read_to_string(&list).unwrap().split_whitespace().next().map(str::to_owned));
    // It has set its wish to die with its parent when it has become another program.
    let line = format!("/proc/{child}/cmdline");
    until(|| fs::read_to_string(&line).unwrap_or_default().contains("__os").then_some(()));
    victim.kill().unwrap();
    victim.wait().unwrap();
    let state = || {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    until(|| matches!(state(), None | Some('Z' | 'X')).then_some(()));
}

fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < LONG, "it does not come");
        thread::sleep(Duration::from_millis(10));
    }
}
