//! Experiments by hand on this host: measured, kept, shown again, interrupted and resumed as runs of plans are.
#![allow(clippy::unwrap_used, reason = "a test, whose helpers clippy takes for the program")]

use std::{path::Path, process::Stdio, thread, time::Duration};

use host::{Ran, run, vmtax};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tempfile::TempDir;

mod host;

fn place() -> (TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let db = directory.path().join("results.db");
    (directory, db)
}

fn with(db: &Path, arguments: &str) -> Ran {
    run(vmtax(arguments).arg("--db").arg(db))
}

fn trials(db: &Path) -> Vec<(u32, u32, String)> {
    let Ok(connection) = Connection::open_with_flags(db, OpenFlags::SQLITE_OPEN_READ_ONLY) else { return Vec::new() };
    let query = connection.prepare("SELECT block, place, cell FROM experiment_trials ORDER BY block, place");
    let Ok(mut query) = query else { return Vec::new() };
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Ends a command with a signal once it has kept some trials, a block of four cells and more; again while another test holds
/// the host.
fn ended_by(db: &Path, arguments: &str, signal: i32) -> Ran {
    let before = trials(db).len();
    loop {
        let mut command = vmtax(arguments);
        let mut child = command.arg("--db").arg(db).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while trials(db).len() < before + 5 && child.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(5));
        }
        // SAFETY: a signal to a process of our own, which has not been waited for, or has ended and is not yet forgotten.
        unsafe { libc::kill(child.id() as i32, signal) };
        let ran = Ran::of(child.wait_with_output().unwrap());
        if !ran.stderr.contains("another vmtax holds this host") {
            return ran;
        }
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn every_row_of_touch_has_a_figure_with_its_proof_or_a_reason_with_its_remedy() {
    let (_directory, db) = place();
    let document = with(&db, "touch --size 8M --guest 4k --blocks 2 --seed 1 --json").json();
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
    assert!(document["noise_floor"]["ratio"].as_f64().unwrap() > 0.0);
}

const WALK: &str = "walk --size 4M --strides 4K..64K --passes 4 --host 4k,thp --blocks 2 --seed 3";

#[test]
fn a_walk_is_told_as_text_and_as_data_and_shown_again_from_the_file() {
    let (_directory, db) = place();
    let text = with(&db, WALK).ok();
    for part in ["seed 3", "ns a reference after 4 passes, random", "not tested here", "Noise floor (walk"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(with(&db, "show").ok(), text);
    let by = with(&db, &format!("compare {} --by host --json", text_run(&text))).json();
    assert_eq!(by["comparisons"][0]["metric"], "ns_per_reference");
    let lines = with(&db, &format!("{WALK} --csv")).ok().lines().count();
    // Two orders, two backings, five strides, three numbers of passes, and the head.
    assert_eq!(lines, 2 * 2 * 5 * 3 + 1);
}

/// The name of the run in the head of its text.
fn text_run(text: &str) -> String {
    let (_, rest) = text.split_once(", run ").unwrap();
    rest.lines().next().unwrap().to_owned()
}

#[test]
fn a_walk_that_was_killed_is_resumed_and_has_every_trial_once() {
    let (_directory, db) = place();
    let (_other, whole) = place();
    let walk = WALK.replace("--blocks 2", "--blocks 12");
    with(&whole, &walk).ok();
    let expected = trials(&whole);
    assert_eq!(expected.len(), 12 * 21);
    ended_by(&db, &walk, libc::SIGKILL);
    let kept = trials(&db);
    assert!(expected.starts_with(&kept) && !kept.is_empty(), "nothing recorded is lost");
    let id: String =
        Connection::open(&db).unwrap().query_row("SELECT id FROM experiments", [], |row| row.get(0)).unwrap();
    let resumed = with(&db, &format!("run --resume {id}")).ok();
    assert!(resumed.contains("Stride from which 4 KiB pages win"), "{resumed}");
    assert_eq!(trials(&db), expected);
}

#[test]
fn an_interrupt_ends_with_what_was_measured() {
    let (_directory, db) = place();
    let ran = ended_by(&db, "touch --size 8M --guest none --host 4k --blocks 90000 --json", libc::SIGINT);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["ending"], "interrupted");
    assert!(document["rows"][0]["value"].as_f64().unwrap() > 0.0, "{document}");
    assert!(ran.stderr.contains("go on with: vmtax run --resume"), "{ran:?}");
}
