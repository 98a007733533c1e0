//! `vmtax matrix` on this host: real memory and, where there are some, real virtual machines and real pools.
#![allow(clippy::unwrap_used, reason = "a test, whose helpers clippy takes for the program")]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::Duration,
};

use host::{AS_NOBODY, POOL, Ran, has_kvm, has_pool, has_root, pool, public_copy, run, under, vmtax};
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

mod host;

/// Pages of the arena of most tests here.
const SIZE: &str = "32M";
const SMALL_PAGES: u64 = 32 * 256;
const LARGE_PAGES: u64 = 16;

#[test]
fn every_setting_has_a_row_and_every_figure_its_evidence() {
    let (_directory, db) = results();
    let document = matrix(&db, &format!("--size {SIZE} --blocks 2 --seed 1 --json")).json();
    assert_eq!(document["schema"], 1);
    assert_eq!(document["ending"], "done");
    assert_eq!(document["seed"], 1);
    assert_eq!(document["blocks"], 2);
    let cells = cells(&document);
    let expected: Vec<(String, String)> = ["native", "4k", "2m", "1g"]
        .into_iter()
        .flat_map(|guest| ["4k", "thp", "2m", "1g"].map(|host| (guest.to_owned(), host.to_owned())))
        .collect();
    assert_eq!(cells.len(), expected.len());
    for key in &expected {
        let row = &cells[key];
        match row["status"].as_str().unwrap() {
            "ok" => proves(key, row),
            "unavailable" => {
                assert!(!row["reason"].as_str().unwrap().is_empty(), "{key:?}");
                assert!(!row["remedy"].as_str().unwrap().is_empty(), "{key:?}");
                assert_eq!(row["value"], Value::Null);
            }
            other => panic!("{key:?} is {other}: {row}"),
        }
    }
    assert_eq!(status(&cells, "native", "4k"), "ok");
    assert!(document["noise_floor"]["ratio"].as_f64().unwrap() > 0.0);
    if has_kvm() {
        assert_eq!(status(&cells, "4k", "4k"), "ok");
        assert_eq!(status(&cells, "2m", "4k"), "ok");
    }
}

/// A figure, an interval around it, one trial a block, and a proof of the setting.
fn proves((guest, host): &(String, String), row: &Value) {
    let (value, evidence) = (row["value"].as_f64().unwrap(), &row["evidence"]);
    let count = |name: &str| evidence[name].as_u64();
    let cell = format!("guest {guest} on {host}: {row}");
    assert!(row["ci"][0].as_f64().unwrap() <= value && value <= row["ci"][1].as_f64().unwrap(), "{cell}");
    assert!(row["first_pass"].as_f64().unwrap() > 0.0, "{cell}");
    assert_eq!(row["trials"], 2, "{cell}");
    assert_eq!(count("kernel_page_kb"), Some(if host == "2m" { 2048 } else { 4 }), "{cell}");
    let is_whole = host == "2m" || evidence["thp_coverage"] == 1.0;
    match guest.as_str() {
        "native" => assert_eq!(count("pages_4k"), None, "{cell}"),
        // Where there is nothing to count with, KVM is older than Linux 5.14.
        _ if count("pages_4k").is_none() => {}
        "4k" if host == "4k" => assert!(count("pages_4k") >= Some(SMALL_PAGES), "{cell}"),
        "2m" if host == "4k" => assert!(count("pages_4k") >= Some(SMALL_PAGES), "{cell}"),
        "2m" if is_whole => assert!(count("pages_2m") >= Some(LARGE_PAGES), "{cell}"),
        _ => {}
    }
}

