//! What a matrix means for its host, in a few plain sentences, each with the figures it rests on.
//!
//! A difference is called one only where its interval excludes zero. Sentences about what was not measured are left out.

use crate::{
    analysis::{Summary, versus},
    prose::{change_within, nanos, size_of_change},
    run::Run,
    setting::{Backing, Setting},
    stats::Estimate,
    units::PageSize,
};

/// Three or four sentences.
pub fn sentences(run: &Run, summary: &Summary) -> Vec<String> {
    let matrix = Matrix { run, summary };
    [matrix.tax(), matrix.huge_pages(), matrix.transparent(), matrix.gibibyte(), matrix.fill()]
        .into_iter()
        .flatten()
        .collect()
}

struct Matrix<'r> {
    run: &'r Run,
    summary: &'r Summary,
}

const SMALL: Setting = Setting::microvm(PageSize::Small, Backing::Small);

impl Matrix<'_> {
    fn versus(&self, setting: Setting, reference: Setting) -> Option<Estimate> {
        versus(&self.run.trials, setting, reference)
    }

    fn value(&self, setting: Setting) -> Option<f64> {
        self.figures(setting).map(|figures| figures.value.value)
    }

    fn figures(&self, setting: Setting) -> Option<&crate::analysis::Figures> {
        self.summary.cells.iter().find(|cell| cell.setting == setting)?.figures()
    }

    /// The backing of 2 MiB pages that was measured: from the pool if possible, else transparent.
    fn large(&self) -> Option<Backing> {
        [Backing::Huge2m, Backing::Thp]
            .into_iter()
            .find(|&host| self.value(Setting::microvm(PageSize::Large, host)).is_some())
    }

    /// What a guest pays where nobody uses huge pages.
    fn tax(&self) -> Option<String> {
        let tax = self.figures(SMALL)?.tax?;
        let (guest, native) = (self.value(SMALL)?, self.value(Setting::native(Backing::Small))?);
        let figures = format!("{} ns against {} ns, {}", nanos(guest), nanos(native), change_within(&tax));
        Some(match direction(&tax) {
            Direction::Up => {
                format!("With 4 KiB pages on both sides an access costs more in a guest than natively: {figures}.")
            }
            Direction::Down => {
                format!("With 4 KiB pages on both sides an access costs less in a guest than natively: {figures}.")
            }
            Direction::Unclear => {
                format!("With 4 KiB pages on both sides a guest pays nothing this run can tell from noise: {figures}.")
            }
        })
    }

    /// Whether 2 MiB pages pay, and on which side they must be.
    fn huge_pages(&self) -> Option<String> {
        let host = self.large()?;
        let both = self.versus(Setting::microvm(PageSize::Large, host), SMALL)?;
        let guest_alone = self.versus(Setting::microvm(PageSize::Large, Backing::Small), SMALL)?;
        let host_alone = self.versus(Setting::microvm(PageSize::Small, host), SMALL)?;
        let figures = format!(
            "both {}, the guest alone {}, the host alone {}",
            change_within(&both),
            change_within(&guest_alone),
            change_within(&host_alone)
        );
        // "Only": neither side alone gets half of what both get together.
        let is_half = |alone: &Estimate| direction(alone) == Direction::Down && alone.value <= both.value / 2.0;
        Some(match (direction(&both), is_half(&guest_alone), is_half(&host_alone)) {
            (Direction::Down, false, false) => {
                format!("2 MiB pages pay only when guest and host both use them: {figures}.")
            }
            (Direction::Down, true, false) => {
                format!("2 MiB pages pay in the guest already, and most on both sides: {figures}.")
            }
            (Direction::Down, false, true) => {
                format!("2 MiB pages pay on the host already, and most on both sides: {figures}.")
            }
            (Direction::Down, true, true) => format!("2 MiB pages pay on either side, and most on both: {figures}."),
            (Direction::Up, _, _) => format!("2 MiB pages make an access dearer here: {figures}."),
            (Direction::Unclear, _, _) => {
                format!("2 MiB pages on both sides make no difference this run can tell: {figures}.")
            }
        })
    }

    /// Whether a pool is worth its trouble.
    fn transparent(&self) -> Option<String> {
        let on = |host| Setting::microvm(PageSize::Large, host);
        let thp = self.versus(on(Backing::Thp), on(Backing::Huge2m))?;
        Some(match direction(&thp) {
            Direction::Unclear => format!(
                "Transparent huge pages on the host do as well as a hugetlb pool, as far as this run can tell: {}.",
                change_within(&thp)
            ),
            Direction::Up => {
                format!("Transparent huge pages on the host cost more than a hugetlb pool: {}.", change_within(&thp))
            }
            Direction::Down => {
                format!("Transparent huge pages on the host cost less than a hugetlb pool: {}.", change_within(&thp))
            }
        })
    }

    /// What 1 GiB pages add, where a guest can have them.
    fn gibibyte(&self) -> Option<String> {
        let giant = Setting::microvm(PageSize::Giant, Backing::Huge1g);
        let large = Setting::microvm(PageSize::Large, self.large()?);
        let more = self.versus(giant, large)?;
        Some(match direction(&more) {
            Direction::Down => format!("1 GiB pages on both sides take off a further {}.", change_within(&more)),
            Direction::Up => format!("1 GiB pages on both sides cost more than 2 MiB pages: {}.", change_within(&more)),
            Direction::Unclear => {
                format!(
                    "1 GiB pages on both sides add nothing to 2 MiB pages that this run can tell: {}.",
                    change_within(&more)
                )
            }
        })
    }

    /// What the first touch of each page costs once, by page size.
    fn fill(&self) -> Option<String> {
        let once = |setting: Setting| {
            let figures = self.figures(setting)?;
            Some((figures.first_pass?.value, figures.value.value))
        };
        let (first, steady) = once(SMALL)?;
        let small = format!(
            "The first pass of a fresh guest, which fills KVM's page table, costs {} ns an access with 4 KiB pages ({} more)",
            nanos(first),
            size_of_change((first / steady - 1.0).max(0.0)),
        );
        let large = self.large().and_then(|host| once(Setting::microvm(PageSize::Large, host)));
        Some(match large {
            Some((first, steady)) => {
                format!(
                    "{small} and {} ns with 2 MiB pages ({} more).",
                    nanos(first),
                    size_of_change((first / steady - 1.0).max(0.0))
                )
            }
            None => format!("{small}."),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
    Unclear,
}

/// Where a change points, if its interval excludes none.
fn direction(change: &Estimate) -> Direction {
    match change.interval {
        Some(interval) if interval.lo > 0.0 => Direction::Up,
        Some(interval) if interval.hi < 0.0 => Direction::Down,
        _ => Direction::Unclear,
    }
}
