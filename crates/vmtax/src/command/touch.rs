//! `vmtax touch`: the cost of the first access to memory.

use std::process::ExitCode;

use vmtax_core::units::{Bytes, PageSize};
use vmtax_machine::facts;
use vmtax_report::{experiment, touch as report};

use super::{
    hand::{self, Asked, list},
    matrix::request::default_size,
    studies,
};
use crate::cli::{Form, GuestLevel, TouchArgs};

/// Measures, keeps, and prints what was measured, also when it was interrupted.
pub fn run(args: &TouchArgs) -> anyhow::Result<ExitCode> {
    let host = facts::host();
    let size = args.size.unwrap_or_else(|| default_size(&host));
    hand::fits(size, &host)?;
    let asked = Asked {
        name: "vmtax touch",
        plan: plan(args, size),
        replication: hand::replication(&args.blocks),
        seed: args.blocks.seed,
        reserve: hand::reserve(args.blocks.reserve),
        named: hand::named(args.blocks.host.as_ref()),
        results: &args.results,
    };
    hand::run(asked, &|record| {
        Ok(match args.form {
            Form { json: true, .. } => report::json(record),
            Form { csv: true, .. } => report::csv(record),
            Form { .. } => experiment::text(record, &studies::judged(record)),
        })
    })
}

/// Native, and every leaf asked for, on every backing asked for; unpopulated and populated are workloads of their own, each
/// with its baseline.
fn plan(args: &TouchArgs, size: Bytes) -> String {
    let is_meant = |leaf: &PageSize| match &args.guest {
        None => true,
        Some(named) => named.iter().filter_map(|level: &GuestLevel| level.leaf()).any(|other| other == *leaf),
    };
    let leaves: Vec<&str> = PageSize::ALL.iter().filter(|leaf| is_meant(leaf)).map(|leaf| leaf.name()).collect();
    let (venues, guest) = match leaves.is_empty() {
        true => (list(["native"]), String::new()),
        false => (list(["native", "microvm"]), format!("guest = {}\n", list(leaves))),
    };
    let workload = |name: &str, populate: &str| {
        format!(
            "[[workload]]\nname = \"{name}\"\nprobe = \"touch\"\nsize = \"{}\"\npopulate = {populate}\n",
            hand::size(size)
        )
    };
    format!(
        "title = \"First access: one byte written in each 4 KiB page of {size}\"\n\
         [factors]\nvenue = {venues}\nhost = {}\n{guest}{}{}",
        list(hand::hosts(args.blocks.host.as_ref()).iter().map(|host| host.name())),
        workload("touch", "false"),
        workload("touch-populated", "true"),
    )
}