#[test]
fn a_kept_run_prints_the_same_again() {
    let (_directory, db) = results();
    let text = matrix(&db, "--size 8M --blocks 2").ok();
    let show = |form: &str| run(vmtax(&format!("show {form}")).arg("--db").arg(&db)).ok();
    assert_eq!(show(""), text);
    assert_eq!(show("--json"), show("--json"));
    assert!(show("--csv").starts_with("run,venue,guest,host,metric,value,"));
    assert_eq!(show("--csv").lines().count(), 1 + 16);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn a_seed_reproduces_the_schedule() {
    let schedule = |seed: &str| {
        let (_directory, db) = results();
        matrix(&db, &format!("--size 2M --blocks 4 --seed {seed}")).ok();
        let file = Connection::open(&db).unwrap();
        let mut query = file.prepare("SELECT block, place, guest, host, replica FROM trials ORDER BY 1, 2").unwrap();
        let rows = query.query_map([], |row| {
            let setting: (Option<String>, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
            Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?, setting))
        });
        rows.unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    let once = schedule("7");
    assert!(once.len() >= 4 * 3);
    assert_eq!(once, schedule("7"));
    assert_ne!(once, schedule("8"));
}

/// Only its form: on a busy host the figures of any one run may lie anywhere. How often the intervals err is simulated in
/// `vmtax_core`.
#[test]
fn a_against_a_claims_no_difference() {
    let (_directory, db) = results();
    let document = matrix(&db, "--guest none --host 4k --size 8M --blocks 7 --json").json();
    let [row] = &document["cells"].as_array().unwrap()[..] else { panic!("{document}") };
    assert_eq!((&row["tax"], &row["distinguishable"]), (&Value::Null, &Value::Null));
    let floor = &document["noise_floor"];
    let [ratio, lo, hi] = [&floor["ratio"], &floor["ci"][0], &floor["ci"][1]].map(|value| value.as_f64().unwrap());
    assert!(0.0 < lo && lo <= ratio && ratio <= hi, "{floor}");
    assert_eq!(row["trials"], 7);
}

#[test]
fn every_probe_measures_natively_and_in_a_guest() {
    for probe in ["chase", "stride", "stride-write", "random", "touch"] {
        let (_directory, db) = results();
        let document = matrix(&db, &format!("--probe {probe} --guest 4k --host 4k --size 4M --blocks 1 --json")).json();
        assert_eq!(document["probe"]["name"], probe);
        let cells = cells(&document);
        assert_eq!(status(&cells, "native", "4k"), "ok", "{probe}");
        if has_kvm() {
            assert_eq!(status(&cells, "4k", "4k"), "ok", "{probe}");
        }
    }
}

#[test]
fn two_vcpus_walk_side_by_side() {
    let (_directory, db) = results();
    let ran = matrix(&db, "--vcpus 2 --guest 2m --host 4k --size 8M --blocks 1 --json");
    if ran.stderr.contains("would wait for one another") {
        return println!("skipped: one CPU");
    }
    let document = ran.json();
    assert_eq!(document["probe"]["vcpus"], 2);
    for (key, row) in cells(&document) {
        assert!(row["status"] == "ok" || !has_kvm(), "{key:?}: {row}");
    }
}

#[test]
fn guest_none_measures_natively_alone() {
    let (_directory, db) = results();
    let document = matrix(&db, "--guest none --size 4M --blocks 1 --json").json();
    assert!(document["cells"].as_array().unwrap().iter().all(|row| row["venue"] == "native"));
}

#[test]
fn a_run_says_what_will_happen_and_where_it_is_kept_and_nothing_else() {
    let (_directory, db) = results();
    let ran = matrix(&db, "--guest none --host 4k --size 4M --blocks 2 --budget 60");
    let [first, last] = &ran.stderr.lines().collect::<Vec<_>>()[..] else { panic!("{}", ran.stderr) };
    assert_eq!(*first, "Measuring 1 cell on 4 MiB: 2 blocks, up to 60 s.");
    assert!(last.starts_with("Kept as run ") && last.ends_with("; `vmtax show` prints it again."), "{last}");
    assert!(!ran.stderr.contains('\x1b') && !ran.stdout.contains('\x1b'));
}

#[test]
fn without_dev_kvm_native_rows_are_measured_and_guests_have_a_remedy() {
    if !has_root() {
        return;
    }
    let (_directory, db) = results();
    let without = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && exec \"$@\"",
        "-",
    ];
    let program = Path::new(env!("CARGO_BIN_EXE_vmtax"));
    let document = run(under(&without, program, "matrix --size 4M --blocks 1 --json --db").arg(&db)).json();
    only_native_rows(&document, "no /dev/kvm");
}

