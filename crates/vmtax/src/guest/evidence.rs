//! What was observed of a guest from outside: by QEMU's word, and by the kernel's of QEMU's process.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use vmtax_core::{trial::KvmCounts, units::Bytes};
use vmtax_machine::backing::Ground;

use super::{Accel, GuestError, Machine, link::Link, machine::Net, qmp::Qmp};
use crate::image::initramfs::hexadecimal;

/// Facts about a running guest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// QEMU's version, with the packager's.
    pub qemu_version: String,
    /// SHA-256 of the program that runs.
    pub qemu_binary: String,
    /// What executes the guest (`query-kvm`): `kvm` or `tcg`.
    pub accel: &'static str,
    /// Threads of the vCPUs, by vCPU (`query-cpus-fast`).
    pub vcpu_threads: Vec<u32>,
    /// CPUs of the host on which each may run, such as `0-3` (`Cpus_allowed_list`).
    pub vcpu_places: Vec<String>,
    /// What the guest's memory stands on (`/proc/PID/smaps`).
    pub ram: Ram,
    /// Its tap device, and who serves it; none where it was to have none.
    pub link: Option<Link>,
    /// KVM's counters (`query-stats`); none when emulated, and before QEMU 7.1.
    pub kvm: Option<KvmCounts>,
}

/// The mapping that is a guest's memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ram {
    /// `KernelPageSize`, in KiB.
    pub kernel_page_kb: u64,
    /// Share in transparent 2 MiB pages, 0 to 1.
    pub thp_coverage: f64,
    /// Share that is populated, 0 to 1.
    pub populated: f64,
}

impl Evidence {
    /// Observes the guest that the process `pid` runs on `machine`.
    pub fn observe(qmp: &mut Qmp, pid: u32, machine: &Machine) -> Result<Evidence, GuestError> {
        let version = qmp.ask("query-version")?;
        let is_kvm = qmp.ask("query-kvm")?["enabled"] == true;
        let vcpu_threads = vcpus(qmp)?;
        let vcpu_places = vcpu_threads.iter().map(|thread| place(pid, *thread)).collect::<Result<_, _>>()?;
        let program = PathBuf::from(format!("/proc/{pid}/exe"));
        let bytes = fs::read(&program).map_err(|e| GuestError::host(format!("read {}", program.display()), e))?;
        Ok(Evidence {
            qemu_version: version_text(&version),
            qemu_binary: hexadecimal(&Sha256::digest(bytes)),
            accel: if is_kvm { Accel::Kvm } else { Accel::Tcg }.name(),
            vcpu_threads,
            vcpu_places,
            ram: ram(pid, machine.memory)?,
            link: link(pid, machine)?,
            kvm: if is_kvm { counts(qmp) } else { None },
        })
    }

    /// What contradicts the machine that was asked for, in words; such a trial has failed.
    pub fn contradiction(&self, machine: &Machine) -> Option<String> {
        let Machine { accel, vcpus, backing, .. } = machine;
        let page_kb = backing.pool().map_or(4, |page| page.bytes() / 1024);
        if self.accel != accel.name() {
            return Some(format!("QEMU runs the guest with {}, not {}", self.accel, accel.name()));
        }
        if self.vcpu_threads.len() != *vcpus as usize {
            return Some(format!("QEMU has {} vCPU threads, not {vcpus}", self.vcpu_threads.len()));
        }
        if self.ram.kernel_page_kb != page_kb {
            let got = self.ram.kernel_page_kb;
            return Some(format!("the guest's memory is mapped in pages of {got} kB, not {page_kb} kB"));
        }
        if *backing == vmtax_core::setting::Backing::Small && self.ram.thp_coverage > 0.0 {
            return Some("the guest's 4k memory stands on transparent huge pages".to_owned());
        }
        let large = self.kvm.map_or(0, |kvm| kvm.pages_2m + kvm.pages_1g);
        if *backing == vmtax_core::setting::Backing::Small && large > 0 {
            return Some(format!("KVM maps {large} large pages for a guest whose memory is in pages of 4 kB"));
        }
        match (&self.link, &machine.net) {
            (Some(link), Some(Net::Tap { vhost, .. })) => link.contradiction(*vhost),
            (None, None | Some(Net::User)) => None,
            (Some(_), None | Some(Net::User)) => Some("QEMU has a tap device, and should have none".to_owned()),
            (None, Some(Net::Tap { .. })) => Some("its tap device was not looked for".to_owned()),
        }
    }
}

fn link(pid: u32, machine: &Machine) -> Result<Option<Link>, GuestError> {
    match &machine.net {
        None | Some(Net::User) => Ok(None),
        Some(Net::Tap { .. }) => {
            let observed = Link::observe(Path::new("/proc"), Path::new("/sys"), pid);
            observed.map(Some).map_err(|e| GuestError::host(format!("read what process {pid} has open"), e))
        }
    }
}

fn version_text(version: &Value) -> String {
    let part = |name: &str| version["qemu"][name].as_u64().unwrap_or(0);
    let package = version["package"].as_str().unwrap_or_default();
    format!("{}.{}.{} {package}", part("major"), part("minor"), part("micro")).trim_end().to_owned()
}

/// Threads of the vCPUs, by vCPU.
pub fn vcpus(qmp: &mut Qmp) -> Result<Vec<u32>, GuestError> {
    Ok(threads(&qmp.ask("query-cpus-fast")?))
}

fn place(pid: u32, thread: u32) -> Result<String, GuestError> {
    let path = format!("/proc/{pid}/task/{thread}/status");
    let status = fs::read_to_string(&path).map_err(|e| GuestError::host(format!("read {path}"), e))?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Ok(list.unwrap_or_default().trim().to_owned())
}

