//! `vmtax reserve`, `rights` and `bloat` on this host: real pools, real attempts, real memory.
#![allow(clippy::unwrap_used, reason = "a test, whose helpers clippy takes for the program")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use host::{Ran, has_pool, pool, vmtax};
use serde_json::Value;

mod host;

/// Runs it, keeping its results where nobody looks.
fn run(arguments: &str) -> Ran {
    let directory = tempfile::tempdir().unwrap();
    host::run(vmtax(arguments).arg("--db").arg(directory.path().join("results.db")))
}

/// Tests that look at the pool take turns.
static POOL: Mutex<()> = Mutex::new(());

fn the_pool() -> Option<MutexGuard<'static, ()>> {
    has_pool().then(|| POOL.lock().unwrap_or_else(PoisonError::into_inner))
}

fn rows<'d>(document: &'d Value, list: &str) -> &'d Vec<Value> {
    document[list].as_array().unwrap()
}

#[test]
fn pages_are_prepared_round_by_round_and_given_back() {
    let Some(_turn) = the_pool() else { return };
    let before = pool();
    let document = run("reserve --pages 32 --rounds 3 --stress 0.02 --compact --seed 4 --json").json();
    assert_eq!(pool(), before);
    // A trial and its twin.
    assert_eq!(rows(&document, "rounds").len(), 2 * 3);
    for round in rows(&document, "rounds") {
        assert_eq!(round["asked"], 32);
        assert!(round["granted"].as_u64().unwrap() <= 32 && round["seconds"].as_f64().unwrap() > 0.0, "{round}");
        assert!(round["compaction_seconds"].is_number() && round["before"]["unusable"].is_number(), "{round}");
    }
    assert_eq!(document["published"][0]["verdict"], "not_tested", "{}", document["published"]);
}

#[test]
fn more_pages_than_half_of_memory_are_refused() {
    let ran = run("reserve --pages 100000000");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("cannot prepare 100000000 pages of 2 MiB"), "{}", ran.stderr);
    assert!(ran.stderr.contains("help: --pages "), "{}", ran.stderr);
}

#[test]
fn every_way_is_tried_by_both_users_and_what_is_refused_has_a_remedy() {
    let Some(_turn) = the_pool() else { return };
    let before = pool();
    let document = run("rights --reserve --json").json();
    assert_eq!(pool(), before);
    assert_eq!(rows(&document, "attempts").len(), 16);
    for attempt in rows(&document, "attempts") {
        assert_eq!(attempt["outcome"] == "granted", attempt["remedy"].is_null(), "{attempt}");
    }
    assert_ne!(document["published"][0]["verdict"], "not_tested", "{}", document["published"]);
}

#[test]
fn rights_borrow_nothing_unasked() {
    let Some(_turn) = the_pool() else { return };
    if pool() != 0 {
        return println!("skipped: the pool has pages of its own");
    }
    let ran = run("rights");
    assert!(ran.stderr.contains("No host setting was changed."), "{ran:?}");
    assert!(ran.ok().contains("not tested: the pool is empty"));
}

#[test]
fn small_pages_take_what_is_touched_and_large_ones_more() {
    let document = run("bloat --size 64M --gap 2M --host 4k,thp --json").json();
    let used = |host: &str| {
        let row = rows(&document, "rows").iter().find(|row| row["host"] == host).unwrap();
        row["used_bytes"].as_u64().unwrap()
    };
    assert_eq!(used("4k"), 32 * 4096);
    assert!(used("thp") >= used("4k"), "{document}");
}

#[test]
fn a_backing_without_pages_is_listed_with_the_reason() {
    let Some(_turn) = the_pool() else { return };
    if pool() != 0 {
        return println!("skipped: the pool has pages of its own");
    }
    let text = run("bloat --size 64M --gap 2M --host 2m").ok();
    assert!(text.contains("not here") && text.contains("--reserve"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}