#[test]
fn something_else_at_dev_kvm_is_seen_for_what_it_is() {
    if !has_root() || !has_kvm() {
        return;
    }
    let (_directory, db) = results();
    let hidden = ["unshare", "--mount", "sh", "-c", "mount --bind /dev/null /dev/kvm && exec \"$@\"", "-"];
    let program = Path::new(env!("CARGO_BIN_EXE_vmtax"));
    let document = run(under(&hidden, program, "matrix --size 4M --blocks 1 --json --db").arg(&db)).json();
    only_native_rows(&document, "/dev/kvm is no KVM device");
}

#[test]
fn without_permission_native_rows_are_measured_and_guests_have_a_remedy() {
    if !has_root() || !has_kvm() {
        return;
    }
    let (directory, program) = public_copy();
    // Whatever this host permits: a /dev/kvm that is root's alone.
    let root_only = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 600 /dev/kvm c $KVM && exec \"$@\"",
        "-",
    ];
    let prefix: Vec<&str> = root_only.into_iter().chain(AS_NOBODY.iter().copied()).collect();
    let mut command = under(&prefix, &program, "matrix --size 4M --blocks 1 --json --db");
    let device = std::os::unix::fs::MetadataExt::rdev(&fs::metadata("/dev/kvm").unwrap());
    let numbers = format!("{} {}", rustix::fs::major(device), rustix::fs::minor(device));
    let document = run(command.env("KVM", numbers).arg(directory.path().join("results.db"))).json();
    only_native_rows(&document, "no permission to open /dev/kvm");
}

fn only_native_rows(document: &Value, reason: &str) {
    let cells = cells(document);
    for ((guest, host), row) in &cells {
        if guest != "native" {
            assert_eq!(row["status"], "unavailable", "guest {guest} on {host}");
            assert!(!row["remedy"].as_str().unwrap().is_empty());
        }
    }
    assert_eq!(status(&cells, "native", "4k"), "ok");
    assert!(cells[&("4k".to_owned(), "4k".to_owned())]["reason"].as_str().unwrap().contains(reason), "{document}");
}

#[test]
fn reserving_needs_root_and_says_so() {
    if !has_root() {
        return;
    }
    let (directory, program) = public_copy();
    let db = directory.path().join("results.db");
    let ran = run(under(AS_NOBODY, &program, "matrix --reserve --size 4M --blocks 1 --db").arg(db));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.starts_with("error: cannot borrow huge pages for the run: not permitted to "), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("help: run it as root: sudo vmtax ...\n"), "{}", ran.stderr);
}

#[test]
fn reserved_pages_are_measured_and_given_back() {
    if !has_pool() {
        return;
    }
    let (_directory, db) = results();
    let before = pool();
    let document = matrix(&db, "--reserve --host 2m --size 32M --blocks 2 --json").json();
    assert_eq!(pool(), before);
    let cells = cells(&document);
    let native = ("native".to_owned(), "2m".to_owned());
    proves(&native, &cells[&native]);
    if has_kvm() {
        let guest = ("2m".to_owned(), "2m".to_owned());
        proves(&guest, &cells[&guest]);
    }
}

#[test]
fn more_than_half_of_memory_is_not_reserved() {
    if !has_pool() {
        return;
    }
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let available = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap();
    let kib: u64 = available.split_whitespace().next().unwrap().parse().unwrap();
    let (_directory, db) = results();
    let ran = matrix(&db, &format!("--reserve --host 2m --size {}M --blocks 1", kib * 6 / 10 / 2048 * 2));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("in huge pages: more than half of the "), "{}", ran.stderr);
    assert!(ran.stderr.contains("\nhelp: free memory, or ask for "), "{}", ran.stderr);
}

