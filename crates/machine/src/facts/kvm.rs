//! Which KVM there is.

use vmtax_core::host::{Kvm, KvmAccess, KvmKind, kvm::is_on};

use super::{answers::Answers, tree::Tree};

/// Parameters that change what a guest's memory costs, by module (arch/x86/kvm, Linux 6.12; `kvm_pvm` is out of tree).
const PARAMETERS: [(&str, &[&str]); 4] = [
    (
        "kvm",
        &[
            "tdp_mmu",
            "eager_page_split",
            "nx_huge_pages",
            "nx_huge_pages_recovery_ratio",
            "nx_huge_pages_recovery_period_ms",
            "mmio_caching",
            "halt_poll_ns",
            "enable_pmu",
        ],
    ),
    ("kvm_intel", &["ept", "eptad", "pml", "vpid", "unrestricted_guest", "nested"]),
    ("kvm_amd", &["npt", "nested", "avic", "vls"]),
    ("kvm_pvm", &["pvm_native"]),
];

/// KVM from its modules, their parameters, and what opening it gave.
pub(super) fn read(tree: &Tree, answers: &Answers) -> Kvm {
    let access = answers.kvm();
    let parameters = PARAMETERS.into_iter().flat_map(|(module, names)| {
        let value = move |name: &&str| {
            Some((format!("{module}.{name}"), tree.text(&format!("sys/module/{module}/parameters/{name}"))?))
        };
        names.iter().filter_map(value)
    });
    let mut kvm = Kvm { kind: KvmKind::None, access, guest_1g: answers.guest_1g, parameters: parameters.collect() };
    kvm.kind = kind(tree, &kvm);
    kvm
}

/// A vendor's module without its parameter, or a device without a module, is a KVM we do not know.
fn kind(tree: &Tree, kvm: &Kvm) -> KvmKind {
    let switched = |parameter, on, off| match kvm.parameter(parameter) {
        Some(value) if is_on(value) => on,
        Some(_) => off,
        None => KvmKind::Unknown,
    };
    let modules = tree.names("sys/module");
    let has = |module: &str| modules.iter().any(|name| name == module);
    match kvm.access {
        _ if has("kvm_pvm") => KvmKind::Pvm,
        _ if has("kvm_intel") => switched("kvm_intel.ept", KvmKind::IntelEpt, KvmKind::IntelShadow),
        _ if has("kvm_amd") => switched("kvm_amd.npt", KvmKind::AmdNpt, KvmKind::AmdShadow),
        KvmAccess::Ok | KvmAccess::NoPermission { .. } | KvmAccess::Failed { .. } => KvmKind::Unknown,
        KvmAccess::NoDevice { .. } | KvmAccess::Untried => KvmKind::None,
    }
}
