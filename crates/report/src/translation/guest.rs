//! One address of a process in a Linux guest.
//!
//! The guest's kernel tells where a page lies, and of what size it is; the entries of its page table are its own.

use serde::Serialize;
use vmtax_core::{setting::Backing, translation::Translation, trial::KvmCounts, units::Bytes};

use super::{mapped, reach, stages};
use crate::wrap::wrapped;

/// A translation, and what it was followed in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// Version of this form.
    pub schema: u32,
    /// `guest`, which tells it from a micro-VM's.
    pub venue: &'static str,
    /// What the process's memory stands on, in the guest.
    pub guest: Backing,
    /// What the guest's memory stands on, on this host.
    pub host: Backing,
    /// Whether QEMU executed the guest, and no processor walked any of these tables.
    pub emulated: bool,
    /// QEMU's version.
    pub qemu: String,
    /// The guest's kernel.
    pub kernel: String,
    /// The way of the address; its walk has no entries.
    pub translation: Translation,
    /// The largest page that all stages allow.
    pub effective_page: Option<Bytes>,
    /// What KVM has mapped for the whole guest; none when emulated, and where it keeps no statistics.
    pub kvm: Option<KvmCounts>,
}

/// `vmtax translate --venue guest`.
pub fn text(document: &Document) -> String {
    let Document { guest, host, kernel, qemu, .. } = document;
    let mut text = format!("One address through both stages of translation: Linux guest, {guest} on {host}\n");
    text += &wrapped("", "", &format!("{kernel} under QEMU {qemu}"));
    text.push('\n');
    text += &stages(&document.translation);
    text.push('\n');
    for sentence in sentences(document) {
        text += &wrapped("", "", &sentence);
    }
    text
}

fn sentences(document: &Document) -> Vec<String> {
    let mut said = vec![
        "The guest's kernel tells gpa and page (its /proc/self/pagemap and smaps); the entries of its page table are not read. \
         QEMU tells hva (gpa2hva), and the host's mapping of the guest's memory agrees with it."
            .to_owned(),
    ];
    if document.emulated {
        said.push(
            "EMULATED: QEMU executes this guest, and no processor walks these tables. The addresses are real; what a TLB entry \
             reaches is what it would under KVM."
                .to_owned(),
        );
    }
    said.extend(document.effective_page.map(reach));
    said.extend(document.kvm.map(mapped));
    said
}

#[cfg(test)]
mod tests {
    use vmtax_core::{
        translation::{Frame, Slot, Walk},
        units::{MIB, PageSize},
    };

    use super::*;

    fn document() -> Document {
        let walk = Walk { entries: Vec::new(), leaf: PageSize::Large, gpa: 0x1020_1234 };
        let slot = Slot { number: None, gpa: 0, hva: 0x7f12_4000_0000, bytes: 512 * MIB };
        let frame = Frame { hpa: Some(0x2_5020_1234), page: Some(Bytes(4096)) };
        let translation =
            Translation { gva: 0x7f33_4040_1234, walk, slot, hva: 0x7f12_5020_1234, frame, kvm_gpa: None };
        Document {
            schema: 1,
            venue: "guest",
            guest: Backing::Huge2m,
            host: Backing::Small,
            emulated: true,
            qemu: "7.2.22 Debian 1:7.2".to_owned(),
            kernel: "Linux 6.1.0".to_owned(),
            effective_page: translation.effective_page(),
            translation,
            kvm: None,
        }
    }

    #[test]
    fn every_stage_has_its_line_and_who_told_it() {
        let shown = text(&document());
        let expected = "\
One address through both stages of translation: Linux guest, 2m on 4k
Linux 6.1.0 under QEMU 7.2.22 Debian 1:7.2

address                              reached by
───────────────────────────────────────────────────────────────────────────────
guest-virtual   gva  0x7f3340401234  what the program in the guest uses
guest-physical  gpa      0x10201234  page of 2 MiB, by its kernel's word
host-virtual    hva  0x7f1250201234  the guest's memory: gpa + 0x7f1240000000
host-physical   hpa     0x250201234  in a piece of 4 KiB that the host holds
";
        assert!(shown.starts_with(expected), "{shown}");
        assert!(shown.contains("EMULATED"), "{shown}");
        assert!(shown.contains("further than 4 KiB"), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    }

    #[test]
    fn under_kvm_what_it_has_mapped_is_told() {
        let kvm = Some(KvmCounts { pages_4k: 3, ..KvmCounts::default() });
        let shown = text(&Document { emulated: false, kvm, ..document() });
        assert!(!shown.contains("EMULATED"), "{shown}");
        assert!(shown.contains("mapped 3 pages of 4 KiB"), "{shown}");
    }
}
