//! From trials to the figures of a table: one row a setting, and what holds for all of them.
//!
//! Nothing here depends on the order of the trials, on chance or on a clock. What a reader of a table may ask:
//! - A **value** is the median over blocks of the trials' values.
//! - The **tax** of a guest is the median over blocks of its value divided by the native value on the same backing in
//!   the same block, minus one. A block in which either of them failed gives no ratio.
//! - The **noise floor** is the same ratio of the baseline's twin to the baseline: A′/A.
//! - A tax is **distinguishable** when its interval excludes 0 and it is larger, up or down, than the difference that
//!   A′/A shows where there is none: `|ln(1 + tax)| > |ln(A′/A)|`. Tried on 40,000 simulated runs of 7 blocks with 2 %
//!   noise a trial; per cent of the runs in which a tax of 5 % was found, and one of 0:
//!
//!   | beside excluding 0 | found 5 % | found 0 |
//!   |---|---|---|
//!   | nothing | 94.5 | 5.3 |
//!   | this rule | 93.8 | 3.9 |
//!   | the tax exceeds the half width of the noise floor's interval | 89.1 | 1.7 |
//!   | the tax lies beyond both ends of that interval, up and down | 77.9 | 0.5 |
//!   | the two intervals are disjoint | 44.8 | 0.1 |
//!
//!   The rule judges one tax. Were all twelve taxes of a table 0, one of them would still pass it every other run.
//! - Twin and baseline share a backing, as do a guest and its native. The noise floor therefore says nothing about
//!   ratios between backings, and `versus_baseline` is not judged by it.

mod cell;
mod figures;

use serde::{Deserialize, Serialize};

pub use cell::{CellSummary, Outcome};
pub use figures::{CaveatCount, Dissent, Figures};

use crate::{
    schedule,
    setting::{Backing, Cell, Replica, Setting},
    stats::Estimate,
    trial::{Trial, Unavailable},
    units::PageSize,
};
use cell::Series;

/// All that a run says, in the order of its table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// What `versus_baseline` is measured against: [`schedule::baseline`] of the settings that are available.
    pub baseline: Option<Setting>,
    /// Blocks in which every available cell, the twin included, has had its trial, successful or not.
    pub blocks: u32,
    /// The ratio A′/A of two measurements of the same thing; none before both have succeeded in one block.
    pub noise_floor: Option<Estimate>,
    /// One for each setting asked for: native first, then guest leaves, each by backing, smallest pages first.
    pub cells: Vec<CellSummary>,
}

/// Why trials cannot be summarized. Either is a mistake of the program that stored them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnalysisError {
    /// Which of two trials counts must be decided where they are stored; here it would depend on their order.
    #[error("block {block} holds two trials of {} ({})", .cell.setting, .cell.replica.name())]
    Duplicate {
        /// The block, from 0.
        block: u32,
        /// The cell.
        cell: Cell,
    },
    /// A trial that belongs to no row of the table.
    #[error("block {block} holds a trial of {setting}, which was not asked for")]
    Unrequested {
        /// The block, from 0.
        block: u32,
        /// The setting.
        setting: Setting,
    },
}

impl Summary {
    /// Summarizes `trials` of the settings asked for; `unavailable` lists those of them that cannot be measured here.
    ///
    /// A setting that has trials is judged by them, also when it is listed as unavailable: it may have become so.
    pub fn of(requested: &[Setting], unavailable: &[Unavailable], trials: &[Trial]) -> Result<Summary, AnalysisError> {
        let trials = in_order(trials, requested)?;
        let available: Vec<Setting> = requested
            .iter()
            .copied()
            .filter(|setting| {
                unavailable.iter().all(|u| u.setting != *setting) || trials.iter().any(|t| t.cell.setting == *setting)
            })
            .collect();
        let baseline = schedule::baseline(&available);
        let of = |setting, replica| Series::of(Cell { setting, replica }, &trials);
        let noise_floor = baseline.and_then(|setting| of(setting, Replica::APrime).ratio_to(&of(setting, Replica::A)));
        let cells = table_order()
            .filter(|setting| requested.contains(setting))
            .map(|setting| match unavailable.iter().find(|u| u.setting == setting && !available.contains(&setting)) {
                Some(why) => CellSummary::unavailable(why),
                None => CellSummary::of(setting, &trials, baseline, noise_floor),
            })
            .collect();
        Ok(Summary { baseline, blocks: complete_blocks(&schedule::cells(&available), &trials), noise_floor, cells })
    }

