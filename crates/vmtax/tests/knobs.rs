//! Plans that turn knobs of this host: what they record, what they say, and that the host is back whatever ends them.
#![allow(clippy::unwrap_used, reason = "a test, whose helpers clippy takes for the program")]

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use host::{Ran, has_pool, has_root, pool, random, run, under, vmtax};
use rusqlite::{Connection, OpenFlags};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use vmtax_core::{setting::Backing, units::Bytes};
use vmtax_machine::backing::Memory;

mod host;

const KILLS: u64 = 10;
/// Far more than is needed; a shared machine may leave a process without a CPU for a while.
const BOUND: Duration = Duration::from_secs(60);

const KNOBS: &str = "[factors]\nhost = [\"4k\", \"2m\"]\nthp = [\"always\", \"never\"]\npool_2m = [4, 6]\n\
                     [[workload]]\nprobe = \"chase\"\nsize = \"8M\"\n[replication]\nseed = 11\n";
/// Two levels of each knob, two backings, and the twin.
const CELLS: usize = 9;

/// One test at a time: there is one host.
fn the_host() -> Option<MutexGuard<'static, ()>> {
    static HOST: Mutex<()> = Mutex::new(());
    has_pool().then(|| HOST.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A directory with a plan of so many blocks.
struct Place {
    directory: TempDir,
    db: PathBuf,
    plan: String,
}

impl Place {
    fn new(text: &str, blocks: u32) -> Place {
        let directory = tempfile::tempdir().unwrap();
        let plan = directory.path().join("plan.toml");
        fs::write(&plan, text.replace("[replication]\n", &format!("[replication]\nblocks = {blocks}\n"))).unwrap();
        let db = directory.path().join("results.db");
        Place { plan: plan.display().to_string(), directory, db }
    }

    fn run(&self, arguments: &str) -> Ran {
        run(vmtax(arguments).arg("--db").arg(&self.db))
    }

    fn read<T: rusqlite::types::FromSql>(&self, query: &str) -> Vec<T> {
        let Ok(file) = Connection::open_with_flags(&self.db, OpenFlags::SQLITE_OPEN_READ_ONLY) else {
            return Vec::new();
        };
        let Ok(mut query) = file.prepare(query) else { return Vec::new() };
        query.query_map([], |row| row.get(0)).map_or(Vec::new(), |rows| rows.flatten().collect())
    }

    fn id(&self) -> Option<String> {
        self.read("SELECT id FROM experiments").pop()
    }

    fn is_whole(&self) {
        if self.db.exists() {
            // Not read-only: a commit cut short by a kill must be undone first.
            let file = Connection::open(&self.db).unwrap();
            let verdict: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
            assert_eq!(verdict, "ok");
        }
    }

    /// Every trial of these blocks once, and all of them successes.
    fn has_every_trial_once(&self, blocks: u32) {
        let trials: Vec<String> = self.read(
            "SELECT block || ' ' || place || ' ' || cell FROM experiment_trials WHERE status = 'ok' ORDER BY block, place",
        );
        assert_eq!(trials.len(), CELLS * blocks as usize, "{trials:#?}");
        let mut cells: Vec<String> = self.read("SELECT block || ' ' || cell FROM experiment_trials");
        cells.sort();
        cells.dedup();
        assert_eq!(cells.len(), CELLS * blocks as usize);
    }
}

/// A run that does not outlive its test.
struct Run(Child);

impl Run {
    /// Begins one, again while another test holds the host, and returns when its guardian is there.
    fn start(place: &Place) -> Run {
        let begun = Instant::now();
        let spawn = || {
            let mut command = vmtax(&format!("run {}", place.plan));
            Run(command.arg("--db").arg(&place.db).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        };
        let mut run = spawn();
        while run.guardian().is_none() {
            assert!(begun.elapsed() < 4 * BOUND, "no guardian");
            if run.0.try_wait().unwrap().is_some() {
                let ran = run.end();
                assert!(ran.stderr.contains("another vmtax holds this host"), "{ran:?}");
                thread::sleep(Duration::from_millis(100));
                run = spawn();
            }
            thread::sleep(Duration::from_millis(1));
        }
        run
    }

    fn guardian(&self) -> Option<Pid> {
        let id = self.0.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
    }

    fn kill(&self) {
        kill_process(Pid::from_child(&self.0), Signal::KILL).unwrap();
    }

    /// Reads what it says until it ends.
    fn end(&mut self) -> Ran {
        let read = |stream: Option<&mut dyn Read>| {
            let mut text = String::new();
            stream.map(|stream| stream.read_to_string(&mut text).unwrap());
            text
        };
        let stdout = read(self.0.stdout.as_mut().map(|stream| stream as &mut dyn Read));
        let stderr = read(self.0.stderr.as_mut().map(|stream| stream as &mut dyn Read));
        Ran { code: self.0.wait().unwrap().code(), stdout, stderr }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Everything these plans may change.
fn settings() -> Vec<String> {
    let thp = Path::new("/sys/kernel/mm/transparent_hugepage");
    let sizes = fs::read_dir(thp).unwrap().flatten().map(|entry| entry.path().join("enabled"));
    let mut files: Vec<PathBuf> = sizes.chain([thp.join("enabled"), PathBuf::from(host::POOL)]).collect();
    files.sort();
    files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect()
}

/// The same, while no test of another program holds the host.
fn settings_of_a_free_host() -> Vec<String> {
    let start = Instant::now();
    while !is_free() {
        assert!(start.elapsed() < 4 * BOUND, "the host is held");
        thread::sleep(Duration::from_millis(20));
    }
    settings()
}

fn is_free() -> bool {
    !fs::File::open("/run/vmtax/lock").is_ok_and(|lock| lock.try_lock_shared().is_err())
}

/// The host is as it was. Another program's test may have begun to change it meanwhile: its end is waited for.
fn is_back(before: &[String], what: &str) {
    if settings() != before {
        wait_until(|| is_free() && settings() == before, what);
    }
}

/// Paragraphs in one line, wherever they were broken.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn wait_until(is_so: impl Fn() -> bool, what: &str) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < BOUND, "{what}: not within {BOUND:?}");
        thread::sleep(Duration::from_millis(3));
    }
}

#[derive(Debug, Clone, Copy)]
enum Victim {
    Vmtax,
    Guardian,
    Both,
}

#[test]
fn thirty_kills_at_random_moments_leave_the_host_as_it_was_and_every_trial_once() {
    const BLOCKS: u32 = 2;
    let Some(_host) = the_host() else { return };
    let (begun, mut changed, mut interrupted) = (Instant::now(), 0, 0);
    let whole = Place::new(KNOBS, BLOCKS);
    let (timer, before) = (Instant::now(), settings_of_a_free_host());
    whole.run(&format!("run {}", whole.plan)).ok();
    let longest = timer.elapsed();
    for seed in 0..3 * KILLS {
        let victim = [Victim::Vmtax, Victim::Guardian, Victim::Both][(seed % 3) as usize];
        let place = Place::new(KNOBS, BLOCKS);
        settings_of_a_free_host();
        is_back(&before, "nobody else has changed the host");
        let mut run = Run::start(&place);
        let guardian = run.guardian().unwrap();
        thread::sleep(Duration::from_micros(random(seed) % longest.as_micros() as u64));
        changed += u32::from(settings() != before);
        match victim {
            Victim::Vmtax => {
                run.kill();
                run.0.wait().unwrap();
                is_back(&before, "the guardian has put the host back");
            }
            Victim::Guardian => {
                // It may have ended with its run.
                let _ = kill_process(guardian, Signal::KILL);
                let ran = run.end();
                // A guardian that dies before it stands is one without which nothing is changed.
                let is_refused = ran.code == Some(2) && ran.stderr.contains("the guardian did not start");
                assert!(ran.code == Some(0) || is_refused, "{ran:?}");
                is_back(&before, &format!("seed {seed}"));
            }
            Victim::Both => {
                let _ = kill_process(guardian, Signal::KILL);
                run.kill();
                run.0.wait().unwrap();
                if seed % 2 == 0 {
                    host::run(&mut vmtax("restore")).ok();
                    is_back(&before, &format!("seed {seed}"));
                }
            }
        }
        place.is_whole();
        let kept = place.read::<i64>("SELECT count(*) FROM experiment_trials").pop().unwrap_or(0);
        interrupted += u32::from(kept > 0 && (kept as usize) < CELLS * BLOCKS as usize);
        let again = place.id().map_or(format!("run {}", place.plan), |id| format!("run --resume {id}"));
        place.run(&again).ok();
        is_back(&before, &format!("seed {seed}"));
        place.has_every_trial_once(BLOCKS);
    }
    println!(
        "{} kills, {changed} of them while the host was changed, {interrupted} between trials of a run, in {:.1} s",
        3 * KILLS,
        begun.elapsed().as_secs_f64()
    );
    assert!(changed > 0 && interrupted > 0, "no kill came at a moment that matters");
    assert!(!Path::new("/run/vmtax/journal").exists());
}

#[test]
fn knobs_are_evidence_of_every_trial_and_the_run_says_what_it_changed_and_that_it_is_back() {
    let Some(_host) = the_host() else { return };
    let (place, before) = (Place::new(KNOBS, 2), settings_of_a_free_host());
    let ran = place.run(&format!("run {} --json", place.plan));
    let said = ran.stderr.clone();
    let lines = ran.ok();
    for line in lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()) {
        let evidence = |name: &str| line["outcome"]["evidence"][name].as_str().unwrap().to_owned();
        let cell = line["cell"].as_str().unwrap();
        assert!(cell.contains(&format!("thp={} pool_2m={}", evidence("knob.thp"), evidence("knob.pool_2m"))), "{line}");
    }
    assert_eq!(lines.lines().count(), 2 * CELLS);
    is_back(&before, "the host is as it was");
    assert!(said.contains("Host settings changed for the run, and what became of them:\n"), "{said}");
    assert!(said.contains("  pool of 2 MiB pages: ") && said.contains("  transparent huge pages: "), "{said}");
    let dry = place.run_without_results(&format!("run {} --dry-run", place.plan));
    assert!(dry.contains("\nHost settings changed and put back\n- thp: always, never; now "), "{dry}");
    assert!(dry.lines().all(|line| line.chars().count() <= 80), "{dry}");
}

impl Place {
    fn run_without_results(&self, arguments: &str) -> String {
        run(&mut vmtax(arguments)).ok()
    }
}

#[test]
fn a_pool_that_has_pages_is_lowered_for_the_run_and_gets_them_back_also_after_sigkill() {
    let Some(_host) = the_host() else { return };
    let before = settings_of_a_free_host();
    let pages = pool();
    let back = Pages(pages);
    fs::write(host::POOL, (pages + 5).to_string()).unwrap();
    let text = KNOBS.replace("pool_2m = [4, 6]", "pool_2m = [0]").replace("\"4k\", \"2m\"", "\"4k\"");
    let place = Place::new(&text, 1);
    let said = place.run(&format!("run {}", place.plan)).stderr;
    assert!(said.contains(&format!("  pool of 2 MiB pages: 0 put back to {}\n", pages + 5)), "{said}");
    for victims in [1, 2] {
        let place = Place::new(&text, 100_000);
        let mut run = Run::start(&place);
        let guardian = run.guardian().unwrap();
        wait_until(|| pool() == 0, "the pool is lowered");
        if victims == 2 {
            kill_process(guardian, Signal::KILL).unwrap();
        }
        run.kill();
        run.0.wait().unwrap();
        if victims == 2 {
            host::run(&mut vmtax("restore")).ok();
        }
        wait_until(|| pool() == pages + 5, "the pool has its pages again");
    }
    drop(back);
    is_back(&before, "the host is as it was");
}

/// Pages that the pool goes back to.
struct Pages(u64);

impl Drop for Pages {
    fn drop(&mut self) {
        let _ = fs::write(host::POOL, self.0.to_string());
    }
}

#[test]
fn memory_on_one_size_of_transparent_page_is_proved_and_its_switches_are_put_back() {
    let Some(_host) = the_host() else { return };
    if !Path::new("/sys/kernel/mm/transparent_hugepage/hugepages-64kB").exists() {
        return println!("skipped: this kernel has no transparent pages of 64 KiB");
    }
    let text = KNOBS.replace("\"2m\"]", "\"thp-64k\", \"thp-8k\"]").replace("thp = [\"always\", \"never\"]\n", "");
    let (place, before) = (Place::new(&text.replace("pool_2m = [4, 6]\n", ""), 2), settings_of_a_free_host());
    let ran = place.run(&format!("run {} --json", place.plan));
    assert!(joined(&ran.stderr).contains("chase host=thp-8k: cannot turn transparent 8 KiB pages"), "{ran:?}");
    for line in ran.ok().lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()) {
        let evidence = &line["outcome"]["evidence"];
        if line["cell"] == "chase host=thp-64k" {
            let coverage: f64 = evidence["thp-64k.coverage"].as_str().unwrap().parse().unwrap();
            assert!(coverage > 0.5 && evidence["knob.thp-64k"] == "madvise", "{line}");
        } else {
            assert!(evidence.get("thp-64k.coverage").is_none() && evidence["smaps.thp_coverage"] == "0", "{line}");
        }
    }
    is_back(&before, "the host is as it was");
}

