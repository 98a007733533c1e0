use std::{collections::BTreeSet, process::Command};

use tempfile::TempDir;
use vmtax_core::{
    probe::Probe,
    setting::{Backing, Cell, Replica},
    trial::{Caveat, Evidence, Interference, KvmCounts, Measurement},
    units::{Bytes, GIB, PageSize},
};

use super::*;

const GUEST: Setting = Setting::microvm(PageSize::Small, Backing::Thp);

fn request() -> Request {
    Request {
        probe: Probe::StrideWrite,
        size: Bytes(GIB),
        stride: Bytes(4096),
        settings: vec![GUEST],
        vcpus: 2,
        pin: vec![0, 1],
        blocks: None,
        budget_seconds: Some(0.1),
        seed: u64::MAX,
        reserve: true,
    }
}

/// Numbers that have no short decimal form: a reader that rounds changes one of them.
fn trial(block: u32, place: u32) -> Trial {
    let odd = |n: u32| f64::from(n + block + 1) / 3.0 * std::f64::consts::PI;
    let measurement = Measurement {
        batches_ns: (0..8).map(odd).collect(),
        first_pass_ns: f64::from_bits(odd(9).to_bits() + 1),
        evidence: Evidence {
            kernel_page_kb: 4,
            thp_coverage: 0.1 + 0.2,
            kvm: Some(KvmCounts { pages_4k: u64::MAX, nx_lpage_splits: Some(1), ..KvmCounts::default() }),
        },
        interference: Interference {
            steal: 1e-300,
            frequency_change: Some(-0.03),
            repeats: 2,
            ..Interference::default()
        },
        caveats: vec![Caveat::ThpCoverage { share: 2.0 / 3.0 }, Caveat::SteadyFaults { faults: 3 }],
    };
    let replica = if place == 0 { Replica::A } else { Replica::APrime };
    Trial { block, place, cell: Cell { setting: GUEST, replica }, outcome: Outcome::Ok(measurement) }
}

fn failed(block: u32) -> Trial {
    Trial { outcome: Outcome::Failed { reason: "it's \"odd\"".to_owned() }, ..trial(block, 0) }
}

fn missing() -> Unavailable {
    Unavailable { setting: GUEST, reason: "no pool".to_owned(), remedy: "--reserve".to_owned() }
}

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    (directory, path)
}

fn begin(store: &Store) -> anyhow::Result<String> {
    store.begin(&request(), &Host::default(), &[missing()])
}

#[test]
fn a_run_comes_back_as_it_was_kept_to_the_last_bit() {
    let (_directory, path) = place();
    let store = Store::open(&path).unwrap();
    let id = begin(&store).unwrap();
    let trials = [trial(0, 0), trial(0, 1), failed(1), trial(1, 1)];
    trials.iter().for_each(|trial| store.keep(&id, trial).unwrap());
    store.end(&id, Ending::Interrupted, 0.1).unwrap();
    for store in [store, Store::open_to_read(&path).unwrap()] {
        let run = store.load(&id).unwrap();
        assert_eq!((run.request, run.host, run.unavailable), (request(), Host::default(), vec![missing()]));
        assert_eq!((run.ending, run.seconds, &run.trials[..]), (Some(Ending::Interrupted), Some(0.1), &trials[..]));
    }
    let whole: String = Connection::open(&path).unwrap().query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
    assert_eq!(whole, "ok");
}

#[test]
fn a_run_that_never_ended_can_be_read_while_and_after() {
    let (_directory, path) = place();
    let store = Store::open(&path).unwrap();
    let id = begin(&store).unwrap();
    store.keep(&id, &trial(0, 0)).unwrap();
    let run = Store::open_to_read(&path).unwrap().load(&id).unwrap();
    assert_eq!((run.ending, run.seconds, run.trials.len()), (None, None, 1));
}

#[test]
fn the_latest_run_is_the_one_begun_last() {
    let (_directory, path) = place();
    let store = Store::open(&path).unwrap();
    assert_eq!(store.latest().unwrap(), None);
    let ids: Vec<String> = (0..3).map(|_| begin(&store).unwrap()).collect();
    assert_eq!(store.latest().unwrap().as_ref(), ids.last());
}

