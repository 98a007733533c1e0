//! The cost of the first access to memory: one byte written in each 4 KiB page, once.
//!
//! Two first accesses hide in a guest's one. The host may have to find a page (and to zero it), and KVM has to map it for
//! the guest. With host memory populated beforehand only the second is left; the difference is what the host takes.

use serde::{Deserialize, Serialize};

use crate::{
    prose::{nanos, times},
    series::Series,
    setting::{Backing, Setting},
    units::{Bytes, PageSize},
};

/// Whether host memory was taken into use before the pass that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Populated {
    /// No page of it: the case of a program that has just allocated.
    No,
    /// All of it: natively the control, in a guest the cost of the second stage alone.
    Before,
}

impl Populated {
    /// `no` or `before`.
    pub const fn name(self) -> &'static str {
        match self {
            Populated::No => "no",
            Populated::Before => "before",
        }
    }
}

/// What a trial is a trial of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// Venue, leaf and backing.
    pub setting: Setting,
    /// Of the host's memory.
    pub populated: Populated,
}

/// The name of the metric that leads.
pub const NS_PER_PAGE: &str = "ns_per_page";

/// Both cells of every setting, unpopulated first.
pub fn cells(settings: &[Setting]) -> Vec<Cell> {
    let both = |&setting: &Setting| [Populated::No, Populated::Before].map(|populated| Cell { setting, populated });
    settings.iter().flat_map(both).collect()
}

/// The contradiction between a cell and the minor faults of the thread that touched `size`; none when they agree.
///
/// Populated memory has next to none: one page in a hundred is left to the kernel for its own affairs. Of unpopulated
/// memory, every page of the backing costs at least one; transparent pages that could not be had, more.
pub fn contradiction(cell: Cell, minor_faults: u64, size: Bytes) -> Option<String> {
    const SOME: u64 = 100;
    let least = size.0 / cell.setting.host.page().bytes();
    match cell.populated {
        Populated::No if minor_faults < least => {
            Some(format!("{least} pages were to be taken into use, but the kernel counted {minor_faults} faults"))
        }
        Populated::Before if minor_faults > SOME.max(size.0 / PageSize::Small.bytes() / SOME) => {
            Some(format!("the memory was populated before, but the kernel counted {minor_faults} faults"))
        }
        Populated::No | Populated::Before => None,
    }
}

/// What the figures mean, in two to four sentences.
pub fn sentences(series: &Series<Cell>) -> Vec<String> {
    let value = |cell: Cell| series.estimate(cell, NS_PER_PAGE).map(|estimate| estimate.value);
    let on = |setting, populated| Cell { setting, populated };
    let native = on(Setting::native(Backing::Small), Populated::No);
    let mut said = Vec::new();
    if let (Some(taken), Some(held)) = (value(native), value(on(native.setting, Populated::Before))) {
        said.push(format!(
            "Natively the first write to a 4 KiB page costs {} ns, and {} ns where the page is there already: the rest \
             is the kernel finding and clearing it.",
            nanos(taken),
            nanos(held)
        ));
    }
    let guests = || series.cells.iter().copied().filter(|cell| cell.setting.guest.is_some());
    let small =
        guests().find(|c| c.setting.host == Backing::Small && c.populated == Populated::No && value(*c).is_some());
    if let Some(ratio) = small.and_then(|guest| series.ratio(guest, native, NS_PER_PAGE)) {
        said.push(format!("In a guest on 4 KiB host pages that write costs {} as much.", times(ratio.value)));
    }
    if let Some((guest, populated)) =
        small.and_then(|guest| Some((guest, value(on(guest.setting, Populated::Before))?)))
    {
        let whole = value(guest).unwrap_or(populated);
        said.push(format!(
            "Populating the host's memory beforehand leaves {} of {} ns a page: KVM still has to map each page for the \
             guest.",
            nanos(populated),
            nanos(whole)
        ));
    }
    let all = || series.cells.iter().copied().filter(|cell| cell.populated == Populated::No);
    let cheapest = all().filter_map(|cell| Some((value(cell)?, cell))).min_by(|(a, _), (b, _)| a.total_cmp(b));
    if let Some((ns, cell)) = cheapest.filter(|(_, cell)| cell.setting.host != Backing::Small) {
        said.push(format!("The cheapest first write of all is {}: {} ns a 4 KiB page.", cell.setting, nanos(ns)));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::MIB;

    #[test]
    fn faults_must_suit_the_state_the_memory_was_in() {
        let check = |host, populated, faults, expected: Option<&str>| {
            let cell = Cell { setting: Setting::native(host), populated };
            assert_eq!(contradiction(cell, faults, Bytes(64 * MIB)).as_deref(), expected);
        };
        check(Backing::Small, Populated::No, 16384, None);
        check(Backing::Huge2m, Populated::No, 32, None);
        check(Backing::Thp, Populated::No, 16384, None);
        check(
            Backing::Small,
            Populated::No,
            32,
            Some("16384 pages were to be taken into use, but the kernel counted 32 faults"),
        );
        check(Backing::Small, Populated::Before, 3, None);
        check(
            Backing::Small,
            Populated::Before,
            16384,
            Some("the memory was populated before, but the kernel counted 16384 faults"),
        );
    }
}
