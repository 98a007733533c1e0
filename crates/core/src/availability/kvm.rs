//! What stands between us and a virtual machine.

use super::Obstacle;
use crate::{
    host::{Host, KvmAccess, KvmKind, Vendor, Virtualization},
    units::PageSize,
};

/// Why a guest with this leaf cannot run here.
pub(super) fn obstacle(host: &Host, leaf: PageSize) -> Option<Obstacle> {
    no_machine(host).or_else(|| match leaf {
        PageSize::Small | PageSize::Large => None,
        PageSize::Giant => no_giant_leaf(host),
    })
}

/// EPERM from `open`: not the file's mode, but the device controller of a control group.
const FORBIDDEN_DEVICE: i32 = 1;

/// ENOTTY: what is there knows nothing of KVM's ioctls.
const NO_KVM: i32 = 25;

fn no_machine(host: &Host) -> Option<Obstacle> {
    match host.kvm.access {
        KvmAccess::Ok => None,
        KvmAccess::NoDevice { .. } => Some(no_device(host)),
        KvmAccess::NoPermission { errno: FORBIDDEN_DEVICE } => Some(Obstacle::new(
            "the control group forbids /dev/kvm (errno 1)",
            "if this is a container, give it the device: --device /dev/kvm",
        )),
        KvmAccess::NoPermission { errno } => Some(Obstacle::new(
            format!("no permission to open /dev/kvm (errno {errno})"),
            "sudo usermod -aG kvm $USER, then log in again",
        )),
        KvmAccess::Failed { errno: NO_KVM } => Some(Obstacle::new(
            "/dev/kvm is no KVM device (errno 25)",
            "if this is a container, give it the device: --device /dev/kvm",
        )),
        KvmAccess::Failed { errno } => Some(Obstacle::new(
            format!("/dev/kvm does not open (errno {errno})"),
            "the kernel may say why: sudo dmesg | grep -i kvm",
        )),
        KvmAccess::Untried => {
            Some(Obstacle::new("nobody tried to open /dev/kvm", "run vmtax doctor on the host itself"))
        }
    }
}

/// `/dev/kvm` is missing: the nearest cause that the facts support.
fn no_device(host: &Host) -> Obstacle {
    if host.kvm.kind != KvmKind::None {
        return Obstacle::new(
            format!("no /dev/kvm here, though the kernel has {}", host.kvm.kind),
            "if this is a container, give it the device: --device /dev/kvm",
        );
    }
    let (module, feature) = match host.cpu.virtualization {
        Virtualization::Vmx => ("kvm_intel", "VT-x"),
        Virtualization::Svm => ("kvm_amd", "SVM (AMD-V)"),
        Virtualization::None => return no_virtualization(host),
    };
    match host.cpu.virtualization_usable {
        Some(false) => Obstacle::new(
            format!("no /dev/kvm: the firmware forbids {feature}"),
            format!("switch on {feature} in the firmware setup"),
        ),
        Some(true) | None => {
            Obstacle::new(format!("no /dev/kvm: module {module} is not loaded"), format!("sudo modprobe {module}"))
        }
    }
}

fn no_virtualization(host: &Host) -> Obstacle {
    if host.nested {
        let knob = match host.cpu.vendor {
            Vendor::Intel => "kvm_intel nested=1 and -cpu host on the host below",
            Vendor::Amd => "kvm_amd nested=1 and -cpu host on the host below",
            Vendor::Other(_) | Vendor::Unknown => "nested virtualization on the host below",
        };
        return Obstacle::new(
            "no /dev/kvm: this is a VM without nested virtualization",
            format!("{knob}; or a bare-metal host"),
        );
    }
    Obstacle::new(
        "no /dev/kvm: this processor announces no virtualization",
        "switch on VT-x or SVM in the firmware setup; else another machine",
    )
}

/// Only KVM's own word counts: shadow paging can offer what the processor lacks, and `kvm_pvm` withholds what it has.
fn no_giant_leaf(host: &Host) -> Option<Obstacle> {
    if host.kvm.guest_1g != Some(false) {
        return None;
    }
    let remedy = match host.kvm.kind {
        KvmKind::Pvm | KvmKind::IntelShadow | KvmKind::AmdShadow | KvmKind::Unknown | KvmKind::None => {
            "a host with EPT or NPT"
        }
        KvmKind::IntelEpt | KvmKind::AmdNpt => "a processor with 1 GiB pages (pdpe1gb)",
    };
    Some(Obstacle::new(format!("{} offers guests no 1 GiB pages", host.kvm.kind), remedy))
}
