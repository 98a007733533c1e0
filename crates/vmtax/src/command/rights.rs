//! `vmtax rights`: which ways to huge pages are open to an ordinary user, and what would open the others.

use std::process::ExitCode;

use vmtax_report::{experiment, rights as report};

use super::{
    hand::{self, Asked},
    studies,
};
use crate::cli::RightsArgs;

/// Tries every way for real, as who runs it and as user 65534 without capabilities.
pub fn run(args: &RightsArgs) -> anyhow::Result<ExitCode> {
    let asked = Asked {
        name: "vmtax rights",
        plan: "title = \"Ways to huge pages, each tried for real\"\n[[workload]]\nprobe = \"rights\"\n".to_owned(),
        replication: "blocks = 1\n".to_owned(),
        seed: Some(0),
        reserve: hand::reserve(args.reserve),
        named: Vec::new(),
        results: &args.results,
    };
    let is_json = args.json;
    hand::run(asked, &|record| {
        Ok(if is_json {
            report::json(record, &studies::judged(record))
        } else {
            experiment::text(record, &studies::judged(record))
        })
    })
}
