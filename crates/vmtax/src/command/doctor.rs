//! `vmtax doctor`: what this host is, what can be measured on it, and what to do about the rest.

use std::process::ExitCode;

use vmtax_core::{
    availability::{self, Demand, Reserve},
    units::PageSize,
};
use vmtax_machine::{facts, microvm};
use vmtax_report::doctor::{self, Doctor, Guests, Part};

use super::matrix::request::default_size;
use crate::{
    cli::DoctorArgs,
    guest::{Accel, Machine, boot},
    image::{Kernel, Source},
    output,
};

/// Looks, judges, prints. Changes nothing.
pub fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let host = facts::host();
    let arena = default_size(&host);
    let tables = microvm::low_bytes(arena, PageSize::Small);
    let demand = Demand { arena, tables, vcpus: 1, reserve: Reserve::No };
    let availability = availability::availability(&host, &availability::matrix(), demand);
    let text = if args.json {
        serde_json::to_string(&Doctor::new(&host, &availability, &guests()))? + "\n"
    } else {
        doctor::doctor(&host, &availability, &guests())
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What Linux guests would take, as far as it is here.
fn guests() -> Guests {
    let qemu = match boot::program(&Machine::new(Accel::Tcg).qemu) {
        Ok(path) => Part::Ok { found: path.display().to_string() },
        Err(error) => Part::Missing { reason: error.to_string(), remedy: error.remedy() },
    };
    let kernel = match Kernel::find(&Source::Found) {
        Ok(kernel) => Part::Ok { found: kernel.release },
        Err(error) => Part::Missing { reason: error.to_string(), remedy: error.remedy() },
    };
    Guests { qemu, kernel }
}
