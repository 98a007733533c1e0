//! `vmtax touch`: the cost of the first access to memory.

use std::process::ExitCode;

use vmtax_core::{availability::matrix, setting::Setting, touch};
use vmtax_machine::facts;
use vmtax_report::touch as report;

use super::{
    matrix::request::default_size,
    series::{Measured, Work, measure},
};
use crate::{
    cli::{Form, TouchArgs},
    lab, output,
};

/// Measures, and prints what was measured, also when it was interrupted.
pub fn run(args: &TouchArgs) -> anyhow::Result<ExitCode> {
    let size = args.size.unwrap_or_else(|| default_size(&facts::host()));
    let work = Work {
        cells: touch::cells(&settings(args)),
        setting: |cell: touch::Cell| cell.setting,
        name: |cell| format!("{}, populated: {}", cell.setting, cell.populated.name()),
        size,
        blocks: &args.blocks,
    };
    let Measured { series, code } = measure(work, |bench, cell| lab::touch::trial(bench, cell, size))?;
    output::print(&match args.form {
        Form { json: true, .. } => report::json(&series, size),
        Form { csv: true, .. } => report::csv(&series),
        Form { .. } => report::text(&series, size),
    })?;
    Ok(code)
}

/// Native, and every leaf asked for, on every backing asked for.
fn settings(args: &TouchArgs) -> Vec<Setting> {
    let is_leaf = |setting: &Setting| match (setting.guest, &args.guest) {
        (None, _) | (_, None) => true,
        (leaf, Some(named)) => named.iter().any(|level| level.leaf() == leaf),
    };
    let hosts = args.blocks.host.as_ref();
    let is_host = |setting: &Setting| hosts.is_none_or(|named| named.iter().any(|l| l.backing() == setting.host));
    matrix().into_iter().filter(|setting| is_leaf(setting) && is_host(setting)).collect()
}