#[test]
fn pages_are_borrowed_for_the_run_and_given_back_and_without_that_the_remedy_is_named() {
    let Some(_host) = the_host() else { return };
    let text = KNOBS.replace("thp = [\"always\", \"never\"]\npool_2m = [4, 6]\n", "");
    let (place, before) = (Place::new(&text, 1), settings_of_a_free_host());
    if pool() == 0 {
        let ran = place.run(&format!("run {}", place.plan));
        assert!(
            joined(&ran.stderr).contains("4 pages of 2 MiB needed, 0 free; vmtax run --reserve (as root), or: "),
            "{ran:?}"
        );
        assert!(ran.stderr.ends_with("No host setting was changed.\n"), "{ran:?}");
    }
    let place = Place::new(&text, 1);
    let ran = place.run(&format!("run {} --reserve", place.plan));
    assert!(!ran.stderr.contains("not here"), "{ran:?}");
    assert!(pool() > 0 || ran.stderr.contains("  pool of 2 MiB pages: 4 put back to 0\n"), "{ran:?}");
    ran.ok();
    is_back(&before, "the host is as it was");
}

#[test]
fn pages_taken_by_somebody_else_fail_the_trials_that_lack_them_and_no_others() {
    let Some(_host) = the_host() else { return };
    let text = KNOBS.replace("pool_2m = [4, 6]", "pool_2m = [5]");
    let (place, before) = (Place::new(&text, 100_000), settings_of_a_free_host());
    let mut run = Run::start(&place);
    let failed = || place.read::<i64>("SELECT count(*) FROM experiment_trials WHERE status = 'failed'")[0];
    wait_until(|| place.read::<String>("SELECT cell FROM experiment_trials").len() > 10, "trials are made");
    // Free between two trials; the run itself may be about to take them.
    let begun = Instant::now();
    let taken = loop {
        assert!(begun.elapsed() < BOUND, "the pages were never free");
        match Memory::allocate(Backing::Huge2m, Bytes(6 << 20)) {
            Ok(memory) => break memory,
            Err(_) => thread::sleep(Duration::from_micros(200)),
        }
    };
    wait_until(|| failed() > 0, "a trial has failed");
    drop(taken);
    let made = || place.read::<i64>("SELECT count(*) FROM experiment_trials WHERE status = 'ok'")[0];
    let so_far = made();
    wait_until(|| made() > so_far + 10, "the run goes on");
    kill_process(Pid::from_child(&run.0), Signal::INT).unwrap();
    let ran = run.end();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    for outcome in place.read::<String>("SELECT cell || outcome FROM experiment_trials WHERE status = 'failed'") {
        let is_about_pages = outcome.contains("not enough of them free") || outcome.contains("pages with 2m");
        assert!(outcome.contains("host=2m") && is_about_pages, "{outcome}");
    }
    is_back(&before, "the host is as it was");
}

