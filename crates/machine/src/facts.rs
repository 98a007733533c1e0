//! What this host is: fills a [`Host`] from `/proc`, `/sys`, CPUID and three questions to the kernel.
//!
//! Everything is read through a [`Tree`], a [`Leaves`] and an [`Answers`], which are either the machine itself or a
//! directory that holds a recording of one (`testdata/machines/README.md`), and the two take the same path from there on.
//! A file that is missing or does not parse is `None` in the result. Nothing here fails, prints or changes anything.

mod answers;
mod cpu;
mod kvm;
mod leaves;
mod limits;
mod memory;
mod noise;
mod record;
mod tlb;
mod tree;

use std::path::Path;

use vmtax_core::host::{Below, Host};

pub use answers::Answers;
pub use leaves::Leaves;
pub use record::record;
pub use tree::Tree;

/// The host we are on.
pub fn host() -> Host {
    read(&Tree::machine(), &Leaves::of_this_cpu(), &Answers::of_this_kernel())
}

/// Whether this host's processor is emulated in software, without asking for more.
pub fn is_emulated() -> bool {
    is_tcg(Leaves::of_this_cpu().hypervisor().as_deref())
}

/// A host that was recorded, or written up, in a directory.
pub fn recorded(directory: &Path) -> Host {
    let tree = Tree::recorded(directory);
    let leaves = Leaves::parse(&tree.text("cpuid").unwrap_or_default());
    let answers = Answers::parse(&tree.text("answers").unwrap_or_default());
    read(&tree, &leaves, &answers)
}

/// A host from its parts.
pub fn read(tree: &Tree, leaves: &Leaves, answers: &Answers) -> Host {
    let cpu = cpu::read(tree, leaves);
    let below = cpu.hypervisor.then(|| Below { vendor: leaves.hypervisor(), product: cpu::product(tree) });
    Host {
        kernel: tree.text("proc/sys/kernel/osrelease"),
        nested: below.is_some(),
        emulated: below.as_ref().is_some_and(|b| is_tcg(b.vendor.as_deref())),
        below,
        tlb: tlb::read(&cpu, leaves),
        caches: cpu::caches(leaves),
        cpu,
        memory: memory::read(tree),
        numa: memory::numa(tree),
        thp: memory::thp(tree),
        pools: memory::pools(tree),
        limits: limits::read(tree),
        kvm: kvm::read(tree, answers),
        itlb_multihit: tree.text("sys/devices/system/cpu/vulnerabilities/itlb_multihit"),
        frequency: noise::frequency(tree),
        noise: noise::read(tree),
        pmu: answers.pmu(),
    }
}

fn is_tcg(vendor: Option<&str>) -> bool {
    vendor == Some(Below::TCG)
}

#[cfg(test)]
mod tests;
