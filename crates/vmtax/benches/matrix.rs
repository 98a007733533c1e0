//! The main job as a user runs it: how many blocks of how many cells in its budget, and what it takes beside the arena.
//! Wanted: at least 5 blocks in at most 60 s; under 64 MiB and 1/256 of the arena. Printed, not asserted.

use std::{env, error::Error, fs, mem::MaybeUninit, process::Command, time::Instant};

use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let results = env::temp_dir().join(format!("vmtax-bench-{}.db", std::process::id()));
    let mut vmtax = Command::new(env!("CARGO_BIN_EXE_vmtax"));
    vmtax.args(["matrix", "--json", "--db"]).arg(&results);
    if rustix::process::geteuid().is_root() {
        vmtax.arg("--reserve");
    }
    let begun = Instant::now();
    let output = vmtax.output()?;
    let seconds = begun.elapsed().as_secs_f64();
    fs::remove_file(&results)?;
    let run: Value = serde_json::from_slice(&output.stdout)?;
    let cells = run["cells"].as_array().map_or(&[][..], Vec::as_slice);
    let measured = cells.iter().filter(|cell| cell["status"] == "ok").count();
    let arena = run["probe"]["bytes"].as_u64().unwrap_or(0);
    // At most one anonymous arena is mapped at a time; hugetlb pages do not count as resident.
    let beside = peak_bytes_of_children().saturating_sub(arena);
    println!("matrix: {} blocks of {measured} cells in {seconds:.1} s", run["blocks"]);
    println!(
        "matrix: {:.1} MiB beside an arena of {} MiB; 64 MiB and 1/256 of it are {:.1} MiB",
        beside as f64 / 1048576.0,
        arena >> 20,
        64.0 + arena as f64 / 256.0 / 1048576.0,
    );
    Ok(())
}

/// The largest resident set any child had, in bytes.
fn peak_bytes_of_children() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: an all-zero rusage is a valid one, and getrusage fills it in.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_maxrss as u64 * 1024
}
