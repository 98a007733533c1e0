//! `vmtax doctor`: what this host is, what can be measured on it, and what to do about the rest.

use std::process::ExitCode;

use vmtax_core::{
    availability::{self, Demand, Reserve},
    units::PageSize,
};
use vmtax_machine::{facts, microvm};
use vmtax_report::doctor::{self, Doctor};

use super::matrix::request::default_size;
use crate::{cli::DoctorArgs, output};

/// Looks, judges, prints. Changes nothing.
pub fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let host = facts::host();
    let arena = default_size(&host);
    let tables = microvm::low_bytes(arena, PageSize::Small);
    let demand = Demand { arena, tables, vcpus: 1, reserve: Reserve::No };
    let availability = availability::availability(&host, &availability::matrix(), demand);
    let text = if args.json {
        serde_json::to_string(&Doctor::new(&host, &availability))? + "\n"
    } else {
        doctor::doctor(&host, &availability)
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