#[test]
fn runs_begun_in_the_same_second_have_names_of_their_own() {
    let (_directory, path) = place();
    Store::open(&path).unwrap();
    let begin_three = || {
        let store = Store::open(&path).unwrap();
        (0..3).map(|_| begin(&store).unwrap()).collect::<Vec<_>>()
    };
    let ids: BTreeSet<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(begin_three)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 12);
}

#[test]
fn a_run_that_is_not_there_is_told_with_the_latest_that_is() {
    let (_directory, path) = place();
    let store = Store::open(&path).unwrap();
    let message = |store: &Store| store.load("yesterday").unwrap_err().to_string();
    assert_eq!(message(&store), format!("no run yesterday in {}", path.display()));
    let id = begin(&store).unwrap();
    assert_eq!(message(&store), format!("no run yesterday in {}; the latest is {id}", path.display()));
}

#[test]
fn a_cell_has_one_trial_a_block() {
    let (_directory, path) = place();
    let store = Store::open(&path).unwrap();
    let id = begin(&store).unwrap();
    store.keep(&id, &trial(0, 0)).unwrap();
    assert!(store.keep(&id, &trial(0, 0)).is_err(), "the same place");
    assert!(store.keep(&id, &Trial { place: 5, ..trial(0, 0) }).is_err(), "the same cell elsewhere");
    assert!(store.keep("no such run", &trial(1, 0)).is_err(), "a run that was not begun");
    assert_eq!(store.load(&id).unwrap().trials, [trial(0, 0)]);
}

/// Neither way of opening takes the file, and neither changes a byte of it.
fn refused(path: &Path) -> String {
    let before = fs::read(path).unwrap();
    let write = Store::open(path).unwrap_err().to_string();
    assert_eq!(Store::open_to_read(path).unwrap_err().to_string(), write);
    assert_eq!(fs::read(path).unwrap(), before, "{write}");
    let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(names, 1, "something was written beside the file");
    write
}

#[test]
fn files_of_others_are_refused_before_anything_is_written() {
    let (_directory, path) = place();
    let foreign = format!("{} is no results file of vmtax; choose another with --db FILE", path.display());
    for text in ["x", "shopping list: milk\n", &"SQLite format 2\0 and much more of it".repeat(99)] {
        fs::write(&path, text).unwrap();
        assert_eq!(refused(&path), foreign);
    }
    for pragma in ["", "PRAGMA application_id = 7;", "PRAGMA user_version = 1;", "PRAGMA journal_mode = WAL;"] {
        fs::remove_file(&path).unwrap();
        Connection::open(&path).unwrap().execute_batch(&format!("{pragma} CREATE TABLE t (a);")).unwrap();
        assert_eq!(refused(&path), foreign, "{pragma}");
    }
}

#[test]
fn a_file_of_a_newer_schema_is_refused() {
    let (_directory, path) = place();
    let store = Store::open(&path).unwrap();
    store.connection.execute_batch("PRAGMA user_version = 2").unwrap();
    drop(store);
    let newer = "was written by a newer vmtax (schema 2, this one knows 1); update, or choose another with --db FILE";
    assert_eq!(refused(&path), format!("{} {newer}", path.display()));
}

#[test]
fn an_empty_file_is_adopted_and_holds_no_run_before() {
    let (_directory, path) = place();
    fs::write(&path, "").unwrap();
    let empty = Store::open_to_read(&path).unwrap();
    assert_eq!(empty.latest().unwrap(), None);
    assert!(empty.load("any").unwrap_err().to_string().starts_with("no run any in"));
    assert_eq!(fs::metadata(&path).unwrap().len(), 0, "reading wrote");
    let id = begin(&Store::open(&path).unwrap()).unwrap();
    assert_eq!(Store::open_to_read(&path).unwrap().latest().unwrap(), Some(id));
}

