//! Tests of the operating system in a run, related to UnixBench's baseline system, setting by setting.

use super::Record;
use crate::{
    os::{Mean, Test},
    plan::{Job, Setting},
};

/// What was run in one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratios {
    /// The setting.
    pub setting: Setting,
    /// Workloads with their test and its median rate, in the order of the plan.
    pub rates: Vec<(String, Test, f64)>,
    /// Whether a processor that QEMU emulates has part in one of them.
    pub emulated: bool,
}

impl Record {
    /// Those of every setting in which a test succeeded.
    pub fn ratios(&self) -> Vec<Ratios> {
        let mut all: Vec<Ratios> = Vec::new();
        for (cell, job) in self.plan.workloads.iter().flat_map(|workload| self.plan.jobs(&workload.name)) {
            let (Job::Os(os), name) = (job, cell.name()) else { continue };
            let Some(rate) = self.estimate(&name, Test::RATE) else { continue };
            let at = all.iter().position(|ratios| ratios.setting == cell.setting).unwrap_or_else(|| {
                all.push(Ratios { setting: cell.setting.clone(), rates: Vec::new(), emulated: false });
                all.len() - 1
            });
            all[at].rates.push((cell.workload, os.test, rate.value));
            all[at].emulated |= self.is_emulated(&name);
        }
        all
    }
}

impl Ratios {
    /// The mean over tests that differ; none of one alone, and none where one was run in two ways.
    pub fn mean(&self) -> Option<Mean> {
        let rates: Vec<(Test, f64)> = self.rates.iter().map(|(_, test, rate)| (*test, *rate)).collect();
        let is_twice = |at: usize| rates[..at].iter().any(|(test, _)| *test == rates[at].0);
        let is_mean = rates.len() > 1 && !(0..rates.len()).any(is_twice);
        is_mean.then(|| Mean::of(&rates))?
    }
}
