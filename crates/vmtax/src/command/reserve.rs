//! `vmtax reserve`: the cost of preparing huge pages, after the memory has been fragmented.

use std::process::ExitCode;

use vmtax_core::factor::Level;
use vmtax_machine::{
    knob::{self, available_memory},
    reserve::Plan,
};
use vmtax_report::{experiment, reserve as report};

use super::{
    Refusal,
    hand::{self, Asked},
    studies,
};
use crate::cli::ReserveArgs;

/// Measures round by round, keeps, prints; the pool is put back after each round.
pub fn run(args: &ReserveArgs) -> anyhow::Result<ExitCode> {
    let asked = Asked {
        name: "vmtax reserve",
        plan: plan(args)?,
        replication: format!("blocks = {}\n", args.blocks),
        seed: Some(args.seed),
        reserve: hand::reserve(false),
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

fn plan(args: &ReserveArgs) -> anyhow::Result<String> {
    let (page, host) = (args.page.page(), knob::Host::default());
    let published = Plan::published(&host, page, args.seed)?;
    let pages = args.pages.unwrap_or(published.pages);
    let most = available_memory(&host)?.0 / 2 / page.bytes();
    if pages == 0 || pages > most {
        return Err(Refusal::new(
            format!("cannot prepare {pages} pages of {}: half of the available memory holds {most}", page.prose()),
            match most {
                0 => "free some memory".to_owned(),
                most => format!("--pages {}", most.min(published.pages.max(1))),
            },
        )
        .into());
    }
    let share = |share: f64| Level::Share((share * 1e4).round() as u32);
    Ok(format!(
        "title = \"Time to prepare huge pages: {pages} of {}, after stress that fragments memory\"\n\
         [[workload]]\nprobe = \"reserve\"\npage = \"{}\"\npages = {pages}\nrounds = {}\ncompact = {}\nstress = \"{}\"\n\
         kept = \"{}\"\n",
        page.prose(),
        page.name(),
        args.rounds,
        args.compact,
        share(args.stress),
        share(args.kept),
    ))
}