#[test]
fn a_state_directory_that_cannot_be_written_is_named_and_nothing_is_changed() {
    let Some(_host) = the_host().filter(|_| has_root()) else { return };
    let (place, before) = (Place::new(KNOBS, 1), settings_of_a_free_host());
    for (options, message, code) in [
        ("ro", "error: cannot set up the host for the run: not permitted to open /run/vmtax/lock", "exit code 2"),
        // One page, which the lock takes: none is left for the journal.
        ("size=4k", "cannot record a change in /run/vmtax/journal: No space left on device", "exit code 1"),
    ] {
        let script = format!(
            "mkdir -p /run/vmtax && mount -t tmpfs -o mode=755,{options} none /run/vmtax || exit 3\n\
             \"$1\" run \"$2\" --db \"$3\"; echo \"exit code $?\""
        );
        let db = place.directory.path().join(format!("{}.db", options.replace('=', "-")));
        let prefix = ["unshare", "--mount", "sh", "-c", &script, "-"];
        let mut command = under(&prefix, Path::new(env!("CARGO_BIN_EXE_vmtax")), &place.plan);
        let ran = run(command.arg(db));
        let all = joined(&(ran.stdout.clone() + &ran.stderr));
        assert!(all.contains(message), "{ran:?}");
        assert!(ran.stdout.ends_with(&format!("{code}\n")), "{ran:?}");
        is_back(&before, options);
    }
}