#[test]
fn a_commit_cut_short_by_a_kill_is_undone_by_the_next_reader() {
    let (directory, path) = place();
    let store = Store::open(&path).unwrap();
    let id = begin(&store).unwrap();
    store.keep(&id, &trial(0, 0)).unwrap();
    // The moment of the kill: pages spilled into the file before the commit, the old ones in the journal beside it.
    store
        .connection
        .execute_batch("PRAGMA cache_size = 2; BEGIN IMMEDIATE; UPDATE trials SET trial = zeroblob(9);")
        .unwrap_err();
    let blobs = "PRAGMA cache_size = 2; PRAGMA cache_spill = 2; BEGIN IMMEDIATE; UPDATE trials SET trial = hex(zeroblob(99999));";
    store.connection.execute_batch("ROLLBACK").unwrap();
    store.connection.execute_batch(blobs).unwrap();
    let killed = directory.path().join("killed.db");
    fs::copy(&path, &killed).unwrap();
    fs::copy(directory.path().join("results.db-journal"), directory.path().join("killed.db-journal")).unwrap();
    let run = Store::open_to_read(&killed).unwrap().load(&id).unwrap();
    assert_eq!(run.trials, [trial(0, 0)]);
}

#[test]
fn a_reader_does_not_write() {
    let (_directory, path) = place();
    Store::open(&path).unwrap();
    let error = begin(&Store::open_to_read(&path).unwrap()).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("cannot write results to {}: it is read-only; choose another file with --db FILE", path.display())
    );
}

#[test]
fn a_path_that_cannot_be_a_file_is_named() {
    let (directory, path) = place();
    let message = |path: &Path| Store::open(path).unwrap_err().to_string();
    let cannot =
        |path: &Path, why| format!("cannot open results file {}: {why}; choose another with --db FILE", path.display());
    assert_eq!(message(directory.path()), cannot(directory.path(), "is a directory"));
    fs::write(&path, "").unwrap();
    assert_eq!(message(&path.join("below/results.db")), cannot(&path.join("below"), "Not a directory (os error 20)"));
    let absent = directory.path().join("absent.db");
    let why = "No such file or directory (os error 2)";
    assert_eq!(Store::open_to_read(&absent).unwrap_err().to_string(), cannot(&absent, why));
    assert!(!absent.exists(), "reading made a file");
}

fn full(path: &Path) -> String {
    format!("cannot write results to {}: no space left on the disk; choose another file with --db FILE", path.display())
}

#[test]
fn a_file_that_cannot_grow_is_noticed_before_anything_is_measured() {
    let (_directory, path) = place();
    let store = Store::open(&path).unwrap();
    store.connection.pragma_update(None, "max_page_count", 20).unwrap();
    assert_eq!(begin(&store).unwrap_err().to_string(), full(&path));
    assert_eq!(store.latest().unwrap(), None);
}

/// A small file system of its own, for as long as it lives.
struct Disk(TempDir);

impl Disk {
    fn mount(options: &str) -> Option<Disk> {
        let disk = tempfile::tempdir().unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(disk.path()).output();
        mount.is_ok_and(|done| done.status.success()).then_some(Disk(disk))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).output();
    }
}

#[test]
fn a_full_disk_and_a_read_only_one_are_told() {
    let Some(small) = Disk::mount("size=256k") else {
        eprintln!("skipped: only root may mount a small file system");
        return;
    };
    let path = small.0.path().join("results.db");
    assert_eq!(begin(&Store::open(&path).unwrap()).unwrap_err().to_string(), full(&path));
    fs::write(small.0.path().join("filler"), vec![0; 1 << 18]).unwrap_err();
    let other = small.0.path().join("other.db");
    assert_eq!(Store::open(&other).unwrap_err().to_string(), full(&other));
    let remount = Command::new("mount").args(["-o", "remount,ro"]).arg(small.0.path()).status().unwrap();
    assert!(remount.success());
    let read_only =
        format!("cannot write results to {}: it is read-only; choose another file with --db FILE", path.display());
    assert_eq!(Store::open(&path).unwrap_err().to_string(), read_only);
}
