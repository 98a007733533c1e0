//! Who uses KVM: every process with `/dev/kvm`, a VM or a vCPU open.

use std::{fmt, fs, path::Path};

/// A process that uses KVM.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VmUser {
    /// Its process.
    pub pid: u32,
    /// Its name (`comm`).
    pub name: String,
}

impl fmt::Display for VmUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.pid)
    }
}

/// The processes under `proc` that use KVM, this one included, as far as their descriptors may be read.
pub fn users(proc: &Path) -> Vec<VmUser> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut users: Vec<VmUser> = pids
        .filter(|pid| has_kvm_open(&proc.join(pid.to_string())))
        .map(|pid| {
            let name = fs::read_to_string(proc.join(format!("{pid}/comm"))).unwrap_or_default();
            VmUser { pid, name: name.trim().to_owned() }
        })
        .collect();
    users.sort();
    users
}

fn has_kvm_open(process: &Path) -> bool {
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok()).any(|target| {
        let target = target.to_string_lossy();
        // virt/kvm/kvm_main.c, 6.18: the names given to anon_inode_getfile.
        target == "/dev/kvm" || target.starts_with("anon_inode:kvm-v")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn whoever_has_kvm_a_vm_or_a_vcpu_open_uses_kvm() {
        let proc = tempfile::tempdir().unwrap();
        let process = |pid: &str, name: &str, target: &str| {
            let fd = proc.path().join(pid).join("fd");
            fs::create_dir_all(&fd).unwrap();
            fs::write(proc.path().join(pid).join("comm"), format!("{name}\n")).unwrap();
            symlink("/dev/null", fd.join("0")).unwrap();
            symlink(target, fd.join("3")).unwrap();
        };
        process("7", "bash", "/dev/pts/0");
        process("812", "qemu-system-x86", "/dev/kvm");
        process("90", "firecracker", "anon_inode:kvm-vm");
        process("91", "vcpu", "anon_inode:kvm-vcpu:0");
        process("92", "irqfd", "anon_inode:[eventfd]");
        let users: Vec<String> = users(proc.path()).iter().map(VmUser::to_string).collect();
        assert_eq!(users, ["firecracker (process 90)", "vcpu (process 91)", "qemu-system-x86 (process 812)"]);
    }
}
