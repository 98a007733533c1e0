//! Huge pages prepared after stress: what a trial tells of its rounds, and the rounds a record holds.
//!
//! The study's question is how long *all* pages take that were asked for. A trial with a round that was granted fewer has no
//! such time, only a rate: left out, the round would take the slow end of the median with it; left in, it would pass for
//! a fast one.

use std::collections::BTreeMap;

use crate::{
    experiment::{Better, Finding, Metric, Record},
    stats::median,
    units::Bytes,
};

/// The metric that leads: the median over rounds to prepare all pages asked for.
pub const LEADING: &str = "seconds";

/// One round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// From 1.
    pub round: u32,
    /// Pages asked for.
    pub asked: u64,
    /// Pages granted.
    pub granted: u64,
    /// How long that took; positive.
    pub seconds: f64,
    /// How long compaction took, where it was asked for.
    pub compaction_seconds: Option<f64>,
    /// Memory of the stress that stayed meanwhile.
    pub held: Option<Bytes>,
    /// Free memory after the stress, before compaction; none where it cannot be read.
    pub before: Option<Scatter>,
    /// Free memory when the pages were prepared.
    pub after: Option<Scatter>,
}

/// How free memory lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scatter {
    /// Share of it in blocks smaller than such a page, 0 to 1 (`/proc/buddyinfo`).
    pub unusable: f64,
    /// The worst zone's index of external fragmentation: −1, or 0 to 1.
    pub index: f64,
}

/// A round of a record, and the trial it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The cell's name.
    pub cell: String,
    /// The block, from 0.
    pub block: u32,
    /// The round.
    pub round: Round,
}

/// What a trial of these rounds found.
pub fn finding(rounds: &[Round]) -> Finding {
    let metric = |name: &str, value: f64, unit: &str, better| {
        let metric = Metric { name: name.to_owned(), value, unit: unit.to_owned(), better };
        (value > 0.0).then_some(metric)
    };
    let short: Vec<&Round> = rounds.iter().filter(|round| round.granted < round.asked).collect();
    let times: Vec<f64> = rounds.iter().map(|round| round.seconds).collect();
    let rates: Vec<f64> = rounds.iter().map(|r| r.granted as f64 / r.seconds).collect();
    let mut metrics = Vec::new();
    let is_whole = short.is_empty() && !times.is_empty();
    metrics.extend(is_whole.then(|| metric(LEADING, median(&times), "s", Better::Lower)).flatten());
    metrics.extend(
        (!rates.is_empty()).then(|| metric("pages_per_second", median(&rates), "pages/s", Better::Higher)).flatten(),
    );
    for round in rounds {
        let n = round.round;
        metrics.extend(metric(&format!("seconds_round_{n}"), round.seconds, "s", Better::Lower));
        metrics.extend(metric(&format!("granted_round_{n}"), round.granted as f64, "pages", Better::Higher));
    }
    let caveats = short.iter().min_by_key(|round| round.granted).map(|least| {
        format!(
            "{} of {} rounds were granted fewer pages, {} of {} at least: the time for all of them is not known",
            short.len(),
            rounds.len(),
            least.granted,
            least.asked
        )
    });
    Finding { metrics, evidence: evidence(rounds), caveats: caveats.into_iter().collect() }
}

fn evidence(rounds: &[Round]) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut tell = |name: String, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    tell("asked".to_owned(), rounds.iter().map(|r| r.asked).max().map(|n| n.to_string()));
    tell("granted".to_owned(), rounds.iter().map(|r| r.granted).min().map(|n| n.to_string()));
    for round in rounds {
        let n = round.round;
        tell(format!("granted_round_{n}"), Some(round.granted.to_string()));
        tell(format!("compaction_seconds_round_{n}"), round.compaction_seconds.map(|s| s.to_string()));
        tell(format!("held_bytes_round_{n}"), round.held.map(|held| held.0.to_string()));
        for (when, scatter) in [("before", round.before), ("after", round.after)] {
            tell(format!("unusable_{when}_round_{n}"), scatter.map(|s| s.unusable.to_string()));
            tell(format!("extfrag_{when}_round_{n}"), scatter.map(|s| s.index.to_string()));
        }
    }
    facts
}

/// The rounds of a finding, in their order.
pub fn rounds(finding: &Finding) -> Vec<Round> {
    let number = |name: String| finding.evidence.get(&name)?.parse::<f64>().ok();
    let of = |n: u32| {
        let scatter = |when: &str| {
            let (unusable, index) = (format!("unusable_{when}_round_{n}"), format!("extfrag_{when}_round_{n}"));
            Some(Scatter { unusable: number(unusable)?, index: number(index)? })
        };
        Some(Round {
            round: n,
            asked: number("asked".to_owned())? as u64,
            granted: number(format!("granted_round_{n}"))? as u64,
            seconds: finding.value(&format!("seconds_round_{n}"))?,
            compaction_seconds: number(format!("compaction_seconds_round_{n}")),
            held: number(format!("held_bytes_round_{n}")).map(|bytes| Bytes(bytes as u64)),
            before: scatter("before"),
            after: scatter("after"),
        })
    };
    (1..).map_while(of).collect()
}

/// Every round of a workload, twins included, in order of time.
pub fn placed(record: &Record, workload: &str) -> Vec<Placed> {
    let cells = record.plan.cells();
    let names: Vec<String> = cells.iter().filter(|c| c.workload == workload).map(|cell| cell.name()).collect();
    let mut all: Vec<Placed> = Vec::new();
    for cell in &names {
        for (block, found) in record.findings(cell) {
            all.extend(rounds(found).into_iter().map(|round| Placed { cell: cell.clone(), block, round }));
        }
    }
    all.sort_by_key(|placed| placed.block);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(round: u32, granted: u64, seconds: f64) -> Round {
        let before = Some(Scatter { unusable: 0.25, index: -1.0 });
        Round {
            round,
            asked: 100,
            granted,
            seconds,
            compaction_seconds: None,
            held: Some(Bytes(4096)),
            before,
            after: None,
        }
    }

    #[test]
    fn rounds_are_read_back_as_they_were_told() {
        let told =
            [round(1, 100, 0.5), round(2, 100, 0.25), Round { compaction_seconds: Some(1.5), ..round(3, 0, 0.125) }];
        assert_eq!(rounds(&finding(&told)), told);
    }

    #[test]
    fn a_round_that_was_granted_fewer_pages_is_no_fast_one() {
        let found = finding(&[round(1, 100, 0.5), round(2, 50, 0.1), round(3, 100, 0.7)]);
        assert_eq!((found.value(LEADING), found.value("pages_per_second")), (None, Some(200.0)));
        assert_eq!((found.evidence["granted"].as_str(), found.evidence["asked"].as_str()), ("50", "100"));
        assert!(found.caveats[0].starts_with("1 of 3 rounds were granted fewer pages, 50 of 100"), "{found:?}");
        let whole = finding(&[round(1, 100, 0.5), round(2, 100, 0.7)]);
        assert_eq!((whole.metrics[0].name.as_str(), whole.metrics[0].value), (LEADING, 0.6));
        assert_eq!(whole.caveats, [""; 0]);
    }
}
