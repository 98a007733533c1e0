//! The progress of a series of trials: blocks made, and the time left.

use super::Bar;
use crate::lab::{Until, series::Step};

/// The bar of a series.
#[derive(Debug)]
pub struct Pace(Bar);

impl Pace {
    /// A bar on standard error; hidden where that is no terminal.
    pub fn new(until: Until) -> Self {
        Pace(Bar::new(until))
    }

    /// Draws where the series stands, before the trial called `next`.
    pub fn draw<C>(&self, step: &Step<C>, next: &str) {
        let Bar { bar, until } = &self.0;
        let (elapsed, blocks) = (step.elapsed.as_secs_f64(), f64::from(step.block) + step.made as f64 / step.of as f64);
        let budget = until.budget().map_or(f64::MAX, |budget| budget.as_secs_f64());
        let planned = until.blocks().filter(|_| blocks > 0.0).map(|n| elapsed / blocks * f64::from(n));
        let total = planned.unwrap_or(f64::MAX).min(budget);
        bar.set_position((elapsed / total * 1000.0).min(1000.0) as u64);
        let left = if total < f64::MAX { format!(", {:.0} s left", (total - elapsed).max(0.0)) } else { String::new() };
        let failed = if step.failed > 0 { format!(", {} failed", step.failed) } else { String::new() };
        bar.set_message(format!("block {}, {next}{failed}{left}", step.block + 1));
        bar.tick();
    }

    /// Takes it away.
    pub fn clear(&self) {
        self.0.clear();
    }
}
