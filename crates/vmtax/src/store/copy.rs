//! A results file with a single run in it.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};

use super::{Store, StoreError, experiments::is_there};

impl Store {
    /// Writes a results file with all that this one holds. `to` must be empty, or not exist.
    pub fn copy_all(&self, to: &Path) -> anyhow::Result<()> {
        let source = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE);
        let copied = source.and_then(|c| c.execute("VACUUM INTO ?1", [to.to_string_lossy()]));
        copied.map_err(|e| StoreError::from(to, e))?;
        Ok(())
    }

    /// Writes a results file that holds this run alone. `to` must not exist.
    pub fn copy_run(&self, id: &str, to: &Path) -> anyhow::Result<()> {
        if !self.has_experiment(id)? {
            self.load(id)?;
        }
        self.copy_all(to)?;
        let pruned = Connection::open(to).and_then(|c| {
            c.execute_batch("PRAGMA foreign_keys = ON")?;
            c.execute("DELETE FROM runs WHERE id <> ?1", params![id])?;
            if is_there(&c)? {
                c.execute("DELETE FROM experiments WHERE id <> ?1", params![id])?;
            }
            c.execute_batch("VACUUM")
        });
        Ok(pruned.map_err(|e| StoreError::from(to, e))?)
    }
}
