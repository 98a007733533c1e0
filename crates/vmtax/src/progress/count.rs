//! The progress of a plan: trials made, and the time left.

use std::time::Duration;

use indicatif::ProgressBar;
use vmtax_core::plan::Replication;

use crate::lab::experiment::Stand;

/// A bar with the time left.
#[derive(Debug)]
pub struct Count {
    bar: ProgressBar,
    replication: Replication,
    /// When the first trial of this session began, in the run's time.
    begun: Option<Duration>,
}

impl Count {
    /// A bar on standard error; hidden where that is no terminal.
    pub fn new(replication: Replication) -> Count {
        Count { bar: super::line(), replication, begun: None }
    }

    /// Draws where the run stands. Called between trials, never while one runs.
    pub fn draw(&mut self, stand: &Stand, failed: usize) {
        let begun = *self.begun.get_or_insert(stand.elapsed);
        let left = self.left(stand, begun).map_or(String::new(), |left| {
            let total = (stand.elapsed + left).as_secs_f64();
            self.bar.set_position((stand.elapsed.as_secs_f64() / total * 1000.0).min(1000.0) as u64);
            format!(", {:.0} s left", left.as_secs_f64())
        });
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        self.bar.set_message(format!("block {}, {}{failed}{left}", stand.block + 1, stand.next));
        self.bar.tick();
    }

    /// At the pace of this session; with a target, the rest of the budget at most.
    fn left(&self, stand: &Stand, begun: Duration) -> Option<Duration> {
        match self.replication {
            Replication::Target { budget, .. } => Some(budget.saturating_sub(stand.elapsed)),
            Replication::Blocks(n) => at_pace(stand, begun, n),
            Replication::Within { blocks, budget } => {
                let rest = budget.saturating_sub(stand.elapsed);
                Some(at_pace(stand, begun, blocks).map_or(rest, |left| left.min(rest)))
            }
        }
    }

    /// Takes it away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn at_pace(stand: &Stand, begun: Duration, blocks: u32) -> Option<Duration> {
    let pace = (stand.elapsed - begun).checked_div(u32::try_from(stand.made_now).ok()?)?;
    let trials = (blocks as usize * stand.of).saturating_sub(stand.made);
    Some(pace * u32::try_from(trials).ok()?)
}
