//! `vmtax walk`: the cost of a reference over strides, orders and passes, from the first touch on.

use std::process::ExitCode;

use vmtax_core::units::{Bytes, MIB};
use vmtax_machine::facts;
use vmtax_report::{experiment, walk as report};

use super::{
    Refusal,
    hand::{self, Asked, list, size},
    studies,
};
use crate::cli::{Form, WalkArgs};

/// References of a trial at most: one pass at 4 bytes over 128 MiB, and 64 of them from 256 bytes on. Without it a random
/// walk at 4 bytes would take a minute a trial. A plan has no such limit unless it says so.
const MOST_REFERENCES: u64 = 32 * MIB;

/// Measures, keeps, and prints what was measured, also when it was interrupted.
pub fn run(args: &WalkArgs) -> anyhow::Result<ExitCode> {
    let asked = Asked {
        name: "vmtax walk",
        plan: plan(args)?,
        replication: hand::replication(&args.blocks),
        seed: args.blocks.seed,
        reserve: hand::reserve(args.blocks.reserve),
        named: hand::named(args.blocks.host.as_ref()),
        results: &args.results,
    };
    hand::run(asked, &|record| {
        Ok(match args.form {
            Form { json: true, .. } => report::json(record, &studies::judged(record)),
            Form { csv: true, .. } => report::csv(record),
            Form { .. } => experiment::text(record, &studies::judged(record)),
        })
    })
}

fn plan(args: &WalkArgs) -> Result<String, Refusal> {
    let (from, to) = args.strides;
    if !args.size.0.is_multiple_of(to.0) || args.size.0 / to.0 < 2 {
        return Err(Refusal::new(
            format!("--size {} is not two strides of {to} or more, and whole", args.size),
            "a larger --size, or smaller --strides, such as --size 128M --strides 4..2M",
        ));
    }
    hand::fits(args.size, &facts::host())?;
    let doubled = std::iter::successors(Some(from), |stride| Some(Bytes(stride.0 * 2)));
    let strides = doubled.take_while(|stride| *stride <= to).map(size);
    let limit = match args.size.0 / from.0 * u64::from(args.passes) {
        references if references > MOST_REFERENCES => format!("references = {MOST_REFERENCES}\n"),
        _ => String::new(),
    };
    Ok(format!(
        "title = \"Walks over {} of fresh memory, 4-byte writes; first touches included\"\n\
         [factors]\nhost = {}\nstride = {}\norder = {}\n\
         [[workload]]\nprobe = \"walk\"\nsize = \"{}\"\npasses = {}\n{limit}",
        args.size,
        list(hand::hosts(args.blocks.host.as_ref()).iter().map(|host| host.name())),
        list(strides),
        list(args.order.orders().iter().map(|order| order.name())),
        size(args.size),
        args.passes,
    ))
}
