//! The runner against tiny programs that misbehave, and against real ones where they are installed.

use std::{env, process::Command as Process};

use vmtax_core::{
    experiment::Better,
    factor::Level,
    program::command::{Command, Measure, Place as Where},
    units::MIB,
};

use super::*;

/// Enough for anything that ends by itself, on a loaded host.
const LONG: Duration = Duration::from_secs(120);

struct Room(TempDir);

impl Room {
    fn new() -> Room {
        Room(tempfile::tempdir().unwrap())
    }

    fn place(&self) -> Place {
        Place { parent: self.0.path().to_owned(), ..Place::here(0) }
    }

    /// What was left in it.
    fn left(&self) -> usize {
        fs::read_dir(self.0.path()).unwrap().count()
    }
}

fn shell(script: &str) -> Command {
    let place = Where::pattern(r"rate: (\S+)").unwrap();
    let rate = Measure { name: "rate".into(), place, unit: "ops/s".into(), better: Better::Higher };
    Command::new(["sh", "-c", script].map(str::to_owned).into(), vec![rate]).unwrap()
}

#[track_caller]
fn check(script: &str, time: Duration, expected: Result<f64, &str>) {
    let room = Room::new();
    let got = run_command(&shell(script), time, &room.place(), &AtomicBool::new(false));
    let got = got.map(|finding| finding.metrics[0].value).map_err(|failure| failure.to_string());
    assert_eq!(got, expected.map_err(str::to_owned));
    assert_eq!(room.left(), 0, "its directory is removed");
}

#[test]
fn a_program_that_works_gives_its_metrics() {
    check("echo 'rate: 41.5' ; touch a-file-of-its-own", LONG, Ok(41.5));
}

#[test]
fn a_program_that_prints_garbage_fails_with_its_line() {
    check(
        "printf 'rate: \\377\\033[2J\\n'",
        LONG,
        Err("command: expected a number above 0 for `rate: (\\S+)` in line 1, found `rate: \u{fffd}?[2J`"),
    );
    check("echo hello", LONG, Err("command: no complete line with `rate: (\\S+)`; the output ends with `hello`"));
}

#[test]
fn a_program_that_fails_is_not_believed() {
    check(
        "echo 'rate: 41.5'; echo 'lost the disk' >&2; exit 4",
        LONG,
        Err(
            "`sh -c echo 'rate: 41.5'; echo 'lost the disk' >&2; exit 4` ended with exit code 4, last saying `lost the \
             disk`: run it by hand",
        ),
    );
}

#[test]
fn a_program_that_hangs_ends_all_the_same() {
    check(
        "echo begun; sleep 1000",
        Duration::from_millis(500),
        Err(
            "`sh -c echo begun; sleep 1000` did not end within 0.5s and was killed, last saying `begun`: does it run by \
             hand?",
        ),
    );
}

#[test]
fn a_program_that_is_killed_says_by_what() {
    check(
        "kill -KILL $$",
        LONG,
        Err("`sh -c kill -KILL $$` was killed by signal 9, last saying `nothing`: was memory short? (dmesg)"),
    );
}

#[test]
fn a_program_that_prints_without_end_is_ended() {
    check("yes", LONG, Err("`sh -c yes` printed more than 16 MiB and was killed, last saying `y`: make it quieter"));
}

#[test]
fn a_missing_program_says_what_installs_it() {
    let room = Room::new();
    let missing = Program {
        needs: Needs { program: "no-such-benchmark", package: "no-such-package", ..sysbench().needs },
        ..Program { name: "missing", ..copy(sysbench()) }
    };
    let values = Values::new(&missing, &[]).unwrap();
    let failure = run(&missing, &values, &room.place(), &AtomicBool::new(false)).unwrap_err();
    assert_eq!(failure.to_string(), "`no-such-benchmark` is not installed: apt-get install no-such-package");
    assert_eq!(room.left(), 0);
}

#[test]
fn a_disk_that_is_too_small_is_seen_before() {
    let room = Room::new();
    let fileio = Program::named("sysbench-fileio").unwrap();
    let huge = Level::Size(Bytes(1 << 60));
    let values = Values::new(fileio, &[("total_size", huge)]).unwrap();
    let failure = run(fileio, &values, &room.place(), &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(failure.contains(" are free: smaller files, or TMPDIR on a larger disk"), "{failure}");
}

#[test]
fn a_server_that_ends_or_does_not_listen_is_named() {
    let room = Room::new();
    let server = |script: &str| Server { command: ["sh", "-c", script].map(str::to_owned).into(), port: 1 };
    let stop = AtomicBool::new(false);
    let ended = serve(&server("echo 'address in use' >&2; exit 1"), room.0.path(), &stop).unwrap_err();
    assert_eq!(
        ended.to_string(),
        "the server `sh -c echo 'address in use' >&2; exit 1` ended, last saying `address in use`: is its port taken?"
    );
    stop.store(true, Ordering::Release);
    let stopped = serve(&server("sleep 1000"), room.0.path(), &stop).unwrap_err();
    assert!(matches!(stopped, Failure::Stopped), "{stopped}");
}

fn sysbench() -> &'static Program {
    Program::named("sysbench-cpu").unwrap()
}

