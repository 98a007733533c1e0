//! `vmtax show [RUN]`: prints a kept run again.

use std::{io, process::ExitCode};

use vmtax_core::{experiment::Record, run::Run};
use vmtax_report::{experiment, export, matrix};

use super::{Refusal, results_file, studies};
use crate::{
    cli::{Form, Results, ShowArgs},
    output,
    store::Store,
};

/// Loads the run and prints it.
pub fn run(args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let store = results(&args.results)?;
    let id = match &args.run {
        Some(id) => id.clone(),
        None => store.latest()?.ok_or_else(|| {
            Refusal::new(format!("{} holds no run", store.path().display()), "vmtax matrix makes one")
        })?,
    };
    match store.has_experiment(&id)? {
        true => experiment(&store.load_experiment(&id)?, &args.form)?,
        false => print(&store.load(&id)?, &args.form)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The results file to be read.
pub fn results(results: &Results) -> anyhow::Result<Store> {
    let path = results_file(results)?;
    if path.metadata().is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
        let help = "`vmtax matrix` makes one; if yours is elsewhere, name it with --db FILE";
        return Err(Refusal::new(format!("there are no results to show: no file {}", path.display()), help).into());
    }
    Ok(Store::open_to_read(&path)?)
}

/// Prints a run of a plan in the form asked for.
fn experiment(record: &Record, form: &Form) -> anyhow::Result<()> {
    let text = match form {
        Form { json: true, .. } => experiment::json(record, &studies::judged(record))?,
        Form { csv: true, .. } => experiment::csv(record)?,
        Form { .. } => experiment::text(record, &studies::judged(record)),
    };
    Ok(output::print(&text)?)
}

/// Prints a run in the form asked for.
pub fn print(run: &Run, form: &Form) -> anyhow::Result<()> {
    let text = match form {
        Form { json: true, .. } => export::json(run)?,
        Form { csv: true, .. } => export::csv(run)?,
        Form { .. } => matrix::text(run)?,
    };
    Ok(output::print(&text)?)
}
