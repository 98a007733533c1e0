//! Real programs, where they are installed.

use std::{
    env,
    io::{Read, Write},
    net::TcpListener,
    process::Command as Process,
};

use vmtax_core::{factor::Level, units::MIB};

use super::*;

/// What `make test` installs: the tier `programs`.
const INSTALLED: [&str; 2] = ["sysbench", "hackbench"];

/// Whether a program can be tested for real. If not it says so, and that is a failure where `VMTAX_REQUIRE` lists the
/// tier `programs` and `make test` installs it.
fn has(program: &str) -> bool {
    let is_there = Process::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success();
    if !is_there {
        println!("skipped: {program} is not installed");
        let required = env::var("VMTAX_REQUIRE").unwrap_or_default();
        let is_required = required.split(',').any(|tier| tier == "programs") && INSTALLED.contains(&program);
        assert!(!is_required, "VMTAX_REQUIRE lists programs: no {program}");
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
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
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

/// Answers every connection with one page.
fn serve_pages(listener: TcpListener) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        let mut request = [0; 1024];
        let _ = stream.read(&mut request);
        let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nhello\n");
    }
}

#[test]
fn ab_runs_for_real() {
    if !has("ab") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || serve_pages(listener));
    let room = Room::new();
    let ab = Program::named("ab").unwrap();
    let values = Values::new(ab, &[("requests", Level::Count(50)), ("concurrency", Level::Count(2))]).unwrap();
    let finding = run(ab, &values, &Place { port, ..room.place() }, &AtomicBool::new(false)).unwrap();
    println!("{finding:#?}");
    assert!(finding.value("requests_per_second").is_some() && finding.evidence["ab.version"] == "2.3", "{finding:?}");
    let nobody = run(ab, &values, &Place { port: 1, ..room.place() }, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(nobody.starts_with("ab failed: `apr_") && nobody.ends_with("and the port open?"), "{nobody}");
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