#[test]
fn a_disk_that_fills_ends_a_run_that_turns_knobs_with_the_host_put_back_and_its_results_kept() {
    let Some(_host) = the_host().filter(|_| has_root()) else { return };
    let (place, before) = (Place::new(KNOBS, 100_000), settings_of_a_free_host());
    let script = r#"mount -t tmpfs -o size=3m none "$1" || exit 3
        cd "$1"
        { sleep 1; cat /dev/zero > filling; } 2> /dev/null &
        "$2" run "$3" --db results.db
        echo "exit code $?"
        wait; rm filling
        "$2" show --db results.db"#;
    let mount = tempfile::tempdir().unwrap();
    let prefix = ["unshare", "--mount", "sh", "-c", script, "-", mount.path().to_str().unwrap()];
    let ran = run(&mut under(&prefix, Path::new(env!("CARGO_BIN_EXE_vmtax")), &place.plan));
    assert!(ran.stderr.contains("What was measured before the error is kept: vmtax show "), "{ran:?}");
    let broke = "error: the run broke off: cannot write results to results.db: no space left on the disk";
    assert!(ran.stderr.contains(broke), "{ran:?}");
    assert!(ran.stdout.starts_with("exit code 1\n") && ran.stdout.contains("chase: ns_per_access"), "{ran:?}");
    is_back(&before, "the host is as it was");
}
