//! `vmtax touch` and `vmtax walk` on this host's memory.
#![allow(clippy::unwrap_used, reason = "a test, whose helpers clippy takes for the program")]

use std::{process::Stdio, thread, time::Duration};

use host::{Ran, run, vmtax};
use serde_json::Value;

mod host;

#[test]
fn every_row_of_touch_has_a_figure_with_its_proof_or_a_reason_with_its_remedy() {
    let document = run(&mut vmtax("touch --size 8M --guest 4k --blocks 2 --seed 1 --json")).json();
    assert_eq!((&document["schema"], &document["seed"], &document["blocks"]), (&1.into(), &1.into(), &2.into()));
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 16);
    for row in rows {
        match row["status"].as_str().unwrap() {
            "ok" => {
                let value = row["value"].as_f64().unwrap();
                assert!(row["ci"][0].as_f64().unwrap() <= value && value <= row["ci"][1].as_f64().unwrap(), "{row}");
                assert!(row["real_seconds"].as_f64().unwrap() > 0.0, "{row}");
                assert!(row["evidence"]["host.minor_faults"].is_string(), "{row}");
            }
            "unavailable" => {
                assert!(row["reason"].is_string() && row["remedy"].is_string() && row["value"] == Value::Null, "{row}")
            }
            other => panic!("{other}: {row}"),
        }
    }
}

#[test]
fn a_walk_is_told_as_text_and_as_data() {
    let walk = "walk --size 4M --strides 4K..64K --passes 4 --host 4k,thp --blocks 2 --seed 3";
    let text = run(&mut vmtax(walk)).ok();
    for part in ["seed 3", "ns a reference after 4 passes, random", "not tested here"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let lines = run(&mut vmtax(&format!("{walk} --csv"))).ok().lines().count();
    // Two orders, two backings, five strides, three numbers of passes, and the head.
    assert_eq!(lines, 2 * 2 * 5 * 3 + 1);
}

#[test]
fn an_interrupt_ends_with_what_was_measured() {
    let mut command = vmtax("touch --size 8M --guest none --host 4k --blocks 1000000 --json");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(1500));
    // SAFETY: a signal to a process of our own, which has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["ending"], "interrupted");
    assert!(document["rows"][0]["value"].as_f64().unwrap() > 0.0, "{document}");
}
