//! Runs of plans in the results file.

use anyhow::Context;
use rusqlite::{Connection, OptionalExtension, params};
use vmtax_core::{
    experiment::{Missing, Outcome, Record, Trial},
    host::Host,
    plan::Plan,
    run::Ending,
};

use super::{Store, StoreError, begin_named};

/// A run of a plan, before its first trial.
#[derive(Debug)]
pub struct Beginning<'b> {
    /// The name of its plan.
    pub name: &'b str,
    /// The plan, as its author wrote it.
    pub text: &'b str,
    /// Orders and layouts follow from it.
    pub seed: u64,
    /// What the host is.
    pub host: &'b Host,
    /// What cannot be measured on it.
    pub missing: &'b [Missing],
}

/// A row of `experiments`.
struct Head {
    started: String,
    name: String,
    text: String,
    seed: i64,
    host: String,
    ending: Option<String>,
    seconds: Option<f64>,
}

impl Store {
    /// Begins a run of a plan and gives it a name, made from the time.
    pub fn begin_experiment(&self, beginning: &Beginning<'_>) -> anyhow::Result<String> {
        let Beginning { name, text, seed, host, missing } = beginning;
        let host = serde_json::to_string(host)?;
        let id = self.sql(|c| {
            begin_named(c, |run, id| {
                run.execute(
                    "INSERT INTO experiments (id, started, version, name, plan, seed, host)
                     VALUES (?1, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), ?2, ?3, ?4, ?5, ?6)",
                    params![id, env!("CARGO_PKG_VERSION"), name, text, *seed as i64, host],
                )?;
                for Missing { cell, reason, remedy } in *missing {
                    run.execute(
                        "INSERT INTO experiment_missing (run, cell, reason, remedy) VALUES (?1, ?2, ?3, ?4)",
                        params![id, cell, reason, remedy],
                    )?;
                }
                Ok(())
            })
        })?;
        Ok(id)
    }

    /// Keeps a trial, `elapsed` seconds into the run. It is on disk when this returns.
    pub fn keep_experiment(&self, run: &str, trial: &Trial, elapsed: f64) -> anyhow::Result<()> {
        let json = serde_json::to_string(&trial.outcome)?;
        let (status, metrics) = match &trial.outcome {
            Outcome::Ok(finding) => ("ok", &finding.metrics[..]),
            Outcome::Failed { .. } => ("failed", &[][..]),
        };
        let Trial { block, place, cell, .. } = trial;
        self.sql(|c| {
            let kept = c.unchecked_transaction()?;
            kept.execute(
                "INSERT INTO experiment_trials (run, block, place, cell, status, elapsed, outcome)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![run, block, place, cell, status, elapsed, json],
            )?;
            for metric in metrics {
                kept.execute(
                    "INSERT INTO experiment_metrics (run, block, cell, metric, value, unit)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    params![run, block, cell, metric.name, metric.value, metric.unit],
                )?;
            }
            kept.commit()
        })?;
        Ok(())
    }

    /// Says how a run of a plan ended; none while it is going on again.
    pub fn end_experiment(&self, run: &str, ending: Option<Ending>, seconds: f64) -> Result<(), StoreError> {
        self.sql(|c| {
            c.execute(
                "UPDATE experiments SET ending = ?2, seconds = ?3 WHERE id = ?1",
                params![run, ending.map(Ending::name), seconds],
            )
        })?;
        Ok(())
    }

    /// Whether this run is one of a plan.
    pub fn has_experiment(&self, id: &str) -> Result<bool, StoreError> {
        self.sql(|c| {
            let mut found = false;
            if is_there(c)? {
                found = c.query_row("SELECT 1 FROM experiments WHERE id = ?1", [id], |_| Ok(())).optional()?.is_some();
            }
            Ok(found)
        })
    }

    /// A run of a plan by its name.
    pub fn load_experiment(&self, id: &str) -> anyhow::Result<Record> {
        if !self.has_experiment(id)? {
            let latest = self.latest()?;
            return Err(StoreError::NoRun { run: id.to_owned(), path: self.path.clone(), latest }.into());
        }
        let head = self.sql(|c| c.query_row(HEAD, [id], head))?;
        let trials = self.rows(TRIALS, id, |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?, row.get::<_, String>(3)?))
        })?;
        let missing = self.rows(
            "SELECT cell, reason, remedy FROM experiment_missing WHERE run = ?1 ORDER BY rowid",
            id,
            |row| Ok(Missing { cell: row.get(0)?, reason: row.get(1)?, remedy: row.get(2)? }),
        )?;
        let unreadable = || format!("run {id} in {} cannot be read by this vmtax", self.path.display());
        let trial = |(block, place, cell, outcome): (u32, u32, String, String)| {
            Ok(Trial { block, place, cell, outcome: serde_json::from_str(&outcome)? })
        };
        let trials: serde_json::Result<Vec<Trial>> = trials.into_iter().map(trial).collect();
        Ok(Record {
            id: id.to_owned(),
            started: head.started,
            plan: Plan::parse(&head.name, &head.text).with_context(unreadable)?,
            name: head.name,
            seed: head.seed as u64,
            host: serde_json::from_str(&head.host).with_context(unreadable)?,
            ending: head.ending.and_then(|name| Ending::ALL.into_iter().find(|ending| ending.name() == name)),
            seconds: head.seconds,
            trials: trials.with_context(unreadable)?,
            missing,
        })
    }
}

const HEAD: &str = "SELECT started, name, plan, seed, host, ending,
    coalesce(seconds, (SELECT max(elapsed) FROM experiment_trials WHERE run = id)) FROM experiments WHERE id = ?1";
const TRIALS: &str = "SELECT block, place, cell, outcome FROM experiment_trials WHERE run = ?1 ORDER BY block, place";

fn head(row: &rusqlite::Row<'_>) -> rusqlite::Result<Head> {
    Ok(Head {
        started: row.get(0)?,
        name: row.get(1)?,
        text: row.get(2)?,
        seed: row.get(3)?,
        host: row.get(4)?,
        ending: row.get(5)?,
        seconds: row.get(6)?,
    })
}

/// Files that an older vmtax made have no such tables until a newer one adds to them.
pub(super) fn is_there(connection: &Connection) -> rusqlite::Result<bool> {
    let query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'experiments'";
    connection.query_row(query, [], |row| row.get(0))
}
