//! The figures of a setting that was measured.

use serde::{Deserialize, Serialize};

use super::cell::{Point, Series};
use crate::{
    setting::{Cell, Replica, Setting},
    stats::Estimate,
    trial::{Caveat, Evidence, KvmCounts, Trial},
    units::PageSize,
};

/// What was measured in a setting, over its successful trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Successful trials, one a block.
    pub trials: u32,
    /// Nanoseconds an access.
    pub value: Estimate,
    /// Nanoseconds an access over the first pass; none when a first pass took no time at all.
    pub first_pass: Option<Estimate>,
    /// Value over the native one on the same backing, minus one; none for native settings and without a native trial.
    pub tax: Option<Estimate>,
    /// Value over the baseline's, minus one; none for the baseline itself and without a baseline trial.
    pub versus_baseline: Option<Estimate>,
    /// Whether the tax is one ([the rule](crate::analysis)); none while the tax has no
    /// interval, and without a noise floor.
    pub distinguishable: Option<bool>,
    /// What the last of the trials was proved to be.
    pub evidence: Evidence,
    /// Whether others were proved to be something else.
    pub dissent: Option<Dissent>,
    /// What a reader must know, one entry a kind.
    pub caveats: Vec<CaveatCount>,
}

/// Trials whose memory stood on other page sizes than the last one's: `KernelPageSize`, or the leaf that mapped most of
/// the guest, differs. Counts of faults and exits differ always, and are no dissent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Dissent {
    /// How many of the trials.
    pub trials: u32,
    /// What the first of them showed.
    pub evidence: Evidence,
}

/// One kind of caveat over all trials of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CaveatCount {
    /// The worst of its kind.
    pub worst: Caveat,
    /// Trials that carry it.
    pub trials: u32,
}

impl Figures {
    /// None when no trial in `own` succeeded.
    pub(super) fn of(
        setting: Setting,
        own: &Series,
        trials: &[&Trial],
        baseline: Option<Setting>,
        noise_floor: Option<Estimate>,
    ) -> Option<Figures> {
        let values: Vec<f64> = own.points.iter().map(|point| point.value_ns).collect();
        let first_passes: Vec<f64> = own.points.iter().map(|point| point.measurement.first_pass_ns).collect();
        let over = |other: Setting| {
            let other = Series::of(Cell { setting: other, replica: Replica::A }, trials);
            own.ratio_to(&other).map(Estimate::minus_one)
        };
        let tax = setting.guest.and_then(|_| over(Setting::native(setting.host)));
        let evidence = own.points.last()?.measurement.evidence;
        let caveats = own.points.iter().flat_map(|point| &point.measurement.caveats);
        Some(Figures {
            trials: own.points.len() as u32,
            value: Estimate::of_median(&values)?,
            first_pass: Estimate::of_median(&first_passes),
            tax,
            versus_baseline: baseline.filter(|&baseline| baseline != setting).and_then(over),
            distinguishable: tax.zip(noise_floor).and_then(|(tax, floor)| is_distinguishable(tax, floor)),
            evidence,
            dissent: Dissent::from(&evidence, &own.points),
            caveats: CaveatCount::merge(caveats.map(|&worst| CaveatCount { worst, trials: 1 })),
        })
    }
}

/// The rule of the [module](crate::analysis); none when the tax has no interval.
fn is_distinguishable(tax: Estimate, noise_floor: Estimate) -> Option<bool> {
    let clears_floor = tax.value.ln_1p().abs() > noise_floor.value.ln().abs();
    tax.interval.map(|interval| !interval.contains(0.0) && clears_floor)
}

impl Dissent {
    fn from(evidence: &Evidence, points: &[Point]) -> Option<Dissent> {
        let pages = |evidence: &Evidence| (evidence.kernel_page_kb, evidence.kvm.as_ref().and_then(main_leaf));
        let mut others = points.iter().map(|p| p.measurement.evidence).filter(|other| pages(other) != pages(evidence));
        let first = others.next()?;
        Some(Dissent { trials: 1 + others.count() as u32, evidence: first })
    }
}

/// The page size that maps most of the guest's memory; none when nothing is mapped.
fn main_leaf(counts: &KvmCounts) -> Option<PageSize> {
    let leaves = |size| match size {
        PageSize::Small => counts.pages_4k,
        PageSize::Large => counts.pages_2m,
        PageSize::Giant => counts.pages_1g,
    };
    let mapped = |size: PageSize| leaves(size).saturating_mul(size.bytes());
    PageSize::ALL.into_iter().filter(|&size| mapped(size) > 0).max_by_key(|&size| mapped(size))
}

impl CaveatCount {
    /// One entry a kind, in the order of [`Caveat`]'s variants.
    pub(super) fn merge(counts: impl Iterator<Item = CaveatCount>) -> Vec<CaveatCount> {
        let mut merged: Vec<CaveatCount> = Vec::new();
        for count in counts {
            match merged.iter_mut().find(|known| known.worst.kind() == count.worst.kind()) {
                None => merged.push(count),
                Some(known) => {
                    known.trials += count.trials;
                    if count.worst.severity() > known.worst.severity() {
                        known.worst = count.worst;
                    }
                }
            }
        }
        merged.sort_by_key(|count| count.worst.kind());
        merged
    }
}
