//! Results: one SQLite file. A trial is committed when it ends, and every table is derived from the file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};
use vmtax_core::{
    host::Host,
    request::Request,
    run::{Ending, Run},
    setting::Setting,
    trial::{Outcome, Trial, Unavailable},
};

mod adopt;
mod claim;
mod copy;
mod error;
mod experiments;
mod owner;
#[cfg(test)]
mod tests;

pub use claim::Claim;
pub use error::StoreError;
pub use experiments::Beginning;
use owner::Owner;

/// `vmtx`: tells our files from other SQLite files (`PRAGMA application_id`).
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"vmtx");
/// The layout of `schema.sql`; raised when an older vmtax could no longer read it.
const SCHEMA: i32 = 1;
const TABLES: &str = include_str!("store/schema.sql");
/// Space claimed before a run, so that a full disk is noticed before anything is measured: a trial takes about 1 KiB.
const CLAIM: usize = 1 << 20;

/// An open results file.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Where results go unless told otherwise: under the XDG state directory.
    pub fn default_path() -> anyhow::Result<PathBuf> {
        let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
        let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
        let state =
            state.or_else(home).context("neither XDG_STATE_HOME nor HOME is set; name a file with --db FILE")?;
        Ok(state.join("vmtax/results.db"))
    }

    /// Opens a results file to add to it; it is made, with its directory, if there is none.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(directory) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            fs::create_dir_all(directory).map_err(|source| StoreError::Open { path: directory.to_owned(), source })?;
        }
        Owner::of(path)?;
        let store = Self::connect(path, Connection::open(path))?;
        store.sql(|c| {
            c.execute_batch("PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 5000;")?;
            c.execute_batch(&format!(
                "BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA}; COMMIT;"
            ))
        })?;
        Ok(store)
    }

    /// Opens a results file to read it. An empty one holds no run.
    ///
    /// SQLite may write: a commit cut short by a kill must be undone before anybody can read. Tried: opening read-only,
    /// which refuses such a file.
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        fs::metadata(path).map_err(|source| StoreError::Open { path: path.to_owned(), source })?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let (connection, tables) = match Owner::of(path)? {
            Owner::Nobody => (Connection::open_in_memory(), TABLES),
            Owner::Vmtax => (Connection::open_with_flags(path, flags), ""),
        };
        let store = Self::connect(path, connection)?;
        store.sql(|c| c.execute_batch(&format!("{tables} PRAGMA query_only = ON; PRAGMA busy_timeout = 5000;")))?;
        Ok(store)
    }

    fn connect(path: &Path, connection: rusqlite::Result<Connection>) -> Result<Self, StoreError> {
        let connection = connection.map_err(|e| StoreError::from(path, e))?;
        Ok(Store { connection, path: path.to_owned() })
    }

    fn sql<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        query(&self.connection).map_err(|e| StoreError::from(&self.path, e))
    }

    /// Begins a run and gives it a name, made from the time.
    pub fn begin(&self, request: &Request, host: &Host, unavailable: &[Unavailable]) -> anyhow::Result<String> {
        let (request, host) = (serde_json::to_string(request)?, serde_json::to_string(host)?);
        let id = self.sql(|c| {
            begin_named(c, |run, id| {
                run.execute(
                    "INSERT INTO runs (id, started, version, request, host)
                     VALUES (?1, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), ?2, ?3, ?4)",
                    params![id, env!("CARGO_PKG_VERSION"), request, host],
                )?;
                for Unavailable { setting, reason, remedy } in unavailable {
                    run.execute(
                        "INSERT INTO unavailable (run, guest, host, reason, remedy) VALUES (?1, ?2, ?3, ?4, ?5)",
                        params![id, setting.guest.map(|leaf| leaf.name()), setting.host.name(), reason, remedy],
                    )?;
                }
                Ok(())
            })
        })?;
        Ok(id)
    }

    /// Keeps a trial. It is on disk when this returns.
    pub fn keep(&self, run: &str, trial: &Trial) -> anyhow::Result<()> {
        let Setting { guest, host } = trial.cell.setting;
        let (status, value, first) = match &trial.outcome {
            Outcome::Ok(measurement) => ("ok", Some(measurement.value_ns()), Some(measurement.first_pass_ns)),
            Outcome::Failed { .. } => ("failed", None, None),
        };
        let json = serde_json::to_string(trial)?;
        self.sql(|c| {
            c.execute(
                "INSERT INTO trials (run, block, place, venue, guest, host, replica, status, ns_per_access, first_pass_ns, trial)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                params![
                    run,
                    trial.block,
                    trial.place,
                    trial.cell.setting.venue().name(),
                    guest.map(|leaf| leaf.name()),
                    host.name(),
                    trial.cell.replica.name(),
                    status,
                    value,
                    first,
                    json
                ],
            )
        })?;
        Ok(())
    }

    /// Ends a run.
    pub fn end(&self, run: &str, ending: Ending, seconds: f64) -> Result<(), StoreError> {
        self.sql(|c| {
            c.execute("UPDATE runs SET ending = ?2, seconds = ?3 WHERE id = ?1", params![run, ending.name(), seconds])
        })?;
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the latest run.
    pub fn latest(&self) -> Result<Option<String>, StoreError> {
        self.sql(|c| {
            let plans = match experiments::is_there(c)? {
                true => "UNION ALL SELECT id, started FROM experiments",
                false => "",
            };
            // Names made in the same second end in -2, -3 and so on: longer, or later in the alphabet.
            let query = format!(
                "SELECT id FROM (SELECT id, started FROM runs {plans}) ORDER BY started DESC, length(id) DESC, id DESC LIMIT 1"
            );
            c.query_row(&query, [], |row| row.get(0)).optional()
        })
    }

    /// A run by its name.
    pub fn load(&self, id: &str) -> anyhow::Result<Run> {
        let head = self.sql(|c| {
            c.query_row("SELECT started, request, host, ending, seconds FROM runs WHERE id = ?1", [id], |row| {
                let ending: Option<String> = row.get(3)?;
                Ok((row.get(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?, ending, row.get(4)?))
            })
            .optional()
        })?;
        let Some((started, request, host, ending, seconds)) = head else {
            let latest = self.latest()?;
            return Err(StoreError::NoRun { run: id.to_owned(), path: self.path.clone(), latest }.into());
        };
        let trials = self
            .rows("SELECT trial FROM trials WHERE run = ?1 ORDER BY block, place", id, |row| row.get::<_, String>(0))?;
        let unavailable = self.rows(
            "SELECT json_object('setting', json_object('guest', guest, 'host', host), 'reason', reason, 'remedy', remedy)
             FROM unavailable WHERE run = ?1 ORDER BY rowid",
            id,
            |row| row.get::<_, String>(0),
        )?;
        let unreadable = || format!("run {id} in {} cannot be read by this vmtax", self.path.display());
        Ok(Run {
            id: id.to_owned(),
            started,
            request: serde_json::from_str(&request).with_context(unreadable)?,
            host: serde_json::from_str(&host).with_context(unreadable)?,
            ending: ending.and_then(|name| Ending::ALL.into_iter().find(|ending| ending.name() == name)),
            seconds,
            trials: trials
                .iter()
                .map(|t| serde_json::from_str(t))
                .collect::<Result<_, _>>()
                .with_context(unreadable)?,
            unavailable: unavailable
                .iter()
                .map(|u| serde_json::from_str(u))
                .collect::<Result<_, _>>()
                .with_context(unreadable)?,
        })
    }

    fn rows<T>(
        &self,
        query: &str,
        run: &str,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.sql(|c| c.prepare(query)?.query_map([run], read)?.collect())
    }
}

/// Claims space, and gives a run a name made from the time; `insert` adds its rows under it.
fn begin_named(
    connection: &Connection,
    insert: impl FnOnce(&Transaction<'_>, &str) -> rusqlite::Result<()>,
) -> rusqlite::Result<String> {
    let claim = connection.unchecked_transaction()?;
    claim.execute_batch(&format!("CREATE TABLE claim AS SELECT zeroblob({CLAIM}) AS space; DROP TABLE claim;"))?;
    claim.commit()?;
    // Immediate: looks for a free name and takes it with nobody in between.
    let run = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let stem: String = run.query_row("SELECT strftime('%Y%m%d-%H%M%S', 'now')", [], |row| row.get(0))?;
    let taken = "SELECT 1 FROM runs WHERE id = ?1 UNION ALL SELECT 1 FROM experiments WHERE id = ?1";
    let id = (1..)
        .map(|n| if n == 1 { stem.clone() } else { format!("{stem}-{n}") })
        .find_map(|id| {
            let taken = run.query_row(taken, [&id], |_| Ok(())).optional();
            taken.map(|taken| taken.is_none().then_some(id)).transpose()
        })
        .expect("an endless row of names")?;
    insert(&run, &id)?;
    run.commit()?;
    Ok(id)
}
