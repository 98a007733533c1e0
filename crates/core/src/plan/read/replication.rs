//! `[replication]`: how often everything is measured, and the seed.

use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::{Entry, Reader};
use crate::plan::{DEFAULT_BLOCKS, Replication};

/// More blocks than any run has time for; a number beyond it is a slip.
const MOST_BLOCKS: u64 = 100_000;
/// Retries where a plan does not say; one that fails twice is likely to fail again.
const RETRIES: u32 = 1;
const MOST_RETRIES: u64 = 10;
/// The largest seed: what TOML and SQLite both hold.
const MOST_SEED: u64 = i64::MAX as u64;

impl<'t> Reader<'t> {
    /// The replication, [`DEFAULT_BLOCKS`] where there is none or a wrong one, the seed, and the retries.
    pub(super) fn replication(&mut self, document: &DeTable<'t>) -> (Replication, Option<u64>, u32) {
        let default = Replication::Blocks(DEFAULT_BLOCKS);
        let Some((table, _)) = self.table(document, "replication") else { return (default, None, RETRIES) };
        self.refuse_unknown(table, &["blocks", "target", "budget", "seed", "retries"], "[replication] has", |_| None);
        let seed = self.entry(table, "seed").and_then(|entry| self.whole_number(&entry, 0, MOST_SEED));
        let retries = self.entry(table, "retries").and_then(|entry| self.whole_number(&entry, 0, MOST_RETRIES));
        let retries = retries.map_or(RETRIES, |retries| retries as u32);
        let [blocks, target, budget] = ["blocks", "target", "budget"].map(|key| self.entry(table, key));
        let replication = match (blocks, target, budget) {
            (None, None, None) => Some(default),
            (Some(blocks), None, None) => {
                self.whole_number(&blocks, 1, MOST_BLOCKS).map(|n| Replication::Blocks(n as u32))
            }
            (Some(blocks), None, Some(budget)) => {
                let blocks = self.whole_number(&blocks, 1, MOST_BLOCKS);
                let budget = self.time(&budget);
                blocks.zip(budget).map(|(n, budget)| Replication::Within { blocks: n as u32, budget })
            }
            (None, Some(target), Some(budget)) => self.target(&target, &budget),
            (None, Some(target), None) => {
                let label = "add the time to be spent at most, such as budget = \"10m\"";
                self.report("a target needs a budget", target.span, label);
                None
            }
            (None, None, Some(budget)) => {
                self.report(
                    "a budget needs a target",
                    budget.span,
                    "add one, such as target = \"2%\", or blocks to make within it",
                );
                None
            }
            (Some(blocks), Some(_), _) => {
                self.report("blocks and a target at once", blocks.span, "either blocks, or target with budget");
                None
            }
        };
        (replication.unwrap_or(default), seed, retries)
    }

    fn target(&mut self, target: &Entry<'_, 't>, budget: &Entry<'_, 't>) -> Option<Replication> {
        let half_width = target.value.get_ref().as_str().and_then(fraction);
        if half_width.is_none() {
            let message = format!("`target` cannot be {}", self.source(target.value.span()));
            self.report(message, target.value.span(), "half an interval's width in per cent, such as \"2%\"");
        }
        let budget = self.time(budget);
        Some(Replication::Target { half_width: half_width?, budget: budget? })
    }

    fn time(&mut self, budget: &Entry<'_, 't>) -> Option<Duration> {
        let time = budget.value.get_ref().as_str().and_then(duration);
        if time.is_none() {
            let message = format!("`budget` cannot be {}", self.source(budget.value.span()));
            self.report(message, budget.value.span(), "a time, such as \"90s\", \"10m\" or \"2h\"");
        }
        time
    }

    fn whole_number(&mut self, entry: &Entry<'_, 't>, least: u64, most: u64) -> Option<u64> {
        let number = match entry.value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let message = format!("`{}` cannot be {}", entry.key, self.source(entry.value.span()));
            self.report(message, entry.value.span(), format!("a whole number from {least} to {most}"));
        }
        number
    }
}

/// `2%`, as a fraction in (0, 1].
fn fraction(text: &str) -> Option<f64> {
    let percent: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    (percent > 0.0 && percent <= 100.0).then_some(percent / 100.0)
}

fn duration(text: &str) -> Option<Duration> {
    humantime::parse_duration(text).ok().filter(|time| !time.is_zero())
}
