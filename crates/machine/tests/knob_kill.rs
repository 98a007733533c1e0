//! kill -9 at random moments of a lease, and the pool and a switch are back each time.
//!
//! Two tiers: a tree of plain files, everywhere; and the real 2 MiB pool with pages mapped and the THP mode, for root. The program is its
//! own victim and its own guardian, so it has a `main` and no test harness.
#![allow(clippy::unwrap_used, reason = "a test, which clippy cannot see without a harness")]

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    ptr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, kill_process_group, setrlimit};
use vmtax_core::units::{MIB, PageSize};
use vmtax_machine::knob::{Contention, Host, Kernel, Lease, Pool, Switch, Sysfs, Want, guardian, restore};

const PAGES: u64 = 16;
const ROUNDS: u64 = 10;
const WANT: Want = Want { page: PageSize::Large, pages: PAGES };
const BUSY: Contention = Contention::WaitAtMost(Duration::from_secs(60));
/// Far more than a guardian takes; a shared machine may leave it without a CPU for a while.
const BOUND: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    if let Some(code) = guardian::dispatch() {
        return code;
    }
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [role, how, tier, state, root] = &arguments[..]
        && role == "victim"
    {
        return victim(how, &Tier::named(tier, Path::new(state), Path::new(root)));
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    make_tree(&root);
    run(&Tier::named("tree", &directory.path().join("tree-state"), &root));
    match why_no_real_pool() {
        None => {
            // Victims have a state of their own; this lease keeps every other vmtax off the pool meanwhile.
            let lease = Lease::acquire(Host::default(), BUSY).unwrap();
            run(&Tier::named("pool", &directory.path().join("pool-state"), Path::new("/")));
            lease.release().unwrap();
        }
        Some(reason) => {
            println!("skipped: {reason}");
            if env::var("VMTAX_REQUIRE").is_ok_and(|required| required.split(',').any(|tier| tier == "pool")) {
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn run(tier: &Tier) {
    a_clean_release_leaves_no_process_behind(tier);
    the_guardian_inherits_nothing_and_has_its_own_session(tier);
    the_pool_is_back_after_any_signal_to_the_group(tier);
    the_pool_is_back_after_sigkill_at_random_moments(tier);
    the_next_start_puts_back_what_both_killed_left(tier);
}

fn a_clean_release_leaves_no_process_behind(tier: &Tier) {
    let before = tier.reset();
    let mut victim = tier.spawn("once");
    let guardian = guardian_of(&mut victim);
    assert!(victim.0.wait().unwrap().success());
    assert!(!Path::new(&format!("/proc/{guardian}")).exists());
    assert_eq!(tier.now(), before);
    assert!(!tier.host.state.join("journal").exists());
    println!("{}: a clean release leaves no process behind: ok", tier.name);
}

fn the_guardian_inherits_nothing_and_has_its_own_session(tier: &Tier) {
    tier.reset();
    let leak = tempfile::NamedTempFile::new().unwrap();
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    let mut victim = tier.spawn("hold");
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::CLOEXEC).unwrap();
    let guardian = guardian_of(&mut victim);
    assert!(descriptors(victim.0.id()).contains(&leak.path().to_owned()), "the victim has inherited it");
    let mut held = descriptors(guardian);
    held.retain(|path| path != Path::new("/dev/null") && *path != tier.host.state.join("lock"));
    assert!(matches!(&held[..], [socket] if socket.to_string_lossy().starts_with("socket:")), "{held:?}");
    let stat = fs::read_to_string(format!("/proc/{guardian}/stat")).unwrap();
    let session: u32 = stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap().parse().unwrap();
    assert_eq!(session, guardian);
    victim.kill();
    tier.wait_until_free();
    println!("{}: the guardian inherits nothing and has its own session: ok", tier.name);
}

fn the_pool_is_back_after_any_signal_to_the_group(tier: &Tier) {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::ABORT] {
        let before = tier.reset();
        let mut victim = tier.spawn("hold");
        guardian_of(&mut victim);
        tier.wait_until_borrowed(before.pages);
        kill_process_group(pid(victim.0.id()), signal).unwrap();
        victim.0.wait().unwrap();
        tier.wait_until_free();
        assert_eq!(tier.now(), before, "{signal:?}");
    }
    println!("{}: the pool is back after any signal to the group: ok", tier.name);
}

fn the_pool_is_back_after_sigkill_at_random_moments(tier: &Tier) {
    let (mut borrowed, mut slowest) = (0, Duration::ZERO);
    for seed in 0..ROUNDS {
        let before = tier.reset();
        let mut victim = tier.spawn("cycle");
        // The first guardian is there: from here the victim borrows, holds, releases, and begins again.
        guardian_of(&mut victim);
        thread::sleep(Duration::from_micros(random(seed) % 100_000));
        borrowed += u32::from(tier.now() != before);
        victim.kill();
        let killed = Instant::now();
        tier.wait_until_free();
        slowest = slowest.max(killed.elapsed());
        assert_eq!(tier.now(), before, "seed {seed}");
        assert!(!tier.host.state.join("journal").exists(), "seed {seed}");
    }
    println!(
        "{}: the pool is back after SIGKILL at {ROUNDS} random moments: ok (borrowed at {borrowed} of them; slowest {:.0} ms)",
        tier.name,
        slowest.as_secs_f64() * 1e3
    );
}

fn the_next_start_puts_back_what_both_killed_left(tier: &Tier) {
    let mut put_back = 0;
    for seed in 0..ROUNDS {
        let before = tier.reset();
        let mut victim = tier.spawn("hold");
        let guardian = guardian_of(&mut victim);
        thread::sleep(Duration::from_micros(random(seed) % 30_000));
        kill_process(pid(guardian), Signal::KILL).unwrap();
        victim.kill();
        let left = tier.now();
        let outcomes = restore(&tier.host, Contention::Refuse).unwrap();
        assert_eq!(tier.now(), before, "seed {seed}: {outcomes:?}");
        if left != before {
            put_back += 1;
            let (pages, before) = (left.pages, before.pages);
            let said = format!("pool of 2 MiB pages: {pages} put back to {before}");
            assert!(pages == before || outcomes.iter().any(|o| o.to_string() == said), "{outcomes:?}");
        }
        assert!(!tier.host.state.join("journal").exists(), "seed {seed}");
        assert_eq!(restore(&tier.host, Contention::Refuse).unwrap(), []);
    }
    println!(
        "{}: the next start puts back what both killed left: ok ({put_back} of {ROUNDS} had left pages)",
        tier.name
    );
}

/// Borrows and, of a real pool, maps: `once` and ends, in a `cycle`, or to `hold`. Says its guardian's pid each time.
fn victim(how: &str, tier: &Tier) -> ExitCode {
    let no_core = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, no_core).unwrap();
    loop {
        let mut lease = Lease::acquire(tier.host.clone(), BUSY).unwrap();
        println!("{}", lease.guardian_pid().unwrap());
        io::stdout().flush().unwrap();
        lease.borrow_pool(WANT).unwrap();
        for word in tier.words {
            lease.turn(tier.switch, word).unwrap();
        }
        let mapping = tier.is_real.then(Mapping::new);
        match how {
            "hold" => thread::sleep(Duration::from_secs(60)),
            _ => thread::sleep(Duration::from_millis(5)),
        }
        drop(mapping);
        lease.release().unwrap();
        if how == "once" {
            return ExitCode::SUCCESS;
        }
    }
}

/// What a victim changes.
#[derive(Debug, PartialEq, Eq)]
struct Standing {
    pages: u64,
    word: String,
}

struct Tier {
    name: &'static str,
    is_real: bool,
    root: PathBuf,
    host: Host,
    switch: Switch,
    words: [&'static str; 2],
}

impl Tier {
    fn named(name: &str, state: &Path, root: &Path) -> Tier {
        let host = Host::at(state, root.join("sys"), root.join("proc"));
        match name {
            "pool" => {
                let (switch, words) = (Switch::Thp, ["never", "always"]);
                Tier { name: "pool", is_real: true, root: root.to_owned(), host, switch, words }
            }
            "tree" => {
                let host = Host { kernel: Arc::new(PlainTree), ..host };
                let (switch, words) = (Switch::Ksm, ["1", "2"]);
                Tier { name: "tree", is_real: false, root: root.to_owned(), host, switch, words }
            }
            other => panic!("{other} is no tier"),
        }
    }

    fn spawn(&self, how: &str) -> Victim {
        Command::new("/proc/self/exe")
            .args(["victim", how, self.name])
            .args([&self.host.state, &self.root])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map(Victim)
            .unwrap()
    }

    /// The pool before a round, which begins with the same tree each time.
    fn reset(&self) -> Standing {
        if !self.is_real {
            make_tree(&self.root);
        }
        self.now()
    }

    fn now(&self) -> Standing {
        Standing { pages: self.persistent(), word: self.switch.read(&self.host).unwrap() }
    }

    fn persistent(&self) -> u64 {
        Pool::read(&self.host, PageSize::Large).unwrap().persistent()
    }

    fn wait_until_borrowed(&self, before: u64) {
        let start = Instant::now();
        while self.persistent() == before {
            assert!(start.elapsed() < BOUND, "nothing borrowed");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Until the guardian is done: it holds the lock as long as it lives. Not by a lease, which would restore itself.
    fn wait_until_free(&self) {
        let lock = fs::File::open(self.host.state.join("lock")).unwrap();
        let start = Instant::now();
        while lock.try_lock().is_err() {
            assert!(start.elapsed() < BOUND, "the guardian is not done");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Files that follow a write as a pool with enough memory does. All values of a file have equally many digits: a write
/// replaces the file's whole text at once, with no moment at which it is empty.
#[derive(Debug)]
struct PlainTree;

impl Kernel for PlainTree {
    fn read(&self, path: &Path) -> io::Result<String> {
        Sysfs.read(path)
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        // Slow as a real pool is, so that a kill can come between write and record. The pages come after their number:
        // a victim killed between the two leaves what the guardian must judge.
        Sysfs.write(path, text)?;
        thread::sleep(Duration::from_millis(5));
        if path.ends_with("run") {
            return Ok(());
        }
        Sysfs.write(&path.with_file_name("free_hugepages"), text)
    }
}

fn make_tree(root: &Path) {
    let pool = root.join("sys/kernel/mm/hugepages/hugepages-2048kB");
    let random = root.join("proc/sys/kernel/random");
    fs::create_dir_all(&pool).unwrap();
    let ksm = root.join("sys/kernel/mm/ksm");
    fs::create_dir_all(&random).unwrap();
    fs::create_dir_all(&ksm).unwrap();
    fs::write(ksm.join("run"), "0\n").unwrap();
    for (name, pages) in [("nr_hugepages", 10), ("free_hugepages", 10), ("resv_hugepages", 0), ("surplus_hugepages", 0)]
    {
        fs::write(pool.join(name), format!("{pages}\n")).unwrap();
    }
    fs::write(random.join("boot_id"), "boot-a\n").unwrap();
    fs::write(root.join("proc/meminfo"), fs::read("/proc/meminfo").unwrap()).unwrap();
}

fn why_no_real_pool() -> Option<String> {
    let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    if !rustix::process::geteuid().is_root() {
        return Some("not root, so the 2 MiB pool cannot be changed".to_owned());
    }
    fs::OpenOptions::new().write(true).open(path).err().map(|e| format!("{path}: {e}"))
}

/// `PAGES` touched 2 MiB pages of the pool.
struct Mapping(*mut u8);

const MAPPED_BYTES: usize = (PAGES * 2 * MIB) as usize;

impl Mapping {
    fn new() -> Mapping {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB;
        // SAFETY: no address is asked for, so no memory of this process is replaced.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), MAPPED_BYTES, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let start = start.expect("the pages were borrowed").cast::<u8>();
        for page in 0..PAGES as usize {
            // SAFETY: within the mapping just made, which nobody else knows.
            unsafe { start.add(page * 2 * MIB as usize).write_volatile(1) };
        }
        Mapping(start)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, whole, and no reference into it exists.
        unsafe { rustix::mm::munmap(self.0.cast(), MAPPED_BYTES) }.unwrap();
    }
}

/// A victim, which does not outlive the test, failed or not.
struct Victim(Child);

impl Victim {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The first line a victim says.
fn guardian_of(victim: &mut Victim) -> u32 {
    let stdout = victim.0.stdout.as_mut().unwrap();
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    line.trim().parse().unwrap()
}

fn descriptors(process: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    // A knob's file may be closed again before it is looked at.
    entries.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok()).collect()
}

fn pid(raw: u32) -> Pid {
    Pid::from_raw(raw.try_into().unwrap()).unwrap()
}

/// splitmix64 (Steele, Lea, Flood 2014): the first number after `seed`.
fn random(seed: u64) -> u64 {
    let mut z = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
