//! The cost of the first access to memory: one byte written in each 4 KiB page, once.
//!
//! Two first accesses hide in a guest's one. The host may have to find a page (and to zero it), and KVM has to map it for
//! the guest. With host memory populated beforehand only the second is left; the difference is what the host takes.

use serde::{Deserialize, Serialize};

use crate::{
    experiment::Record,
    plan::{Job, Touch},
    prose::{nanos, times},
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

/// The name of the metric that leads.
pub const NS_PER_PAGE: &str = "ns_per_page";

/// The contradiction between memory in this state and the minor faults of the threads that touched `size` of it; none
/// when they agree.
///
/// Populated memory has next to none: one page in a hundred is left to the kernel for its own affairs. Of unpopulated
/// memory, every page of the backing costs at least one; transparent pages that could not be had, more.
pub fn contradiction(host: Backing, populated: Populated, minor_faults: u64, size: Bytes) -> Option<String> {
    const SOME: u64 = 100;
    let least = size.0 / host.page().bytes();
    match populated {
        Populated::No if minor_faults < least => {
            Some(format!("{least} pages were to be taken into use, but the kernel counted {minor_faults} faults"))
        }
        Populated::Before if minor_faults > SOME.max(size.0 / PageSize::Small.bytes() / SOME) => {
            Some(format!("the memory was populated before, but the kernel counted {minor_faults} faults"))
        }
        Populated::No | Populated::Before => None,
    }
}

/// The cells of the workloads of this kind, by name, in the order of the plan.
pub fn touches(record: &Record) -> Vec<(String, Touch)> {
    let touch = |job| if let Job::Touch(touch) = job { Some(touch) } else { None };
    let jobs = record.plan.workloads.iter().flat_map(|workload| record.plan.jobs(&workload.name));
    jobs.filter_map(|(cell, job)| Some((cell.name(), touch(job)?))).collect()
}

/// What the figures of these cells mean, in up to four sentences.
pub fn sentences(record: &Record, touches: &[(String, Touch)]) -> Vec<String> {
    let value = |cell: &str| record.estimate(cell, NS_PER_PAGE).map(|estimate| estimate.value);
    let of = |setting: Setting, populated: Populated| {
        let (name, _) = touches.iter().find(|(_, t)| (t.setting, t.populated) == (setting, populated))?;
        Some((name.as_str(), value(name)?))
    };
    let small = Setting::native(Backing::Small);
    let native = of(small, Populated::No);
    let mut said = Vec::new();
    if let (Some((_, taken)), Some((_, held))) = (native, of(small, Populated::Before)) {
        said.push(format!(
            "Natively the first write to a 4 KiB page costs {} ns, and {} ns where the page is there already: the rest \
             is the kernel finding and clearing it.",
            nanos(taken),
            nanos(held)
        ));
    }
    let guests = touches.iter().map(|(_, touch)| touch.setting).filter(|setting| setting.guest.is_some());
    let guest = guests.filter(|setting| setting.host == Backing::Small).find_map(|setting| {
        let (name, whole) = of(setting, Populated::No)?;
        Some((setting, name, whole))
    });
    if let Some((setting, name, whole)) = guest {
        if let Some(ratio) = native.and_then(|(native, _)| record.ratio(name, native, NS_PER_PAGE)) {
            said.push(format!("In a guest on 4 KiB host pages that write costs {} as much.", times(ratio.value)));
        }
        if let Some((_, populated)) = of(setting, Populated::Before) {
            said.push(format!(
                "Populating the host's memory beforehand leaves {} of {} ns a page: KVM still has to map each page for \
                 the guest.",
                nanos(populated),
                nanos(whole)
            ));
        }
    }
    let all = touches.iter().filter(|(_, touch)| touch.populated == Populated::No);
    let cheapest = all.filter_map(|(name, touch)| Some((value(name)?, touch))).min_by(|(a, _), (b, _)| a.total_cmp(b));
    if let Some((ns, touch)) = cheapest.filter(|(_, touch)| touch.setting.host != Backing::Small) {
        said.push(format!("The cheapest first write of all is {}: {} ns a 4 KiB page.", touch.setting, nanos(ns)));
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
            assert_eq!(contradiction(host, populated, faults, Bytes(64 * MIB)).as_deref(), expected);
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
