//! The venue `guest` in plans: the same work natively, in the micro-VM and in a Linux guest, with evidence from both sides.
#![allow(clippy::unwrap_used, reason = "a test, whose helpers clippy takes for the program")]

mod host;

use std::{fs, path::Path, process::Command};

use host::{Ran, has, vmtax};
use serde_json::Value;
use tempfile::TempDir;

/// A plan in a file, and a results file beside it; none without QEMU or a kernel.
fn plan(text: &str) -> Option<TempDir> {
    let kernel = Ran::of(vmtax("image kernel").output().unwrap());
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
    let obstacle = qemu.err().map(|e| format!("qemu-system-x86_64: {e}"));
    let obstacle = obstacle.or((kernel.code != Some(0)).then_some(kernel.stderr));
    has("qemu", obstacle).then(|| {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("plan.toml"), text).unwrap();
        place
    })
}

fn run(place: &Path) -> Ran {
    let mut command = vmtax("run plan.toml --db results.db");
    Ran::of(command.env("XDG_RUNTIME_DIR", place).current_dir(place).output().unwrap())
}

fn shown(place: &Path) -> Value {
    Ran::of(vmtax("show --json --db results.db").current_dir(place).output().unwrap()).json()
}

/// What the good trials of a cell found.
fn findings<'r>(run: &'r Value, cell: &str) -> Vec<&'r Value> {
    let trials = run["trials"].as_array().unwrap().iter();
    trials.filter(|trial| trial["cell"] == cell).map(|trial| &trial["outcome"]).collect()
}

#[test]
fn one_workload_in_three_venues_has_its_proof_in_each() {
    let Some(place) = plan(
        r#"
[factors]
venue = ["native", "guest"]
guest = ["4k", "2m"]
accel = ["tcg"]
[[workload]]
probe = "chase"
size = "8M"
vcpus = 2
[replication]
blocks = 1
"#,
    ) else {
        return;
    };
    let ran = run(place.path());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains(" emulated"), "{ran:?}");
    let shown = shown(place.path());
    for (pages, kb) in [("4k", "4"), ("2m", "2048")] {
        let found = findings(&shown, &format!("chase venue=guest guest={pages} accel=tcg"));
        assert_eq!(found.len(), 1, "{shown}");
        let evidence = &found[0]["evidence"];
        assert!(found[0]["metrics"][0]["value"].as_f64().unwrap() > 0.0);
        assert_eq!(evidence["guest.smaps.kernel_page_kb"], kb, "{evidence}");
        assert_eq!((&evidence["guest.cpus"], &evidence["qemu.accel"]), (&"2".into(), &"tcg".into()), "{evidence}");
        assert_eq!(evidence["qemu.ram.kernel_page_kb"], "4");
        assert_eq!(evidence["qemu.ram.thp_coverage"], "0.0000");
        assert!(found[0]["caveats"][0].as_str().unwrap().starts_with("emulated: "), "{found:?}");
    }
    assert!(findings(&shown, "chase venue=native")[0]["evidence"]["qemu.accel"].is_null());
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("guest")), "{left:?}");
}

#[test]
fn touch_and_walk_run_in_a_guest_as_they_are() {
    let Some(place) = plan(
        r#"
[factors]
venue = ["guest"]
accel = ["tcg"]
[[workload]]
probe = "touch"
size = "8M"
[[workload]]
probe = "walk"
size = "8M"
stride = "4K"
passes = 2
[replication]
blocks = 1
"#,
    ) else {
        return;
    };
    let ran = run(place.path());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = shown(place.path());
    let touched = findings(&shown, "touch venue=guest accel=tcg")[0];
    assert!(touched["evidence"]["guest.host.minor_faults"].as_str().unwrap().parse::<u64>().unwrap() >= 2048);
    let walked = findings(&shown, "walk venue=guest accel=tcg")[0];
    assert_eq!(walked["evidence"]["guest.walk.passes"], "2", "{walked}");
}

#[test]
fn what_cannot_be_a_guest_is_left_out_with_the_way_out() {
    let Some(place) = plan(
        r#"
[factors]
venue = ["native", "guest"]
qemu = ["qemu-of-nobody"]
[[workload]]
probe = "chase"
size = "4M"
[replication]
blocks = 1
"#,
    ) else {
        return;
    };
    let ran = run(place.path());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("there is no qemu-of-nobody; sudo apt-get install qemu-system-x86"), "{ran:?}");
    assert!(said.contains("qemu = [\"FILE\"] in the plan"), "{ran:?}");
}

#[test]
fn what_a_system_does_for_programs_is_measured_inside_a_guest_as_natively() {
    let text = "[factors]\nvenue = [\"native\", \"guest\"]\naccel = [\"tcg\"]\n[[workload]]\nprobe = \"spawn\"\nseconds = 1\n\
                [replication]\nblocks = 1\n";
    let Some(place) = plan(text) else { return };
    let ran = run(place.path());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = shown(place.path());
    for (cell, prefix) in [("spawn venue=native", ""), ("spawn venue=guest accel=tcg", "guest.")] {
        let found = findings(&shown, cell);
        assert_eq!(found.len(), 1, "{shown}");
        let evidence = &found[0]["evidence"];
        let operations: u64 = evidence[format!("{prefix}os.operations")].as_str().unwrap().parse().unwrap();
        assert!(operations > 0 && found[0]["metrics"][0]["value"].as_f64().unwrap() > 0.0, "{evidence}");
    }
}
