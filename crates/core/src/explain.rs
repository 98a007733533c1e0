//! What a matrix means for its host, in a few plain sentences, each with the figures it rests on.
//!
//! A difference is called one only where its interval excludes zero, and a tax only where the table calls it one.
//! Sentences about what was not measured are left out; without a guest they are about native memory.

use crate::{
    analysis::{Figures, Summary, versus},
    prose::{change_within, nanos, times},
    run::Run,
    setting::{Backing, Setting},
    stats::Estimate,
    units::PageSize,
};

/// Up to five sentences; none when nothing was measured.
pub fn sentences(run: &Run, summary: &Summary) -> Vec<String> {
    let matrix = Matrix { run, summary };
    let guest = || {
        [matrix.tax(), matrix.huge_pages(), matrix.transparent(Some(PageSize::Large)), matrix.gibibyte(), matrix.fill()]
    };
    let native =
        || [matrix.no_guest(), matrix.native_huge_pages(), matrix.transparent(None), matrix.native_gibibyte(), None];
    match matrix.standing() {
        Standing::Nothing => Vec::new(),
        Standing::OneBlock => vec![ONE_BLOCK.to_owned()],
        Standing::Native => native().into_iter().flatten().collect(),
        Standing::Guest => guest().into_iter().flatten().collect(),
    }
}

const ONE_BLOCK: &str = "Without two whole blocks there are no intervals, and without them nothing here can be told from \
                         noise: make 5 or more (--blocks 5, or a larger --budget).";

/// What there is to speak about.
enum Standing {
    Nothing,
    /// Not every cell has had two trials.
    OneBlock,
    /// No guest was measured.
    Native,
    Guest,
}

struct Matrix<'r> {
    run: &'r Run,
    summary: &'r Summary,
}

const SMALL: Setting = Setting::microvm(PageSize::Small, Backing::Small);

