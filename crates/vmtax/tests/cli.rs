//! The command line: help, and what a tired user reads when something is wrong. `TRYCMD=overwrite` writes the texts anew;
//! read them before committing.
#![allow(clippy::unwrap_used, reason = "a test, whose helpers clippy takes for the program")]

use std::{fs, path::Path};

use host::{run, vmtax};
use rusqlite::Connection;

mod host;

#[test]
fn help_and_wrong_arguments_read_as_written() {
    // No results anywhere: what `show` says then is part of it.
    trycmd::TestCases::new().env("XDG_STATE_HOME", "/nonexistent").env("LC_ALL", "C").case("tests/cmd/*.trycmd");
}

#[test]
fn a_results_file_that_cannot_be_used_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("notes"), "Shopping: milk, bread, a results file.\n").unwrap();
    fs::create_dir(path("folder")).unwrap();
    let sqlite = |name: &str, pragmas: &str| Connection::open(path(name)).unwrap().execute_batch(pragmas).unwrap();
    sqlite("foreign", "CREATE TABLE recipes (id)");
    sqlite("newer", &format!("PRAGMA application_id = {}; PRAGMA user_version = 99; CREATE TABLE x (y)", 0x766d_7478));
    let check = |name: &str, expected: &str| {
        let before = fs::read(path(name)).ok();
        for command in ["matrix --size 4M --blocks 1", "show"] {
            let ran = run(vmtax(command).arg("--db").arg(path(name)));
            let expected = expected.replace("[FILE]", path(name).to_str().unwrap());
            assert_eq!((ran.stderr, ran.stdout.as_str(), ran.code), (expected, "", Some(2)), "{command}");
        }
        assert_eq!(fs::read(path(name)).ok(), before);
    };
    check("notes", "error: [FILE] is no results file of vmtax; choose another with --db FILE\n");
    check("foreign", "error: [FILE] is no results file of vmtax; choose another with --db FILE\n");
    check(
        "newer",
        "error: [FILE] was written by a newer vmtax (schema 99, this one knows 1); update, or choose another with --db FILE\n",
    );
    check(
        "folder",
        "error: cannot keep results in [FILE]: it is a directory\nhelp: name a file: --db [FILE]/results.db\n",
    );
}

#[test]
fn a_results_file_without_the_run_names_the_latest() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let show = |run_name: &str| run(vmtax(&format!("show {run_name}")).arg("--db").arg(&path));
    let file = path.display();
    assert_eq!(
        show("").stderr,
        format!(
            "error: there are no results to show: no file {file}\n\
             help: `vmtax matrix` makes one; if yours is elsewhere, name it with --db FILE\n"
        )
    );
    assert!(!path.exists(), "looking makes no file");
    run(vmtax("matrix --guest none --host 4k --size 1M --blocks 1").arg("--db").arg(&path)).ok();
    let id = latest(&path);
    assert_eq!(show("NOSUCH").stderr, format!("error: no run NOSUCH in {file}; the latest is {id}\n"));
    assert_eq!(show("NOSUCH").code, Some(2));
    assert_eq!(show(&id).ok(), show("").ok());
    Connection::open(&path).unwrap().execute("DELETE FROM runs", []).unwrap();
    assert_eq!(show("").stderr, format!("error: {file} holds no run\nhelp: vmtax matrix makes one\n"));
}

#[test]
fn the_manual_is_one_page_with_every_option() {
    let page = run(&mut vmtax("man")).ok();
    assert_eq!(page.matches("\n.TH ").count(), 1);
    for command in ["matrix", "show", "touch", "walk", "doctor", "image boot", "restore", "completions", "man"] {
        assert!(page.contains(&format!(".SS \"vmtax {command}")), "{command}");
        let help = run(&mut vmtax(&format!("{command} --help"))).ok();
        let options = help.split_whitespace().filter(|word| word.starts_with("--") && *word != "--help");
        for option in options.map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-')) {
            assert!(page.contains(&option.replace('-', "\\-")), "{command} {option}");
        }
    }
}

#[test]
fn completions_are_there_for_every_common_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&mut vmtax(&format!("completions {shell}"))).ok();
        assert!(script.contains("matrix") && script.contains("reserve") && !script.contains("guardian"), "{shell}");
    }
}

fn latest(path: &Path) -> String {
    Connection::open(path).unwrap().query_row("SELECT id FROM runs ORDER BY rowid DESC", [], |row| row.get(0)).unwrap()
}