fn copy(program: &Program) -> Program {
    let Program { name, about, needs, parameters, script, read } = *program;
    Program { name, about, needs, parameters, script, read }
}

/// Whether a program can be tested for real. If not it says so, and that is a failure where `VMTAX_REQUIRE` lists the
/// tier `programs`.
fn has(program: &str) -> bool {
    let is_there = Process::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success();
    if !is_there {
        println!("skipped: {program} is not installed");
        let required = env::var("VMTAX_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|tier| tier == "programs"), "VMTAX_REQUIRE lists programs: no {program}");
    }
    is_there
}

/// Runs a program for real; none where it is not installed.
fn really(name: &str, given: &[(&str, Level)]) -> Option<Finding> {
    let program = Program::named(name).unwrap();
    if !has(program.needs.program) {
        return None;
    }
    let room = Room::new();
    // A port that is free now, most likely still free in a moment.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let values = Values::new(program, given).unwrap();
    let finding = run(program, &values, &Place { port, ..room.place() }, &AtomicBool::new(false));
    let finding = finding.unwrap_or_else(|failure| panic!("{name}: {failure}"));
    println!("{name}: {finding:#?}");
    assert_eq!(room.left(), 0);
    Some(finding)
}

const SECOND: (&str, Level) = ("seconds", Level::Count(1));

#[test]
fn sysbench_runs_for_real() {
    let Some(cpu) = really("sysbench-cpu", &[SECOND]) else { return };
    assert!(cpu.evidence["sysbench.version"].starts_with("1."), "{cpu:?}");
    let small = ("block_size", Level::Size(Bytes(MIB)));
    let random = [SECOND, small, ("mode", Level::Word("rnd")), ("subtract_rng", Level::Word("on"))];
    let memory = really("sysbench-memory", &random).unwrap();
    let value = |name| memory.value(name).unwrap();
    assert!(value("mib_per_second_less_rng") > value("mib_per_second"), "{memory:?}");
    let files = [SECOND, ("total_size", Level::Size(Bytes(4 * MIB))), ("files", Level::Count(2))];
    assert!(really("sysbench-fileio", &files).unwrap().value("read_mib_per_second").is_some());
    really("sysbench-threads", &[SECOND, ("threads", Level::Count(2))]);
    really("sysbench-mutex", &[("locks", Level::Count(100)), ("threads", Level::Count(2))]);
}

#[test]
fn hackbench_runs_for_real() {
    let small = [("groups", Level::Count(2)), ("loops", Level::Count(20))];
    let Some(hackbench) = really("hackbench", &small) else { return };
    assert_eq!(hackbench.evidence["hackbench.tasks"], "80");
    assert!(hackbench.evidence.contains_key("hackbench.version"));
}

#[test]
fn programs_over_the_network_run_for_real_against_a_server_of_ours() {
    really("iperf3", &[SECOND]);
    really("sockperf", &[SECOND]);
    really("netperf", &[SECOND]);
    really("netperf", &[SECOND, ("test", Level::Word("tcp_rr"))]);
}

#[test]
fn perf_and_stress_ng_run_for_real() {
    really("perf-messaging", &[("groups", Level::Count(1)), ("loops", Level::Count(20))]);
    really("stress-ng", &[SECOND, ("vm_bytes", Level::Size(Bytes(16 * MIB)))]);
}

#[test]
fn a_build_is_timed_in_kernbenchs_terms() {
    if !has("make") {
        return;
    }
    // A tree that builds nothing but takes the goals of a kernel.
    let tree = tempfile::tempdir().unwrap();
    let rules = "tinyconfig clean:\n\t@true\nlib/:\n\t@i=0; while [ $$i -lt 20000 ]; do i=$$((i+1)); done; sleep 0.01\n\
                 .PHONY: lib/ tinyconfig clean\n";
    fs::write(tree.path().join("Makefile"), rules).unwrap();
    let room = Room::new();
    let kernbench = Program::named("kernbench").unwrap();
    let place = Place { tree: Some(tree.path().display().to_string()), ..room.place() };
    let values = Values::new(kernbench, &[]).unwrap();
    let finding = run(kernbench, &values, &place, &AtomicBool::new(false)).unwrap();
    assert!(finding.value("elapsed_s").is_some() && finding.value("sleeps").is_some(), "{finding:?}");
    fs::write(tree.path().join("Makefile"), rules.replace("sleep 0.01", "exit 1")).unwrap();
    let failure = run(kernbench, &values, &place, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(failure.contains("ended with exit code 2") && failure.contains("lib/"), "{failure}");
}

/// The tree of a kernel, for those who have one.
const TREE: &str = "VMTAX_KERNEL_TREE";

#[test]
fn a_kernel_is_built_for_real_where_a_tree_is_given() {
    let Ok(tree) = env::var(TREE) else {
        println!("skipped: {TREE} names no kernel tree");
        return;
    };
    let room = Room::new();
    let kernbench = Program::named("kernbench").unwrap();
    let place = Place { tree: Some(tree), ..room.place() };
    let values = Values::new(kernbench, &[("jobs", Level::Count(2))]).unwrap();
    let finding = run(kernbench, &values, &place, &AtomicBool::new(false)).unwrap();
    println!("{finding:#?}");
    assert_eq!((finding.metrics.len(), room.left()), (6, 0));
}
