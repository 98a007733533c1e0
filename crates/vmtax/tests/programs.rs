//! Programs as workloads of plans, through `vmtax run`: real ones where they are installed (the tier `programs`), and scripts
//! under their names that misbehave.
#![allow(clippy::unwrap_used, reason = "a test, whose helpers clippy takes for the program")]

mod host;

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use host::{Ran, has, vmtax};
use serde_json::Value;
use tempfile::TempDir;

/// A plan in a file, and a directory of programs beside it.
fn place(plan: &str) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("bin")).unwrap();
    fs::write(place.path().join("plan.toml"), plan).unwrap();
    place
}

/// A script under the name of a program.
fn program(place: &Path, name: &str, script: &str) {
    let path = place.join("bin").join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs `vmtax` there; its own programs come first, and are the only ones where `others` is empty.
fn there(place: &Path, arguments: &str, others: &str) -> Ran {
    let path = format!("{}:{others}", place.join("bin").display());
    Ran::of(vmtax(arguments).arg("--db").arg("results.db").env("PATH", path).current_dir(place).output().unwrap())
}

const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

fn trials(place: &Path) -> Vec<Value> {
    there(place, "show --json", USUAL).json()["trials"].as_array().unwrap().clone()
}

/// What sysbench 1.0.20 printed once, and another version of it.
fn sysbench(version: &str) -> String {
    let recorded = include_str!("../../core/testdata/programs/sysbench/cpu.txt").replace("1.0.20", version);
    format!("case $1 in\n--version) echo sysbench {version} ;;\n*) cat <<'END'\n{recorded}END\nesac")
}

const CPU: &str = "[[workload]]\nprogram = \"sysbench-cpu\"\nseconds = 1\n";

#[test]
fn programs_are_measured_for_real() {
    let installed = |name: &str| Command::new(name).arg("--help").output().is_ok();
    let lacking = ["sysbench", "hackbench"].into_iter().find(|name| !installed(name));
    if !has("programs", lacking.map(|name| format!("{name} is not installed"))) {
        return;
    }
    let plan = format!("{CPU}[[workload]]\nprogram = \"hackbench\"\ngroups = 1\n[replication]\nblocks = 2\n");
    let place = place(&plan);
    let ran = there(place.path(), "run plan.toml", USUAL);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("sysbench-cpu: events_per_second in events/s, higher is better"), "{ran:?}");
    let trials = trials(place.path());
    assert_eq!(trials.len(), 8, "two workloads, each with a twin of its baseline");
    for trial in trials {
        let outcome = &trial["outcome"];
        assert!(outcome["metrics"][0]["value"].as_f64().unwrap() > 0.0, "{trial}");
        let program = if trial["cell"].as_str().unwrap().starts_with("sysbench") { "sysbench" } else { "hackbench" };
        assert!(outcome["evidence"][format!("{program}.version")].is_string(), "{trial}");
        assert!(outcome["evidence"]["program.elapsed_s"].is_string(), "{trial}");
    }
}

#[test]
fn a_program_that_prints_garbage_fails_and_the_run_goes_on() {
    let metric = r#"metric = [{ name = "rate", unit = "ops/s", better = "higher", regex = 'rate: ([0-9.]+)' }]"#;
    let own = |name: &str, script: &str| {
        format!("[[workload]]\nname = \"{name}\"\ncommand = [\"/bin/sh\", \"-c\", \"{script}\"]\n{metric}\n")
    };
    let (mute, good) = (own("mute", "exit 3"), own("good", "echo rate: 41.5"));
    let place = place(&format!("{CPU}{mute}{good}[replication]\nblocks = 1\n"));
    program(place.path(), "sysbench", "echo 'sysbench 1.0.20'; echo 'events per second: lots'");
    let ran = there(place.path(), "run plan.toml", USUAL);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let told = trials(place.path());
    let of = |cell: &str| &told.iter().find(|trial| trial["cell"] == cell).unwrap()["outcome"];
    let reason = of("sysbench-cpu")["reason"].as_str().unwrap();
    assert!(reason.starts_with("sysbench cpu: ") && reason.contains("`events per second: lots`"), "{reason}");
    assert!(of("mute")["reason"].as_str().unwrap().contains("exit code 3"), "{told:?}");
    assert_eq!(of("good")["metrics"][0]["value"], 41.5);
    assert_eq!(of("good")["metrics"][0]["unit"], "ops/s");
}

#[test]
fn a_program_that_is_not_there_is_missing_with_the_package_that_holds_it() {
    let text = "[factors]\nvenue = [\"native\", \"microvm\", \"guest\"]\n[[workload]]\nprogram = \"sysbench-cpu\"\n";
    let place = place(text);
    let ran = there(place.path(), "run plan.toml --dry-run", "");
    let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "`sysbench` is not installed; apt-get install sysbench",
        "venue=microvm: `sysbench-cpu` runs on an operating system, and the micro-VM has none; exclude it",
        "venue=guest: guests boot an image that holds vmtax alone, and no other program; exclude it",
    ] {
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn versions_of_a_program_are_not_compared() {
    let place = place(&format!("{CPU}threads = 2\n[replication]\nblocks = 2\nseed = 1\n"));
    let run = |version: &str| {
        program(place.path(), "sysbench", &sysbench(version));
        let ran = there(place.path(), "run plan.toml", USUAL);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let first = ran.stderr.split("Run ").nth(1).unwrap();
        first.split(':').next().unwrap().to_owned()
    };
    let runs = ["1.0.20", "1.0.20", "1.1.0"].map(run);
    let compared = |with: &str| there(place.path(), &format!("compare {} {with}", runs[0]), USUAL);
    assert_eq!(compared(&runs[1]).code, Some(0));
    let refused = compared(&runs[2]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let said = refused.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("sysbench-cpu is 1.0.20 for") && said.contains("versions are not comparable"), "{said}");
}

#[test]
fn the_system_is_tested_without_anything_installed() {
    let tests = ["syscall", "exec", "spawn", "pipe", "context", "filecopy"];
    let workloads: String = tests.map(|test| format!("[[workload]]\nprobe = \"{test}\"\nseconds = 1\n")).concat();
    let place = place(&format!("{workloads}[replication]\nblocks = 1\n"));
    let ran = there(place.path(), "run plan.toml", "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("geometric mean of 6 of its 12 tests") && said.contains("not a UnixBench index"), "{said}");
    for trial in trials(place.path()) {
        let (metrics, evidence) = (&trial["outcome"]["metrics"], &trial["outcome"]["evidence"]);
        assert_eq!((&metrics[0]["name"], &metrics[1]["name"]), (&"ops_per_second".into(), &"unixbench_ratio".into()));
        let (operations, cpus) = (evidence["os.operations"].as_str().unwrap(), evidence["os.cpus"].as_str().unwrap());
        assert!(operations.parse::<u64>().unwrap() > 0 && cpus.parse::<usize>().is_ok(), "{trial}");
    }
}
