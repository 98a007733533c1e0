//! The runner against tiny programs that misbehave.

mod real;

use vmtax_core::{
    experiment::Better,
    factor::Level,
    program::command::{Command, Measure, Place as Where},
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