#[test]
fn own_memory_beside_the_arena_is_64_mib_and_a_256th_of_it_at_most() {
    const ARENA_KIB: u64 = 256 << 10;
    let (_directory, db) = results();
    let mut command = vmtax("matrix --size 256M --blocks 1 --db");
    let mut child = command.arg(&db).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut peak_kib = 0_u64;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak_kib = line.map_or(peak_kib, |kib| kib.trim().trim_end_matches(" kB").parse().unwrap());
        thread::sleep(Duration::from_millis(5));
    }
    println!("{} MiB beside an arena of 256 MiB", peak_kib.saturating_sub(ARENA_KIB) >> 10);
    assert!(peak_kib <= ARENA_KIB + (64 << 10) + ARENA_KIB / 256, "{peak_kib} KiB");
}

/// Pages of a pool that somebody else uses. Two digits, as in what is written to it: a plain file keeps what is not written over.
const ALL_TAKEN: &str = "10";

/// A pool of plain files, in a mount namespace of its own: it takes what is written and has no page free.
struct StubbornPool {
    directory: TempDir,
}

impl StubbornPool {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pool = directory.path().join("hugepages-2048kB");
        fs::create_dir(&pool).unwrap();
        for (file, pages) in [("nr", ALL_TAKEN), ("free", "0"), ("resv", "0"), ("surplus", "0")] {
            fs::write(pool.join(format!("{file}_hugepages")), pages).unwrap();
        }
        StubbornPool { directory }
    }

    fn run(&self, arguments: &str, db: &Path) -> Ran {
        let script = "mount --bind \"$1\" /sys/kernel/mm/hugepages && mount -t tmpfs none /run && shift && exec \"$@\"";
        let pools = self.directory.path().to_str().unwrap();
        let prefix = ["unshare", "--mount", "sh", "-c", script, "-", pools];
        run(under(&prefix, Path::new(env!("CARGO_BIN_EXE_vmtax")), arguments).arg("--db").arg(db))
    }

    fn pages(&self) -> String {
        fs::read_to_string(self.directory.path().join("hugepages-2048kB/nr_hugepages")).unwrap()
    }
}

#[test]
fn a_pool_that_is_only_partly_filled_is_an_error_where_it_was_named() {
    if !has_root() || !Path::new(POOL).exists() {
        return;
    }
    let (_directory, db) = results();
    let pool = StubbornPool::new();
    let ran = pool.run("matrix --reserve --guest none --host 2m --size 32M --blocks 1", &db);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert_eq!(
        ran.stderr,
        "error: cannot borrow huge pages for the run: cannot reserve 2 MiB pages: 16 needed, 0 granted\n\
         help: memory is fragmented: echo 1 | sudo tee /proc/sys/vm/drop_caches /proc/sys/vm/compact_memory, \
         or ask for less, such as --size 512M\n"
    );
    assert_eq!(pool.pages(), ALL_TAKEN);
}

#[test]
fn a_pool_that_is_only_partly_filled_is_listed_where_nobody_named_it() {
    if !has_root() || !Path::new(POOL).exists() {
        return;
    }
    let (_directory, db) = results();
    let pool = StubbornPool::new();
    let document = pool.run("matrix --reserve --guest none --size 32M --blocks 1 --json", &db).json();
    assert_eq!(pool.pages(), ALL_TAKEN);
    let cells = cells(&document);
    assert_eq!(status(&cells, "native", "4k"), "ok");
    let row = &cells[&("native".to_owned(), "2m".to_owned())];
    assert_eq!(row["status"], "unavailable");
    assert_eq!(row["reason"], "cannot reserve 2 MiB pages: 16 needed, 0 granted");
}

fn results() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let db = directory.path().join("results.db");
    (directory, db)
}

fn matrix(db: &Path, arguments: &str) -> Ran {
    run(vmtax(&format!("matrix {arguments} --db")).arg(db))
}

/// Rows by guest and host.
fn cells(document: &Value) -> BTreeMap<(String, String), Value> {
    let name = |value: &Value| value.as_str().unwrap_or("native").to_owned();
    let rows = document["cells"].as_array().unwrap().iter();
    rows.map(|row| ((name(&row["guest"]), name(&row["host"])), row.clone())).collect()
}

fn status(cells: &BTreeMap<(String, String), Value>, guest: &str, host: &str) -> String {
    cells[&(guest.to_owned(), host.to_owned())]["status"].as_str().unwrap().to_owned()
}
