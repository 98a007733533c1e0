//! `vmtax export RUN --format FORMAT`: a kept run for other programs.

use std::{fs, path::Path, process::ExitCode};

use anyhow::Context;
use vmtax_report::{experiment, export, matrix};

use super::{Refusal, show, studies};
use crate::{
    cli::{ExportArgs, Format},
    output,
    store::Store,
};

/// Writes the run where it was asked to go.
pub fn run(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let store = show::results(&args.results)?;
    match (args.format, &args.output) {
        (Format::Sqlite, None) => {
            return Err(Refusal::new("a SQLite file is not written to a terminal", "name a file: --output FILE").into());
        }
        (Format::Sqlite, Some(path)) => copy(&store, &args.run, path)?,
        (Format::Csv | Format::Json | Format::Md, Some(path)) => {
            fs::write(path, text(&store, args)?).with_context(|| format!("cannot write {}", path.display()))?
        }
        (Format::Csv | Format::Json | Format::Md, None) => output::print(&text(&store, args)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn copy(store: &Store, id: &str, path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        let message = format!("{} exists and is left as it is", path.display());
        return Err(Refusal::new(message, "name a file that does not").into());
    }
    store.copy_run(id, path)
}

fn text(store: &Store, args: &ExportArgs) -> anyhow::Result<String> {
    if store.has_experiment(&args.run)? {
        let record = store.load_experiment(&args.run)?;
        return Ok(match args.format {
            Format::Csv => experiment::csv(&record)?,
            Format::Md => experiment::markdown(&record, &studies::judged(&record)),
            Format::Json | Format::Sqlite => experiment::json(&record, &studies::judged(&record))?,
        });
    }
    let run = store.load(&args.run)?;
    Ok(match args.format {
        Format::Csv => export::csv(&run)?,
        Format::Md => format!("```\n{}```\n", matrix::text(&run)?),
        Format::Json | Format::Sqlite => export::json(&run)?,
    })
}
