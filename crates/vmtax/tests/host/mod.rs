//! What the tests of the command share: how they run it, and what they need of the host.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long other tests on this host may hold it.
const PATIENCE: Duration = Duration::from_secs(120);

/// What came of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The standard output of a success.
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    pub fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.ok()).unwrap()
    }
}

pub fn vmtax(arguments: &str) -> Command {
    under(&[], Path::new(env!("CARGO_BIN_EXE_vmtax")), arguments)
}

/// `vmtax` behind other commands, such as `unshare`.
pub fn under(prefix: &[&str], program: &Path, arguments: &str) -> Command {
    let mut words = prefix.iter().map(OsStr::new).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(arguments.split_whitespace()).stdin(Stdio::null());
    command
}

/// Runs it to its end; again while another test holds the host.
pub fn run(command: &mut Command) -> Ran {
    let start = Instant::now();
    loop {
        let ran = Ran::of(command.output().unwrap());
        if !ran.stderr.contains("another vmtax holds this host") || start.elapsed() > PATIENCE {
            return ran;
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// Whether a tier can be tested. If not it says so, and that is a failure where `VMTAX_REQUIRE` lists the tier.
pub fn has(tier: &str, obstacle: Option<String>) -> bool {
    let Some(obstacle) = obstacle else { return true };
    println!("skipped: {obstacle}");
    let required = env::var("VMTAX_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name == tier), "VMTAX_REQUIRE lists {tier}: {obstacle}");
    false
}

/// Virtual machines can be made.
pub fn has_kvm() -> bool {
    let opened = fs::File::options().read(true).write(true).open("/dev/kvm");
    has("kvm", opened.err().map(|e| format!("/dev/kvm: {e}")))
}

/// The pool of 2 MiB pages can be changed.
pub fn has_pool() -> bool {
    let opened = fs::File::options().write(true).open(POOL);
    has("pool", opened.err().map(|e| format!("{POOL}: {e}")))
}

/// Mounts can be made that nobody else sees, and other users become.
pub fn has_root() -> bool {
    let tried = Command::new("unshare").args(["--mount", "setpriv", "--reuid=65534", "true"]).output();
    let obstacle = match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("unshare and setpriv: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(e) => Some(format!("unshare: {e}")),
    };
    has("root", obstacle)
}

pub const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

/// Pages of the pool.
pub fn pool() -> u64 {
    fs::read_to_string(POOL).unwrap().trim().parse().unwrap()
}

/// A directory that every user can enter, with a copy of `vmtax` that every user can run: the tree may be private.
pub fn public_copy() -> (TempDir, PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let copy = directory.path().join("vmtax");
    fs::copy(env!("CARGO_BIN_EXE_vmtax"), &copy).unwrap();
    (directory, copy)
}

/// Another user than root, without root's groups.
pub const AS_NOBODY: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// splitmix64 (Steele, Lea, Flood 2014): the first number after `seed`.
pub fn random(seed: u64) -> u64 {
    let mut z = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
