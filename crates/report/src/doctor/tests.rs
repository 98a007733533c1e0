use std::{env, fs, path::PathBuf};

use vmtax_core::{
    availability::{Demand, availability, matrix},
    units::{Bytes, GIB, MIB},
};

use super::*;

/// Machines whose text is kept beside them: one of each kind, and each special case.
const MACHINES: [&str; 6] = ["pvm", "intel-ept", "amd-npt", "tcg", "vm-without-nesting", "amd-container"];

fn directory(machine: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/machines").join(machine)
}

fn machine(name: &str) -> Host {
    serde_json::from_str(&fs::read_to_string(directory(name).join("host.json")).unwrap()).unwrap()
}

fn guests() -> Guests {
    let part = |found: &str| Part::Ok { found: found.to_owned() };
    Guests { qemu: part("/usr/bin/qemu-system-x86_64"), kernel: part("6.1.0-56-cloud-amd64") }
}

fn judged(host: &Host) -> Availability {
    let demand = Demand { arena: Bytes(GIB), tables: Bytes(2 * MIB), vcpus: 1, reserve: Reserve::No };
    availability(host, &matrix(), demand)
}

#[test]
fn every_machine_gets_exactly_the_text_beside_it() {
    for name in MACHINES {
        let host = machine(name);
        let text = doctor(&host, &judged(&host), &guests());
        let file = directory(name).join("doctor.txt");
        if env::var_os("VMTAX_UPDATE").is_some() {
            fs::write(&file, &text).unwrap();
        }
        assert_eq!(text, fs::read_to_string(&file).unwrap(), "{}", file.display());
    }
}

#[test]
fn no_line_but_a_command_is_wider_than_the_page() {
    for name in MACHINES {
        let host = machine(name);
        for line in doctor(&host, &judged(&host), &guests()).lines().filter(|line| !line.contains("-> ")) {
            assert!(columns(line) <= WIDTH, "{name}: {line}");
        }
    }
}

#[test]
fn a_host_without_facts_still_gets_a_text() {
    let host = Host::default();
    let text = doctor(&host, &judged(&host), &guests());
    assert!(text.contains("nobody tried to open /dev/kvm"), "{text}");
}

#[test]
fn the_json_says_the_same() {
    let host = machine("pvm");
    let judged = judged(&host);
    let json = serde_json::to_value(Doctor::new(&host, &judged, &guests())).unwrap();
    assert_eq!((&json["schema"], &json["host"]["kvm"]["kind"]), (&1.into(), &"pvm".into()));
    assert_eq!((&json["host"]["nested"], &json["host"]["emulated"]), (&true.into(), &false.into()));
    let cells = json["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 16);
    assert_eq!((&cells[0]["venue"], &cells[0]["status"]), (&"native".into(), &"ok".into()));
    let last = &cells[15];
    assert_eq!((&last["guest"], &last["host"], &last["status"]), (&"1g".into(), &"1g".into(), &"unavailable".into()));
    assert_eq!(last["remedy"], "a host with EPT or NPT");
}