fn threads(cpus: &Value) -> Vec<u32> {
    let mut cpus: Vec<(u64, u32)> = cpus
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|cpu| Some((cpu["cpu-index"].as_u64()?, u32::try_from(cpu["thread-id"].as_u64()?).ok()?)))
        .collect();
    cpus.sort_unstable();
    cpus.into_iter().map(|(_, thread)| thread).collect()
}

/// KVM's counters now. Which faults came in the steady state is known only to who asks twice.
fn counts(qmp: &mut Qmp) -> Option<KvmCounts> {
    let mut ask = |target: &str| qmp.ask_with("query-stats", json!({ "target": target })).ok();
    let (vm, vcpus) = (ask("vm")?, ask("vcpu")?);
    Some(KvmCounts {
        pages_4k: sum(&vm, "pages_4k")?,
        pages_2m: sum(&vm, "pages_2m")?,
        pages_1g: sum(&vm, "pages_1g")?,
        faults: sum(&vcpus, "pf_taken")?,
        exits: sum(&vcpus, "exits")?,
        steady_faults: 0,
        nx_lpage_splits: sum(&vm, "nx_lpage_splits"),
    })
}

/// Instructions that KVM has executed in software for the guest; none when emulated by QEMU, and before QEMU 7.1.
pub fn emulated_instructions(qmp: &mut Qmp) -> Option<u64> {
    let vcpus = qmp.ask_with("query-stats", json!({ "target": "vcpu" })).ok()?;
    sum(&vcpus, "insn_emulation")
}

/// A counter of KVM's, all objects of the answer together; none if no object has it.
fn sum(answer: &Value, name: &str) -> Option<u64> {
    let objects = answer.as_array().into_iter().flatten().filter(|object| object["provider"] == "kvm");
    let counters = objects.filter_map(|object| object["stats"].as_array()).flatten();
    let values = counters.filter(|counter| counter["name"] == name).filter_map(|counter| counter["value"].as_u64());
    values.reduce(|sum, value| sum + value)
}

fn ram(pid: u32, memory: Bytes) -> Result<Ram, GuestError> {
    let failed = |e| GuestError::host(format!("read /proc/{pid}/smaps"), e);
    let missing = || std::io::Error::other(format!("no mapping of {memory} is there"));
    let Ground { kernel_page_kb, usage, .. } =
        Ground::of_process(pid, memory).and_then(|found| found.ok_or_else(missing)).map_err(failed)?;
    let share = |bytes: Bytes| bytes.0 as f64 / memory.0 as f64;
    let populated = share(Bytes(usage.resident.0.max(usage.pool.0)));
    Ok(Ram { kernel_page_kb, thp_coverage: share(usage.huge), populated })
}

#[cfg(test)]
mod tests {
    use vmtax_core::{setting::Backing, units::MIB};

    use super::*;

    #[test]
    fn answers_of_qemu_are_read() {
        let version = json!({"qemu": {"major": 7, "minor": 2, "micro": 22}, "package": "Debian 1:7.2"});
        assert_eq!(version_text(&version), "7.2.22 Debian 1:7.2");
        let cpus = json!([{"cpu-index": 1, "thread-id": 12}, {"cpu-index": 0, "thread-id": 11}]);
        assert_eq!(threads(&cpus), [11, 12]);
    }

    #[test]
    fn counters_of_all_vcpus_are_summed() {
        let vcpu = |faults| json!({"provider": "kvm", "stats": [{"name": "pf_taken", "value": faults}]});
        let answer = json!([vcpu(3), {"provider": "other", "stats": [{"name": "pf_taken", "value": 9}]}, vcpu(4)]);
        assert_eq!(sum(&answer, "pf_taken"), Some(7));
        assert_eq!(sum(&answer, "pages_4k"), None);
        assert_eq!(sum(&json!({}), "pages_4k"), None);
    }

    #[test]
    fn what_contradicts_the_machine_is_named() {
        let machine = Machine { backing: Backing::Huge2m, memory: Bytes(64 * MIB), ..Machine::new(Accel::Tcg) };
        let good = Evidence {
            qemu_version: "7".to_owned(),
            qemu_binary: String::new(),
            accel: "tcg",
            vcpu_threads: vec![3],
            vcpu_places: vec!["0-1".to_owned()],
            ram: Ram { kernel_page_kb: 2048, thp_coverage: 0.0, populated: 1.0 },
            link: None,
            kvm: None,
        };
        assert_eq!(good.contradiction(&machine), None);
        let check =
            |evidence: Evidence, expected: &str| assert_eq!(evidence.contradiction(&machine).unwrap(), expected);
        check(Evidence { accel: "kvm", ..good.clone() }, "QEMU runs the guest with kvm, not tcg");
        check(Evidence { vcpu_threads: vec![], ..good.clone() }, "QEMU has 0 vCPU threads, not 1");
        let ram = Ram { kernel_page_kb: 4, ..good.ram };
        check(Evidence { ram, ..good.clone() }, "the guest's memory is mapped in pages of 4 kB, not 2048 kB");
        let small = Machine { backing: Backing::Small, ..machine.clone() };
        let mapped =
            |pages_2m| Evidence { ram, kvm: Some(KvmCounts { pages_2m, ..KvmCounts::default() }), ..good.clone() };
        assert_eq!(mapped(0).contradiction(&small), None);
        let larger = "KVM maps 3 large pages for a guest whose memory is in pages of 4 kB";
        assert_eq!(mapped(3).contradiction(&small).unwrap(), larger);
    }
}
