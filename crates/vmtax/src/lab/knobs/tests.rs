use std::{fs, os::unix::fs::symlink};

use tempfile::TempDir;

use vmtax_core::factor::{Hardness, Level};

use super::{level::position, *};

/// A host of plain files.
fn host() -> (TempDir, Host) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let host = Host::at(root.join("run"), root.join("sys"), root.join("proc"));
    for (path, text) in [
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled", "always inherit madvise [never]"),
        ("sys/kernel/mm/ksm/run", "0"),
        ("sys/kernel/mm/ksm/pages_sharing", "0"),
        ("sys/module/kvm/parameters/nx_huge_pages", "N"),
        ("proc/cmdline", "root=/dev/vda quiet"),
    ] {
        file(&directory, path, text);
    }
    (directory, host)
}

fn file(directory: &TempDir, path: &str, text: &str) {
    let path = directory.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{text}\n")).unwrap();
}

fn plan(factors: &str) -> Plan {
    let text = format!(
        "[factors]\nvenue = [\"native\", \"microvm\"]\n{factors}\n[[workload]]\nprobe = \"chase\"\nsize = \"8M\"\n"
    );
    Plan::parse("plan.toml", &text).unwrap()
}

/// What becomes of each whole plot.
fn verdicts(host: &Host, factors: &str) -> Vec<(String, Option<Obstacle>)> {
    let plan = plan(factors);
    let mut verdicts = Vec::new();
    for cell in plan.cells() {
        let whole = cell.setting.stratum(Hardness::WholePlot);
        if verdicts.iter().all(|(known, _)| *known != whole.to_string()) {
            verdicts.push((whole.to_string(), obstacle(host, &whole)));
        }
    }
    verdicts
}

#[test]
fn every_level_of_every_knob_is_a_word_of_the_kernel_or_refused_with_a_reason() {
    let (directory, host) = host();
    let check = |factor: &str, level: Level, expected: Result<&str, &str>| {
        let got = position(&host, factor, level).map(|p| p.value.to_string()).map_err(|o| o.reason);
        assert_eq!(got.as_deref().map_err(String::as_str), expected, "{factor} = {level}");
    };
    check("thp", Level::Word("always"), Ok("always"));
    check("pool_2m", Level::Count(64), Ok("64"));
    check("pool_1g", Level::Count(0), Ok("0"));
    check("nested_paging", Level::Word("on"), Ok("Y"));
    check("nested_paging", Level::Word("off"), Ok("N"));
    check("nx_huge_pages", Level::Word("off"), Ok("N"));
    check("nx_huge_pages", Level::Word("force"), Ok("Y"));
    check("nx_huge_pages", Level::Word("auto"), Ok("N"));
    let vulnerability = "sys/devices/system/cpu/vulnerabilities/itlb_multihit";
    file(&directory, vulnerability, "Not affected");
    check("nx_huge_pages", Level::Word("auto"), Ok("N"));
    file(&directory, vulnerability, "KVM: Mitigation: Split huge pages");
    check("nx_huge_pages", Level::Word("auto"), Ok("Y"));
    file(&directory, "proc/cmdline", "quiet mitigations=off");
    check("nx_huge_pages", Level::Word("auto"), Ok("N"));
    let never = "cannot turn nx_huge_pages to never: the kernel would not take it back";
    check("nx_huge_pages", Level::Word("never"), Err(never));
    check("ksm", Level::Word("run"), Ok("1"));
    check("ksm", Level::Word("stop"), Ok("0"));
    check("ksm", Level::Word("unmerge"), Ok("2"));
}

#[test]
fn every_factor_of_a_whole_plot_has_its_knob() {
    for factor in vmtax_core::factor::FACTORS {
        assert_eq!(knob(factor.name).is_some(), factor.hardness == Hardness::WholePlot, "{}", factor.name);
    }
}

#[test]
fn whole_plots_that_cannot_be_had_are_known_before_the_run() {
    let (directory, host) = host();
    let none = |level: &str| (level.to_owned(), None);
    assert_eq!(verdicts(&host, "thp = [\"always\", \"never\"]"), [none("thp=always"), none("thp=never")]);
    let nested = verdicts(&host, "nested_paging = [\"on\", \"off\"]");
    assert_eq!(nested[0], none(""), "natively nested paging means nothing");
    for (_, obstacle) in &nested[1..] {
        let expected = "cannot turn nested paging: neither kvm_intel nor kvm_amd is loaded";
        assert_eq!(obstacle.as_ref().unwrap().reason, expected);
    }
    for (path, text) in [("ept", "Y"), ("../initstate", "live"), ("../refcnt", "0")] {
        file(&directory, &format!("sys/module/kvm_intel/parameters/{path}"), text);
    }
    let fd = directory.path().join("proc/812/fd");
    fs::create_dir_all(&fd).unwrap();
    fs::write(directory.path().join("proc/812/comm"), "qemu-system-x86\n").unwrap();
    symlink("anon_inode:kvm-vm", fd.join("9")).unwrap();
    let nested = verdicts(&host, "nested_paging = [\"on\", \"off\"]");
    assert_eq!(nested[..2], [none(""), none("nested_paging=on")]);
    assert_eq!(
        nested[2].1,
        Some(Obstacle::new(
            "cannot reload kvm_intel while it is in use: qemu-system-x86 (process 812)",
            "end these VMs"
        ))
    );
    let pool = verdicts(&host, "pool_1g = [1]");
    assert_eq!(pool[0].1.as_ref().unwrap().reason, "this kernel has no pool of 1 GiB pages");
}

#[test]
fn memory_on_a_size_that_the_kernel_lacks_is_missing_with_the_reason() {
    let (_directory, host) = host();
    let plan = plan("host = [\"4k\", \"thp-64k\", \"thp-8k\"]");
    let verdict = |name: &str| {
        let cell = plan.cell(name).unwrap();
        obstacle_of_memory(&host, &plan.memory(&cell)).map(|obstacle| obstacle.remedy)
    };
    assert_eq!(verdict("chase venue=native host=4k"), None);
    assert_eq!(verdict("chase venue=native host=thp-64k"), None);
    let remedy = "Linux 6.8 or later, and a size that this CPU has".to_owned();
    assert_eq!(verdict("chase venue=native host=thp-8k"), Some(remedy));
    assert!(knobs(&plan).contains(&Knob::Switch(Switch::Mthp("thp-64k".parse().unwrap()))));
}

#[test]
fn what_the_knobs_read_is_evidence_under_the_names_of_the_factors() {
    let (directory, host) = host();
    let mut knobs =
        Knobs::of(&plan("thp = [\"always\"]\nksm = [\"run\"]\nhost = [\"thp-64k\"]"), host, None, Reserve::No);
    let facts = knobs.witness().unwrap();
    let facts: Vec<String> = facts.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(facts, ["knob.ksm=0", "knob.thp=madvise", "ksm.pages_sharing=0"]);
    file(&directory, "sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never");
    let contradiction = knobs.witness().unwrap_err();
    assert!(contradiction.contains("transparent huge pages was set to madvise, but reads always"), "{contradiction}");
    knobs.set(&Setting::default()).unwrap();
    assert_eq!(knobs.release().unwrap(), [""; 0]);
}
