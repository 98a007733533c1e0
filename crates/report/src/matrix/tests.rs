use vmtax_core::{
    availability::Reserve,
    setting::{Backing, Setting},
    trial::{self, Caveat},
    units::PageSize,
};

use super::*;
use crate::{
    fixture::{change, host, is_kept, run, warn},
    wrap::WIDTH,
};

const GUEST: Setting = Setting::microvm(PageSize::Small, Backing::Small);

fn full() -> Run {
    run(host("amd-npt"), 7, Reserve::Yes)
}

/// Software KVM inside a guest: no 1 GiB pages, no pool, stolen time.
fn software() -> Run {
    let mut run = run(host("pvm"), 5, Reserve::No);
    warn(&mut run, GUEST, |block| (block < 2).then_some(Caveat::Steal { share: 0.031 + 0.01 * f64::from(block) }));
    warn(&mut run, Setting::native(Backing::Thp), |block| (block == 3).then_some(Caveat::ThpCoverage { share: 0.971 }));
    run
}

fn native_only() -> Run {
    run(host("vm-without-nesting"), 6, Reserve::Yes)
}

/// Stopped in its second block.
fn interrupted() -> Run {
    let mut run = run(host("amd-npt"), 2, Reserve::Yes);
    run.ending = Some(Ending::Interrupted);
    run.trials.truncate(20);
    run
}

/// Stopped in its first block, before most of the cells had their turn.
fn begun() -> Run {
    let mut run = interrupted();
    run.trials.truncate(6);
    run
}

/// One cell that never succeeded, one that failed once, three blocks.
fn failing() -> Run {
    let mut run = run(host("amd-npt"), 3, Reserve::Yes);
    let fail = |reason: &str| trial::Outcome::Failed { reason: reason.to_owned() };
    let refused = "KVM_RUN: Cannot allocate memory (os error 12)";
    change(&mut run, Setting::microvm(PageSize::Giant, Backing::Huge1g), |_, outcome| *outcome = fail(refused));
    change(&mut run, GUEST, |block, outcome| {
        if block == 1 {
            *outcome = fail("asked for 4 KiB pages, but 25.0 % of the memory is in transparent huge pages");
        }
    });
    run
}

/// Two blocks on a machine that cannot be relied on.
fn noisy() -> Run {
    let mut run = run(host("amd-npt"), 2, Reserve::Yes);
    change(&mut run, GUEST, |block, outcome| {
        if let trial::Outcome::Ok(measurement) = outcome {
            let slower = if block == 0 { 1.0 } else { 2.5 };
            measurement.batches_ns.iter_mut().for_each(|ns| *ns *= slower);
        }
    });
    run
}

fn all() -> [(&'static str, Run); 7] {
    [
        ("full.txt", full()),
        ("software.txt", software()),
        ("native-only.txt", native_only()),
        ("interrupted.txt", interrupted()),
        ("begun.txt", begun()),
        ("failing.txt", failing()),
        ("noisy.txt", noisy()),
    ]
}

#[test]
fn every_run_gets_exactly_the_text_that_is_kept() {
    for (name, run) in all() {
        is_kept(name, &text(&run).unwrap());
    }
}

#[test]
fn no_line_is_wider_than_the_page() {
    for (name, run) in all() {
        for line in text(&run).unwrap().lines() {
            assert!(line.chars().count() <= WIDTH, "{name}: {line}");
            assert_eq!(line, line.trim_end(), "{name}");
        }
    }
}

#[test]
fn every_reason_is_told_once() {
    for (name, run) in all() {
        let text = text(&run).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        for missing in &run.unavailable {
            assert_eq!(text.matches(&missing.reason).count(), 1, "{name}: {}", missing.reason);
        }
        for trial in &run.trials {
            if let trial::Outcome::Failed { reason } = &trial.outcome {
                assert_eq!(text.matches(reason).count(), 1, "{name}: {reason}");
            }
        }
    }
}
