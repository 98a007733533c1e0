//! The progress bar: on a terminal only, and drawn only between trials.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use vmtax_core::trial::Outcome;

use crate::lab::{Progress, Until};

/// A bar with the time left.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    until: Until,
}

impl Bar {
    /// A bar on standard error; hidden where that is no terminal.
    pub fn new(until: Until) -> Self {
        let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr_with_hz(20));
        let style = ProgressStyle::with_template("{bar:24} {msg}").expect("a template of ours");
        bar.set_style(style.progress_chars("━╸─"));
        Bar { bar, until }
    }

    /// Draws where the run stands. Called between trials, never while one runs.
    pub fn draw(&self, progress: &Progress, failed: usize) {
        let in_block = progress.made as f64 / progress.of.max(1) as f64;
        let blocks = f64::from(progress.block) + in_block;
        let elapsed = progress.elapsed.as_secs_f64();
        let total = match self.until {
            Until::Blocks(n) | Until::BlocksOr(n, _) if blocks > 0.0 => elapsed / blocks * f64::from(n),
            Until::Blocks(_) => return,
            Until::PreciseOr(budget) | Until::BlocksOr(_, budget) => budget.as_secs_f64(),
        };
        let left = Duration::from_secs_f64((total - elapsed).max(0.0));
        self.bar.set_position((elapsed / total * 1000.0).min(1000.0) as u64);
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        let setting = progress.next.setting;
        self.bar.set_message(format!("block {}, {setting}{failed}, {} s left", progress.block + 1, left.as_secs()));
        self.bar.tick();
    }

    /// Takes it away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Whether an outcome is a failure, for the count beside the bar.
pub fn is_failed(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Ok(_) => false,
        Outcome::Failed { .. } => true,
    }
}
