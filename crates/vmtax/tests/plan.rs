//! `vmtax run`, `show`, `compare` and `export` on this host, with plans small enough to be run in seconds.
#![allow(clippy::unwrap_used, reason = "a test, whose helpers clippy takes for the program")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use host::{Ran, run, vmtax};
use rusqlite::{Connection, OpenFlags};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

mod host;

/// Native alone: it runs on every host.
fn place(blocks: u32) -> (TempDir, PathBuf, String) {
    let directory = tempfile::tempdir().unwrap();
    let plan = directory.path().join("plan.toml");
    let text = format!(
        "[factors]\nhost = [\"4k\"]\nstride = [\"4K\", \"256\"]\n[[workload]]\nprobe = \"chase\"\nsize = \"2M\"\n\
         [[workload]]\nprobe = \"stride\"\nsize = \"2M\"\n[replication]\nblocks = {blocks}\nseed = 5\n"
    );
    fs::write(&plan, text).unwrap();
    let db = directory.path().join("results.db");
    let plan = plan.display().to_string();
    (directory, db, plan)
}

fn with(db: &Path, arguments: &str) -> Ran {
    run(vmtax(arguments).arg("--db").arg(db))
}

/// A session that has kept a trial; begun again while another test holds the host.
fn started(db: &Path, arguments: &str) -> Child {
    let count = || {
        let connection = Connection::open_with_flags(db, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        connection.query_row("SELECT count(*) FROM experiment_trials", [], |row| row.get::<_, u32>(0)).ok()
    };
    let before = count().unwrap_or(0);
    let begun = Instant::now();
    let spawn = || {
        let mut command = vmtax(arguments);
        command.arg("--db").arg(db).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut child = spawn();
    while count().unwrap_or(0) == before {
        assert!(begun.elapsed() < PATIENCE, "no trial was kept");
        if child.try_wait().unwrap().is_some() {
            child = spawn();
        }
        thread::sleep(Duration::from_millis(5));
    }
    child
}

/// Far more than is needed, also behind another test.
const PATIENCE: Duration = Duration::from_secs(120);

fn latest(db: &Path) -> String {
    Connection::open(db).unwrap().query_row("SELECT id FROM experiments", [], |row| row.get(0)).unwrap()
}

fn trials(db: &Path) -> Vec<(u32, u32, String)> {
    let connection = Connection::open(db).unwrap();
    let whole: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    let mut query =
        connection.prepare("SELECT block, place, cell FROM experiment_trials ORDER BY block, place").unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn a_killed_run_resumes_at_the_next_trial_and_has_every_trial_once() {
    let (_directory, db, plan) = place(30);
    let (_other, whole, _) = place(30);
    assert_eq!(with(&whole, &format!("run {plan}")).code, Some(0));
    let expected = trials(&whole);
    assert_eq!(expected.len(), 30 * 6);
    let kill_after = |arguments: &str, millis| {
        let mut child = started(&db, arguments);
        thread::sleep(Duration::from_millis(millis));
        let _ = kill_process(Pid::from_child(&child), Signal::KILL);
        child.wait().unwrap();
    };
    kill_after(&format!("run {plan}"), 100);
    let id = latest(&db);
    let mut kept = trials(&db);
    for millis in [0, 7, 130] {
        kill_after(&format!("run --resume {id}"), millis);
        let now = trials(&db);
        assert!(now.starts_with(&kept), "nothing recorded is lost");
        kept = now;
    }
    println!("{} of {} trials were kept by four killed sessions", kept.len(), expected.len());
    let resumed = with(&db, &format!("run --resume {id} --json")).ok();
    assert_eq!(resumed.lines().count(), expected.len() - kept.len());
    assert_eq!(trials(&db), expected);
    assert_eq!(with(&db, &format!("run --resume {id} --json")).ok(), "", "nothing is left");
}

#[test]
fn every_trial_is_a_line_of_json_with_its_evidence() {
    let (_directory, db, plan) = place(2);
    let lines = with(&db, &format!("run {plan} --json")).ok();
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 12);
    for line in &lines {
        assert_eq!((&line["schema"], &line["outcome"]["status"]), (&1.into(), &"ok".into()), "{line}");
        assert_eq!(line["outcome"]["metrics"][0]["name"], "ns_per_access");
        assert_eq!(line["outcome"]["evidence"]["smaps.kernel_page_kb"], "4");
    }
    let cells: BTreeSet<&str> = lines.iter().filter_map(|line| line["cell"].as_str()).collect();
    assert_eq!(cells.len(), 6);
    let id = latest(&db);
    for format in ["csv", "json", "md"] {
        assert!(with(&db, &format!("export {id} --format {format}")).ok().contains("ns_per_access"));
    }
    let one = db.with_file_name("one.db");
    with(&db, &format!("export {id} --format sqlite --output {}", one.display())).ok();
    assert_eq!(with(&one, "show").ok(), with(&db, "show").ok());
    let ran = with(&db, &format!("compare {id} {id} --gate 5%"));
    assert!(ran.code == Some(0) && ran.stdout.contains("unpaired"), "{ran:?}");
    let by = with(&db, &format!("compare {id} --by stride --json")).json();
    assert_eq!(by["comparisons"][0]["changes"][0]["cell"], "chase host=4k stride=256");
}

#[test]
fn an_interrupted_run_prints_what_it_has_and_how_to_go_on() {
    let (_directory, db, plan) = place(3000);
    let child = started(&db, &format!("run {plan}"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.stdout.contains(", interrupted\n"), "{ran:?}");
    assert!(ran.stderr.contains(&format!("go on with: vmtax run --resume {}", latest(&db))), "{ran:?}");
}

#[test]
fn a_run_is_resumed_by_one_session_at_a_time() {
    let (_directory, db, plan) = place(3000);
    let first = started(&db, &format!("run {plan}"));
    let id = latest(&db);
    let second = with(&db, &format!("run --resume {id}"));
    assert_eq!(second.code, Some(2), "{second:?}");
    let expected = format!("error: run {id} is being measured by process {}; wait until it ends\n", first.id());
    assert_eq!(second.stderr, expected);
    kill_process(Pid::from_child(&first), Signal::INT).unwrap();
    assert_eq!(first.wait_with_output().unwrap().status.code(), Some(130));
}

#[test]
fn a_matrix_run_is_not_resumed() {
    let (_directory, db, _) = place(1);
    with(&db, "matrix --guest none --host 4k --size 2M --blocks 1").ok();
    let id: String = Connection::open(&db).unwrap().query_row("SELECT id FROM runs", [], |row| row.get(0)).unwrap();
    let ran = with(&db, &format!("run --resume {id}"));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let expected = format!("error: run {id} is one of vmtax matrix, and matrix runs are not resumed\nhelp: ");
    assert!(ran.stderr.starts_with(&expected), "{ran:?}");
}

#[test]
fn a_regression_beyond_the_gate_is_exit_code_1() {
    let (_directory, db, plan) = place(3);
    with(&db, &format!("run {plan}")).ok();
    let first = latest(&db);
    with(&db, &format!("run {plan}")).ok();
    let connection = Connection::open(&db).unwrap();
    let second: String =
        connection.query_row("SELECT id FROM experiments WHERE id <> ?1", [&first], |row| row.get(0)).unwrap();
    // The same figures, so that no noise of this host is between the runs; a hundredfold in one cell.
    let alike = "UPDATE experiment_trials SET outcome = (SELECT outcome FROM experiment_trials AS first
        WHERE first.run = ?1 AND first.block = experiment_trials.block AND first.cell = experiment_trials.cell)
        WHERE run = ?2";
    assert_eq!(connection.execute(alike, [&first, &second]).unwrap(), 18);
    let slower = "UPDATE experiment_trials SET outcome = json_set(outcome, '$.metrics[0].value',
        100 * json_extract(outcome, '$.metrics[0].value')) WHERE run = ?1 AND cell = 'chase host=4k stride=256'";
    assert_eq!(connection.execute(slower, [&second]).unwrap(), 3);
    let ran = with(&db, &format!("compare {first} {second} --gate 2000%"));
    assert_eq!(ran.code, Some(2), "a gate is below 100 %: {ran:?}");
    let ran = with(&db, &format!("compare {first} {second} --gate 99%"));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.starts_with("regression beyond 99 %: chase host=4k stride=256: +"), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    let back = with(&db, &format!("compare {second} {first} --gate 99%"));
    assert_eq!(back.code, Some(0), "the other way it is an improvement: {back:?}");
}
