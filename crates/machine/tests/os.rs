//! The tests of the operating system on this machine. They start this program again, so it has a `main` and no harness.
#![allow(clippy::unwrap_used, reason = "a test, which clippy cannot see without a harness")]

use std::{process::ExitCode, sync::atomic::AtomicBool, time::Duration};

use vmtax_core::os::{Mean, Test};
use vmtax_machine::os;

fn main() -> ExitCode {
    if let Some(code) = vmtax_machine::dispatch() {
        return code;
    }
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
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

fn a_file_that_cannot_be_made_is_an_error_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("copied-to")).unwrap();
    let copy = Test::named("filecopy-1024").unwrap();
    let error = os::run(copy, Duration::from_millis(10), directory.path(), &AtomicBool::new(false)).unwrap_err();
    assert_eq!(error.to_string(), "`filecopy-1024` ended as Code(1), saying `Is a directory (os error 21)`");
}
