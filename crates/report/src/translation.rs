//! One address through both stages, as people and programs read it.

pub mod guest;

use serde::Serialize;
use vmtax_core::{
    setting::Setting,
    translation::{Entry, Translation},
    trial::KvmCounts,
    units::{Bytes, PageSize},
};

use crate::{
    listing::{Align, table},
    wrap::wrapped,
};

/// A translation, and what it was followed in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// Version of this form.
    pub schema: u32,
    /// The guest's leaf and the host's backing, as asked for.
    pub setting: Setting,
    /// The way of the address.
    pub translation: Translation,
    /// The largest page that all stages allow.
    pub effective_page: Option<Bytes>,
    /// What KVM has mapped for the whole guest; none where it keeps no statistics.
    pub kvm: Option<KvmCounts>,
    /// KVM in the words of the doctor: nested paging, shadow paging, software.
    pub paging: String,
}

/// `vmtax translate`.
pub fn text(document: &Document) -> String {
    let Document { setting, translation, .. } = document;
    let mut text = format!("One address through both stages of translation: {setting}\n{}\n\n", document.paging);
    text += &stages(translation);
    text += "\nThe guest's page table, as the processor reads it\n";
    text += &walk(translation);
    text.push('\n');
    for sentence in sentences(document) {
        text += &wrapped("", "", &sentence);
    }
    text
}

fn stages(translation: &Translation) -> String {
    let Translation { gva, walk, slot, hva, frame, .. } = translation;
    let address = |name: &str, at: String, by: String| vec![name.to_owned(), at, by];
    let reached = |page: PageSize| match walk.entries.is_empty() {
        false => format!("{} leaf of the guest's page table", page.prose()),
        true => format!("page of {}, by its kernel's word", page.prose()),
    };
    let block = slot.number.map_or("the guest's memory".to_owned(), |number| format!("slot {number}"));
    let (hpa, page) = match (frame.hpa, frame.page) {
        (Some(hpa), Some(page)) => (hex(hpa), format!("in a piece of {page} that the host holds")),
        (Some(hpa), None) => (hex(hpa), "in a page whose size the kernel does not show".to_owned()),
        (None, _) => ("not shown".to_owned(), "as root the kernel shows it".to_owned()),
    };
    let rows = [
        address("guest-virtual   gva", hex(*gva), "what the program in the guest uses".to_owned()),
        address("guest-physical  gpa", hex(walk.gpa), reached(walk.leaf)),
        address("host-virtual    hva", hex(*hva), format!("{block}: gpa {:x}", Offset(slot.hva, slot.gpa))),
        address("host-physical   hpa", hpa, page),
    ];
    table(&[("address", Align::Left), ("", Align::Right), ("reached by", Align::Left)], &rows)
}

/// The difference of two addresses, in hexadecimal with its sign.
struct Offset(u64, u64);

impl std::fmt::LowerHex for Offset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Offset(to, from) = self;
        let sign = if to >= from { "+" } else { "-" };
        write!(f, "{sign} {:#x}", to.abs_diff(*from))
    }
}

fn walk(translation: &Translation) -> String {
    let row = |entry: &Entry| {
        let index = entry.level.index(translation.gva);
        vec![format!("{}[{index}]", entry.level.name()), hex(entry.at), hex(entry.value)]
    };
    let rows: Vec<Vec<String>> = translation.walk.entries.iter().map(row).collect();
    table(&[("entry", Align::Left), ("at gpa", Align::Right), ("holds", Align::Right)], &rows)
}

fn hex(value: u64) -> String {
    format!("{value:#x}")
}

/// What it means, and what proves it.
fn sentences(document: &Document) -> Vec<String> {
    let Document { translation, effective_page, kvm, .. } = document;
    let mut said = Vec::new();
    match translation.kvm_gpa {
        Some(gpa) if gpa == translation.walk.gpa => said.push("KVM translates gva to the same gpa.".to_owned()),
        Some(gpa) => said.push(format!("KVM CONTRADICTS this: it translates gva to {gpa:#x}.")),
        None => {
            said.push("KVM does not translate it for us (KVM_TRANSLATE), so there is no second opinion.".to_owned())
        }
    }
    said.extend(effective_page.map(reach));
    said.extend(kvm.map(mapped));
    said
}

fn reach(page: Bytes) -> String {
    format!(
        "No TLB entry for this address can reach further than {page}: the smallest of the guest's leaf, what the slot's \
         alignment allows, and the host's piece."
    )
}

fn mapped(counts: KvmCounts) -> String {
    let KvmCounts { pages_4k, pages_2m, pages_1g, .. } = counts;
    format!(
        "For the whole guest KVM has mapped {pages_4k} pages of 4 KiB, {pages_2m} of 2 MiB and {pages_1g} of 1 GiB."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmtax_core::{
        setting::Backing,
        translation::{Frame, Level, Slot, Walk},
        units::GIB,
    };

    fn document(frame: Frame) -> Document {
        let entry = |level, at, value| Entry { level, at, value };
        let gva = 0x7f12_4012_3456;
        let entries = vec![
            entry(Level::Pml4, 0x27f0, 0x5027),
            entry(Level::Pdpt, 0x5248, 0x6027),
            entry(Level::Pd, 0x6000, 0x1_0000_00e7),
        ];
        let walk = Walk { entries, leaf: PageSize::Large, gpa: 0x1_0012_3456 };
        let slot = Slot { number: Some(1), gpa: 4 * GIB, hva: 0x7f12_4000_0000, bytes: GIB };
        let translation = Translation { gva, kvm_gpa: Some(walk.gpa), walk, slot, hva: gva, frame };
        Document {
            schema: 1,
            setting: Setting::microvm(PageSize::Large, Backing::Thp),
            effective_page: translation.effective_page(),
            translation,
            kvm: Some(KvmCounts { pages_4k: 2, pages_2m: 512, ..KvmCounts::default() }),
            paging: "nested paging (NPT)".to_owned(),
        }
    }

    #[test]
    fn every_stage_has_its_line_and_its_page() {
        let shown = text(&document(Frame { hpa: Some(0x2_4012_3456), page: Some(Bytes(2 << 20)) }));
        let expected = "\
One address through both stages of translation: guest 2m on thp
nested paging (NPT)

address                              reached by
──────────────────────────────────────────────────────────────────────────────
guest-virtual   gva  0x7f1240123456  what the program in the guest uses
guest-physical  gpa     0x100123456  2 MiB leaf of the guest's page table
host-virtual    hva  0x7f1240123456  slot 1: gpa + 0x7f1140000000
host-physical   hpa     0x240123456  in a piece of 2 MiB that the host holds
";
        assert!(shown.starts_with(expected), "{shown}");
        assert!(shown.contains("further than 2 MiB"), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    }

    #[test]
    fn without_rights_the_last_address_is_said_to_be_hidden() {
        let shown = text(&document(Frame { hpa: None, page: None }));
        assert!(shown.contains("not shown  as root the kernel shows it"), "{shown}");
        assert!(!shown.contains("further than"), "{shown}");
    }
}
