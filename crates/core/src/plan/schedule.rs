//! Which cell of a plan is measured when: a split-split-plot design, drawn anew for each block.
//!
//! ```text
//!  block ─┬─ thp=always ──┬─ host=2m size=1G ── cell, cell, cell     whole plots: knobs of the host
//!         │               └─ host=4k size=1G ── cell, cell           plots: memory, laid once for its cells
//!         └─ thp=never ───── host=4k size=1G ── cell, cell
//! ```
//! Every block holds every cell once. Whole plots come in random order, so do the plots of each, and the cells of each
//! of those. The order follows from the seed, the block's number and the names of the cells alone: neither the order in
//! which the author wrote the plan nor a factor that is added to the table later changes it.

use rand::seq::SliceRandom;

use super::{Cell, Plan, Setting};
use crate::{
    factor::Hardness,
    schedule::{dice, plots},
};

/// What shares the knobs of the host: set them, measure, put them back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholePlot {
    /// The knobs to be set. Others stand as they were found, also those of the plan that mean nothing here: a native
    /// setting does not care for `nested_paging`.
    pub knobs: Setting,
    /// At least one.
    pub plots: Vec<Plot>,
}

/// What shares its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// The memory to be laid, as [`Plan::memory`] has it; a workload that is about fresh memory lays it in each trial.
    pub memory: Setting,
    /// At least one, in the order in which they are measured.
    pub cells: Vec<Cell>,
}

/// The order of block number `block` (from 0) of the run of `plan` with this seed.
pub fn block(plan: &Plan, seed: u64, block: u32) -> Vec<WholePlot> {
    let mut dice = dice(seed, block);
    let mut cells = plan.cells();
    cells.sort_by_cached_key(Cell::name);
    let knobs = |cell: &Cell| cell.setting.stratum(Hardness::WholePlot);
    let mut whole_plots = Vec::new();
    for (_, cells) in plots(cells, |cell| knobs(cell).to_string(), &mut dice) {
        let mut whole = WholePlot { knobs: knobs(&cells[0]), plots: Vec::new() };
        for (_, mut cells) in plots(cells, |cell| plan.memory(cell).to_string(), &mut dice) {
            cells.shuffle(&mut dice);
            whole.plots.push(Plot { memory: plan.memory(&cells[0]), cells });
        }
        whole_plots.push(whole);
    }
    whole_plots
}

impl WholePlot {
    /// Its cells, in the order in which they are measured.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.plots.iter().flat_map(|plot| &plot.cells)
    }
}