    /// What a reader must know about all trials together, one entry a kind.
    pub fn caveats(&self) -> Vec<CaveatCount> {
        let figures = self.cells.iter().filter_map(CellSummary::figures);
        CaveatCount::merge(figures.flat_map(|figures| figures.caveats.iter().copied()))
    }

    /// The widest interval of the table, as half its width over what it is the interval of: 0.02 means that every
    /// value, and every ratio behind a tax, is known to within ±2 %.
    ///
    /// Cells without a successful trial are left out: waiting does not help them. None while no cell has one, or
    /// while an interval that more blocks will bring is missing. The ratio to the baseline is not waited for: it
    /// crosses backings, whose differences are large.
    ///
    /// Stopping when this is small favours runs that look calm by chance. Simulated coverage of intervals stopped at
    /// ±2 %, with 20 blocks at most: for a single ratio 88 to 91 % when block 2 may be the last, 92 to 95 % from block
    /// 5 on; for the worst of twelve ratios 95 % throughout. Ask from the fifth block on.
    pub fn worst_relative_half_width(&self) -> Option<f64> {
        self.cells
            .iter()
            .filter_map(CellSummary::figures)
            .flat_map(|figures| {
                let value = figures.value.half_width().map(|half| half / figures.value.value);
                let tax = figures.tax.map(|tax| tax.half_width().map(|half| half / (1.0 + tax.value)));
                [Some(value), tax].into_iter().flatten()
            })
            .try_fold(None, |widest: Option<f64>, width| Some(Some(widest.unwrap_or(0.0).max(width?))))
            .flatten()
    }
}

/// The ratio of one setting to another, minus one, over the blocks in which both succeeded; none when there are none.
pub fn versus(trials: &[Trial], setting: Setting, reference: Setting) -> Option<Estimate> {
    let trials: Vec<&Trial> = trials.iter().collect();
    let of = |setting| Series::of(Cell { setting, replica: Replica::A }, &trials);
    of(setting).ratio_to(&of(reference)).map(Estimate::minus_one)
}

/// Native first, then guest leaves, each by backing.
fn table_order() -> impl Iterator<Item = Setting> {
    let guests = std::iter::once(None).chain(PageSize::ALL.map(Some));
    guests.flat_map(|guest| Backing::ALL.map(|host| Setting { guest, host }))
}

/// The trials by block and cell, each of them once.
fn in_order<'t>(trials: &'t [Trial], requested: &[Setting]) -> Result<Vec<&'t Trial>, AnalysisError> {
    let mut sorted: Vec<&Trial> = trials.iter().collect();
    sorted.sort_by_key(|trial| (trial.block, trial.cell));
    if let Some(stray) = sorted.iter().find(|trial| !requested.contains(&trial.cell.setting)) {
        return Err(AnalysisError::Unrequested { block: stray.block, setting: stray.cell.setting });
    }
    match sorted.windows(2).find(|pair| (pair[0].block, pair[0].cell) == (pair[1].block, pair[1].cell)) {
        Some(pair) => Err(AnalysisError::Duplicate { block: pair[0].block, cell: pair[0].cell }),
        None => Ok(sorted),
    }
}

fn complete_blocks(cells: &[Cell], trials: &[&Trial]) -> u32 {
    let is_complete =
        |block: &[&Trial]| !cells.is_empty() && cells.iter().all(|cell| block.iter().any(|t| t.cell == *cell));
    trials.chunk_by(|a, b| a.block == b.block).filter(|block| is_complete(block)).count() as u32
}

#[cfg(test)]
mod tests;
