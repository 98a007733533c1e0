//! `vmtax bloat`: memory really used after touching a few bytes of a large mapping, on each backing.

use std::process::ExitCode;

use vmtax_report::{bloat as report, experiment};

use super::{
    Refusal,
    hand::{self, Asked, list, size},
    studies,
};
use crate::cli::BloatArgs;

/// Maps, touches, reads back, unmaps; keeps and prints.
pub fn run(args: &BloatArgs) -> anyhow::Result<ExitCode> {
    let asked = Asked {
        name: "vmtax bloat",
        plan: plan(args)?,
        replication: format!("blocks = {}\n", args.blocks),
        seed: None,
        reserve: hand::reserve(args.reserve),
        named: hand::named(args.host.as_ref()),
        results: &args.results,
    };
    let is_json = args.json;
    hand::run(asked, &|record| {
        Ok(if is_json { report::json(record) } else { experiment::text(record, &studies::judged(record)) })
    })
}

fn plan(args: &BloatArgs) -> Result<String, Refusal> {
    for backing in args.host.iter().flatten().map(|level| level.backing()) {
        if args.size.0 == 0 || !args.size.0.is_multiple_of(backing.page().bytes()) {
            let message = format!("--size {} is no multiple of {}", args.size, backing.page().prose());
            return Err(Refusal::new(message, "--size 1G"));
        }
    }
    let mut gaps = args.gap.clone();
    gaps.sort_unstable();
    gaps.dedup();
    Ok(format!(
        "title = \"Memory used after touching a few bytes of a mapping of {}\"\n\
         [factors]\nhost = {}\nstride = {}\n[[workload]]\nprobe = \"bloat\"\nsize = \"{}\"\n",
        args.size,
        list(hand::hosts(args.host.as_ref()).iter().map(|host| host.name())),
        list(gaps.into_iter().map(size)),
        size(args.size),
    ))
}
