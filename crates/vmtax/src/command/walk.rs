//! `vmtax walk`: the cost of a reference over strides, orders and passes, from the first touch on.

use std::process::ExitCode;

use vmtax_core::{
    setting::{Backing, Setting},
    units::Bytes,
    walk,
};
use vmtax_report::walk as report;

use super::{
    Refusal,
    series::{Measured, Work, measure},
};
use crate::{
    cli::{Form, WalkArgs},
    lab, output,
};

/// Measures, and prints what was measured, also when it was interrupted.
pub fn run(args: &WalkArgs) -> anyhow::Result<ExitCode> {
    let request = request(args)?;
    let work = Work {
        cells: request.cells(),
        setting: |cell: walk::Cell| Setting::native(cell.host),
        name: |cell| format!("{} pages, {}, stride {}", cell.host, cell.order.name(), cell.stride),
        size: request.size,
        blocks: &args.blocks,
    };
    let Measured { series, code } = measure(work, |bench, cell| lab::walk::trial(bench, cell, &request))?;
    output::print(&match args.form {
        Form { json: true, .. } => report::json(&series, &request),
        Form { csv: true, .. } => report::csv(&series, &request),
        Form { .. } => report::text(&series, &request),
    })?;
    Ok(code)
}

fn request(args: &WalkArgs) -> Result<walk::Request, Refusal> {
    let (from, to) = args.strides;
    if !args.size.0.is_multiple_of(to.0) || args.size.0 / to.0 < 2 {
        return Err(Refusal::new(
            format!("--size {} is not two strides of {to} or more, and whole", args.size),
            "a larger --size, or smaller --strides, such as --size 128M --strides 4..2M",
        ));
    }
    let doubled = std::iter::successors(Some(from), |stride| Some(Bytes(stride.0 * 2)));
    let named = args.blocks.host.iter().flatten().map(|level| level.backing());
    let hosts: Vec<Backing> = named.collect();
    Ok(walk::Request {
        size: args.size,
        strides: doubled.take_while(|stride| *stride <= to).collect(),
        passes: args.passes,
        hosts: if hosts.is_empty() { Backing::ALL.to_vec() } else { hosts },
        orders: args.order.orders(),
    })
}
