//! Runs of another results file, added to this one.

use std::path::Path;

use rusqlite::{Transaction, TransactionBehavior, params};

use super::{Store, StoreError};

/// A table, with its columns beside the run's name.
#[derive(Debug, Clone, Copy)]
struct Table {
    name: &'static str,
    columns: &'static str,
}

/// A kind of run: the table that has a row for each, and those that hang on it, its trials first.
#[derive(Debug, Clone, Copy)]
struct Kind {
    head: Table,
    parts: &'static [Table],
}

const KINDS: [Kind; 2] = [
    Kind {
        head: Table { name: "runs", columns: "started, version, request, host, ending, seconds" },
        parts: &[
            Table {
                name: "trials",
                columns: "block, place, venue, guest, host, replica, status, ns_per_access, first_pass_ns, trial",
            },
            Table { name: "unavailable", columns: "guest, host, reason, remedy" },
        ],
    },
    Kind {
        head: Table { name: "experiments", columns: "started, version, name, plan, seed, host, ending, seconds" },
        parts: &[
            Table { name: "experiment_trials", columns: "block, place, cell, status, elapsed, outcome" },
            Table { name: "experiment_metrics", columns: "block, cell, metric, value, unit" },
            Table { name: "experiment_missing", columns: "cell, reason, remedy" },
        ],
    },
];

impl Store {
    /// Adds every run of the results file `from` that is not here, or has gone on there; their names here. A run of the same
    /// name that is another keeps it: the newcomer is called `NAME-sandbox`.
    pub fn adopt(&self, from: &Path) -> Result<Vec<String>, StoreError> {
        // The tables of a file that is older than this vmtax.
        drop(Store::open(from)?);
        self.sql(|c| c.execute("ATTACH DATABASE ?1 AS other", [from.to_string_lossy()]))?;
        let adopted = self.sql(|c| {
            let all = Transaction::new_unchecked(c, TransactionBehavior::Immediate)?;
            let mut names = Vec::new();
            for kind in KINDS {
                adopt_kind(&all, kind, &mut names)?;
            }
            all.commit()?;
            Ok(names)
        });
        self.sql(|c| c.execute_batch("DETACH DATABASE other"))?;
        adopted
    }
}

fn adopt_kind(all: &Transaction<'_>, kind: Kind, names: &mut Vec<String>) -> rusqlite::Result<()> {
    let Table { name: head, columns } = kind.head;
    let trials = kind.parts[0].name;
    let changed = format!(
        "SELECT id FROM other.{head} AS theirs WHERE NOT EXISTS (
            SELECT 1 FROM main.{head} AS ours WHERE ours.id IN (theirs.id, theirs.id || '-sandbox') AND ours.started = theirs.started
            AND ours.ending IS theirs.ending AND (SELECT count(*) FROM main.{trials} WHERE run = ours.id)
                                               = (SELECT count(*) FROM other.{trials} WHERE run = theirs.id))"
    );
    let ids: Vec<String> = all.prepare(&changed)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for id in ids {
        let same = format!(
            "DELETE FROM main.{head} WHERE id IN (?1, ?1 || '-sandbox') AND started = (SELECT started FROM other.{head} WHERE id = ?1)"
        );
        all.execute(&same, [&id])?;
        let taken =
            "SELECT count(*) FROM (SELECT id FROM main.runs UNION ALL SELECT id FROM main.experiments) WHERE id = ?1";
        let is_taken = all.query_row(taken, [&id], |row| row.get::<_, u32>(0))? > 0;
        let name = if is_taken { format!("{id}-sandbox") } else { id.clone() };
        let copy =
            format!("INSERT INTO main.{head} (id, {columns}) SELECT ?1, {columns} FROM other.{head} WHERE id = ?2");
        all.execute(&copy, params![name, id])?;
        for Table { name: table, columns } in kind.parts {
            let copy = format!(
                "INSERT INTO main.{table} (run, {columns}) SELECT ?1, {columns} FROM other.{table} WHERE run = ?2 ORDER BY rowid"
            );
            all.execute(&copy, params![name, id])?;
        }
        names.push(name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "INSERT INTO experiments (id, started, version, name, plan, seed, host) VALUES ";
    const TRIAL: &str = "INSERT INTO experiment_trials (run, block, place, cell, status, elapsed, outcome) VALUES ";

    fn store(path: &Path, rows: &[String]) -> Store {
        let store = Store::open(path).unwrap();
        store.sql(|c| c.execute_batch(&rows.join(";"))).unwrap();
        store
    }

    fn run(id: &str, started: &str) -> String {
        format!("{RUN} ('{id}', '{started}', '', '', '', 1, '')")
    }

    fn trial(id: &str, block: u32) -> String {
        format!("{TRIAL} ('{id}', {block}, 0, 'chase', 'ok', 1.0, '')")
    }

    #[test]
    fn runs_that_are_new_or_went_on_are_added_and_none_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let (here, there) = (directory.path().join("here.db"), directory.path().join("there.db"));
        let ours = [run("same", "1"), trial("same", 0), run("longer", "1"), trial("longer", 0), run("other", "1")];
        let theirs = [
            run("same", "1"),
            trial("same", 0),
            run("longer", "1"),
            trial("longer", 0),
            trial("longer", 1),
            run("other", "2"),
            run("new", "3"),
        ];
        let store = store(&here, &ours);
        drop(self::store(&there, &theirs));
        assert_eq!(store.adopt(&there).unwrap(), ["longer", "other-sandbox", "new"]);
        let trials = "SELECT count(*) FROM experiment_trials WHERE run = 'longer'";
        assert_eq!(store.sql(|c| c.query_row(trials, [], |row| row.get::<_, u32>(0))).unwrap(), 2);
        let runs = "SELECT count(*) FROM experiments";
        assert_eq!(store.sql(|c| c.query_row(runs, [], |row| row.get::<_, u32>(0))).unwrap(), 5);
        assert_eq!(store.adopt(&there).unwrap(), [""; 0], "once is enough");
    }
}
