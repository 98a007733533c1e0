//! The progress bar: on a terminal only, and drawn only between trials.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use vmtax_core::{setting::Backing, trial::Outcome};

pub use self::count::Count;
use crate::lab::{Progress, Until};

mod count;

/// A bar with the time left.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    until: Until,
}

impl Bar {
    /// A bar on standard error; hidden where that is no terminal.
    pub fn new(until: Until) -> Self {
        Bar { bar: line(), until }
    }

    /// Says that a pool's pages are being taken into use.
    pub fn prepare(&self, backing: Backing) {
        self.bar.set_message(format!("taking the pages of the {backing} pool into use"));
        self.bar.tick();
    }

    /// Draws where the run stands. Called between trials, never while one runs.
    pub fn draw(&self, progress: &Progress, failed: usize) {
        let elapsed = progress.elapsed.as_secs_f64();
        let left = match self.total(progress) {
            Some(total) => {
                self.bar.set_position((elapsed / total * 1000.0).min(1000.0) as u64);
                format!(", {:.0} s left", (total - elapsed).max(0.0))
            }
            None => String::new(),
        };
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        self.bar.set_message(format!("block {}, {}{failed}{left}", progress.block + 1, progress.next.setting));
        self.bar.tick();
    }

    /// Seconds the run will take; not known before the first trial unless there is a budget.
    fn total(&self, progress: &Progress) -> Option<f64> {
        let blocks = f64::from(progress.block) + progress.made as f64 / progress.of.max(1) as f64;
        let pace = |n: u32| (blocks > 0.0).then(|| progress.elapsed.as_secs_f64() / blocks * f64::from(n));
        match self.until {
            Until::Blocks(n) => pace(n),
            Until::PreciseOr(budget) => Some(budget.as_secs_f64()),
            Until::BlocksOr(n, budget) => Some(pace(n).unwrap_or(f64::MAX).min(budget.as_secs_f64())),
        }
    }

    /// Takes it away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A line on standard error, of a thousand steps.
fn line() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr_with_hz(20));
    let style = ProgressStyle::with_template("{bar:24} {wide_msg}").expect("a template of ours");
    bar.set_style(style.progress_chars("━╸─"));
    bar
}

/// Whether an outcome is a failure, for the count beside the bar.
pub fn is_failed(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Ok(_) => false,
        Outcome::Failed { .. } => true,
    }
}