impl Matrix<'_> {
    fn standing(&self) -> Standing {
        let measured = || self.summary.cells.iter().filter(|cell| cell.figures().is_some());
        match self.summary.blocks {
            _ if measured().next().is_none() => Standing::Nothing,
            0 | 1 => Standing::OneBlock,
            _ if measured().all(|cell| cell.setting.guest.is_none()) => Standing::Native,
            _ => Standing::Guest,
        }
    }

    /// None also without an interval: too many trials failed to say anything.
    fn versus(&self, setting: Setting, reference: Setting) -> Option<Estimate> {
        versus(&self.run.trials, setting, reference).filter(|change| change.interval.is_some())
    }

    fn value(&self, setting: Setting) -> Option<f64> {
        self.figures(setting).map(|figures| figures.value.value)
    }

    fn figures(&self, setting: Setting) -> Option<&Figures> {
        self.summary.cells.iter().find(|cell| cell.setting == setting)?.figures()
    }

    /// `74.0 ns against 95.0 ns, −22 % [−23, −21]`.
    fn against(&self, setting: Setting, reference: Setting, change: &Estimate) -> Option<String> {
        let (one, other) = (self.value(setting)?, self.value(reference)?);
        Some(format!("{} ns against {} ns, {}", nanos(one), nanos(other), change_within(change)))
    }

    /// The backing of 2 MiB pages that was measured: from the pool if possible, else transparent.
    fn large(&self, guest: Option<PageSize>) -> Option<Backing> {
        [Backing::Huge2m, Backing::Thp].into_iter().find(|&host| self.figures(Setting { guest, host }).is_some())
    }

    /// What a guest pays where nobody uses huge pages; if that was not measured, in the first cell of the table that was,
    /// one with the same page size on both sides if there is one.
    fn tax(&self) -> Option<String> {
        let taxed = || {
            self.summary
                .cells
                .iter()
                .map(|cell| cell.setting)
                .filter(|&s| self.figures(s).is_some_and(|f| f.tax.is_some_and(|tax| tax.interval.is_some())))
        };
        let setting = taxed().find(|s| s.guest == Some(s.host.page())).or_else(|| taxed().next())?;
        let figures = self.figures(setting)?;
        let tax = figures.tax?;
        let direction = if figures.distinguishable == Some(true) { direction(&tax) } else { Direction::Unclear };
        let verdict = match direction {
            Direction::Up => "an access costs more in a guest than natively",
            Direction::Down => "an access costs less in a guest than natively",
            Direction::Unclear => "a guest pays nothing this run can tell from noise",
        };
        let against = self.against(setting, Setting::native(setting.host), &tax)?;
        Some(format!("With {} {verdict}: {against}.", sides(setting)))
    }

    /// Whether 2 MiB pages pay, and on which side they must be.
    fn huge_pages(&self) -> Option<String> {
        let host = self.large(Some(PageSize::Large))?;
        let [both, guest, alone] =
            [(PageSize::Large, host), (PageSize::Large, Backing::Small), (PageSize::Small, host)]
                .map(|(leaf, host)| Setting::microvm(leaf, host));
        let total = self.versus(both, SMALL)?;
        let in_guest = self.versus(guest, SMALL)?;
        let on_host = self.versus(alone, SMALL)?;
        let adds = |to| self.versus(both, to).is_some_and(|more| direction(&more) == Direction::Down);
        // Alone, a side pays when it gets at least half of what both get together.
        let pays = |alone: &Estimate| direction(alone) == Direction::Down && alone.value <= total.value / 2.0;
        let helps = [&in_guest, &on_host].into_iter().any(|alone| direction(alone) == Direction::Down);
        let verdict = match (direction(&total), pays(&in_guest), pays(&on_host)) {
            (Direction::Up, _, _) => "2 MiB pages on both sides make an access dearer",
            (Direction::Unclear, _, _) => "2 MiB pages on both sides make no difference this run can tell",
            (Direction::Down, false, false) if helps => {
                "2 MiB pages pay in full only when guest and host both use them"
            }
            (Direction::Down, false, false) => "2 MiB pages pay only when guest and host both use them",
            (Direction::Down, true, false) if adds(guest) => {
                "2 MiB pages pay in the guest alone, and more when the host uses them too"
            }
            (Direction::Down, true, false) => {
                "2 MiB pages pay in the guest; on the host they add nothing this run can tell"
            }
            (Direction::Down, false, true) if adds(alone) => {
                "2 MiB pages pay on the host alone, and more when the guest uses them too"
            }
            (Direction::Down, false, true) => {
                "2 MiB pages pay on the host; in the guest they add nothing this run can tell"
            }
            (Direction::Down, true, true) if adds(guest) && adds(alone) => {
                "2 MiB pages pay on either side, and more on both"
            }
            (Direction::Down, true, true) => {
                "2 MiB pages on one side pay as much as on both, as far as this run can tell"
            }
        };
        Some(format!(
            "{verdict}: both {}, the guest alone {}, the host alone {}.",
            change_within(&total),
            change_within(&in_guest),
            change_within(&on_host)
        ))
    }

    /// Whether a pool is worth its trouble.
    fn transparent(&self, guest: Option<PageSize>) -> Option<String> {
        let thp = self.versus(Setting { guest, host: Backing::Thp }, Setting { guest, host: Backing::Huge2m })?;
        let verdict = match direction(&thp) {
            Direction::Unclear => "do as well as a hugetlb pool, as far as this run can tell",
            Direction::Up => "are slower than a hugetlb pool",
            Direction::Down => "are faster than a hugetlb pool",
        };
        let place = if guest.is_some() { " on the host" } else { "" };
        Some(format!("Transparent huge pages{place} {verdict}: {}.", change_within(&thp)))
    }

    /// What 1 GiB pages add, where a guest can have them.
    fn gibibyte(&self) -> Option<String> {
        let giant = Setting::microvm(PageSize::Giant, Backing::Huge1g);
        let large = Setting::microvm(PageSize::Large, self.large(Some(PageSize::Large))?);
        Some(format!("1 GiB pages on both sides {}.", further(&self.versus(giant, large)?)))
    }

    /// What the first touch of each page costs once, by page size.
    fn fill(&self) -> Option<String> {
        let once = |setting: Setting| {
            let figures = self.figures(setting)?;
            let first = figures.first_pass?.value;
            let more = match times(first / figures.value.value).as_str() {
                "1.0 times" => "as much as later ones".to_owned(),
                times => format!("{times} a later one"),
            };
            Some((nanos(first), more))
        };
        let large = self.large(Some(PageSize::Large)).and_then(|host| once(Setting::microvm(PageSize::Large, host)));
        let (first, more) = once(SMALL)?;
        let small = format!("costs {first} ns an access with 4 KiB pages, {more}");
        let large = large.map_or(String::new(), |(first, more)| format!(", and {first} ns with 2 MiB pages, {more}"));
        Some(format!("The first pass in a fresh guest, which fills KVM's page table, {small}{large}."))
    }

    fn no_guest(&self) -> Option<String> {
        Some("No guest was measured, so the tax is not known; the figures are those of native memory.".to_owned())
    }

    /// What 2 MiB pages do without a guest.
    fn native_huge_pages(&self) -> Option<String> {
        let (large, small) = (Setting::native(self.large(None)?), Setting::native(Backing::Small));
        let change = self.versus(large, small)?;
        let verdict = match direction(&change) {
            Direction::Down => "make an access cheaper than 4 KiB pages do",
            Direction::Up => "make an access dearer than 4 KiB pages do",
            Direction::Unclear => "make no difference to 4 KiB pages that this run can tell",
        };
        Some(format!("2 MiB pages {verdict}: {}.", self.against(large, small, &change)?))
    }

    /// What 1 GiB pages do without a guest.
    fn native_gibibyte(&self) -> Option<String> {
        let (giant, large) = (Setting::native(Backing::Huge1g), Setting::native(self.large(None)?));
        Some(format!("1 GiB pages {}.", further(&self.versus(giant, large)?)))
    }
}

/// `4 KiB pages on both sides`, `2 MiB pages in the guest and 4 KiB pages on the host`.
fn sides(setting: Setting) -> String {
    let host = setting.host.page();
    match setting.guest {
        Some(leaf) if leaf != host => {
            format!("{} pages in the guest and {} pages on the host", leaf.prose(), host.prose())
        }
        Some(_) => format!("{} pages on both sides", host.prose()),
        None => format!("{} pages", host.prose()),
    }
}

/// What 1 GiB pages do beyond 2 MiB pages.
fn further(change: &Estimate) -> String {
    let verdict = match direction(change) {
        Direction::Down => "are faster still than 2 MiB pages",
        Direction::Up => "are slower than 2 MiB pages",
        Direction::Unclear => "add nothing to 2 MiB pages that this run can tell",
    };
    format!("{verdict}: {}", change_within(change))
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

#[cfg(test)]
mod tests;
