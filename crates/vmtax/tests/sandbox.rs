//! The emulated host: its KVM is real, in both ways of translating, and what a command does in it is seen outside.
#![allow(clippy::unwrap_used, reason = "a test, whose helpers clippy takes for the program")]

mod host;

use host::{Ran, has, vmtax};

/// Runs a command in it; none without QEMU or a kernel.
fn sandbox(arguments: &str) -> Option<Ran> {
    let kernel = Ran::of(vmtax("image kernel").output().unwrap());
    let qemu = std::process::Command::new("qemu-system-x86_64").arg("--version").output();
    let obstacle = qemu.err().map(|e| format!("qemu-system-x86_64: {e}"));
    let obstacle = obstacle.or((kernel.code != Some(0)).then_some(kernel.stderr));
    has("sandbox", obstacle).then(|| Ran::of(vmtax(&format!("sandbox {arguments}")).output().unwrap()))
}

/// One block of a matrix, and what KVM mapped of 4 MiB in pages of 4 KiB and of 2 MiB by guest leaf and backing.
fn check(append: &str, kvm: &str, expected: [(&str, &str, bool); 3]) {
    let command = "matrix --size 4M --blocks 1 --guest 4k,2m --host 4k,2m --reserve --json";
    let Some(ran) = sandbox(&format!("{append} -- {command}")) else { return };
    let seen = ran.json();
    assert_eq!(seen["host"]["emulated"], true);
    assert_eq!(seen["host"]["kvm"]["kind"], kvm);
    let cells = seen["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 6);
    assert!(cells.iter().all(|cell| cell["status"] == "ok"), "{seen}");
    for (guest, host, is_large) in expected {
        let cell = cells.iter().find(|cell| cell["guest"] == guest && cell["host"] == host).unwrap();
        let pages = cell["evidence"]["pages_2m"].as_u64().unwrap();
        assert_eq!(pages > 0, is_large, "{guest} on {host}: {cell}");
    }
}

#[test]
fn nested_paging_maps_large_pages_wherever_the_host_has_them() {
    check("", "amd_npt", [("4k", "4k", false), ("4k", "2m", true), ("2m", "2m", true)]);
}

#[test]
fn shadow_paging_maps_large_pages_only_where_both_have_them() {
    check("--append kvm_amd.npt=0", "amd_shadow", [("4k", "4k", false), ("4k", "2m", false), ("2m", "2m", true)]);
}

#[test]
fn what_a_command_says_and_how_it_ends_is_passed_on() {
    let Some(ran) = sandbox("--memory 1G -- matrix --size 3") else { return };
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("\nerror: --size 3 B is no multiple of 2 MiB"), "{ran:?}");
}

const PLAN: &str = r#"
[factors]
venue = ["microvm"]
nested_paging = [true, false]
[[workload]]
probe = "chase"
size = "4M"
[replication]
blocks = 2
"#;

#[test]
fn a_plan_turns_nested_paging_off_and_on_and_its_run_is_kept_here() {
    let directory = tempfile::tempdir().unwrap();
    let (plan, db) = (directory.path().join("plan.toml"), directory.path().join("results.db"));
    std::fs::write(&plan, PLAN).unwrap();
    let Some(ran) = sandbox(&format!("-- run {} --db {}", plan.display(), db.display())) else { return };
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("\n  nested paging: "), "{ran:?}");
    let shown = Ran::of(vmtax("show --json --db").arg(&db).output().unwrap()).json();
    let trials = shown["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2 * 3, "{shown}");
    for trial in trials {
        let is_on = trial["cell"].as_str().unwrap().contains("nested_paging=on");
        let evidence = &trial["outcome"]["evidence"];
        assert_eq!(evidence["knob.nested_paging"], if is_on { "Y" } else { "N" }, "{trial}");
    }
}

#[test]
fn a_slip_is_answered_before_anything_boots() {
    let ran = Ran::of(vmtax("sandbox --qemu nowhere -- matirx").output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("a similar subcommand exists: 'matrix'"), "{ran:?}");
    assert!(ran.stderr.contains("Usage: vmtax "), "{ran:?}");
}
