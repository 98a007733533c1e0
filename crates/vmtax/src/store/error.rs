//! Why a results file cannot be used, and what to do instead.

use std::{
    io,
    path::{Path, PathBuf},
};

use rusqlite::ErrorCode;

use super::SCHEMA;

/// Why a results file cannot be used. The file is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is something else.
    #[error("{0} is no results file of vmtax; choose another with --db FILE")]
    Foreign(PathBuf),
    /// It was written by a newer vmtax.
    #[error(
        "{path} was written by a newer vmtax (schema {found}, this one knows {SCHEMA}); update, or choose another with --db FILE"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i32,
    },
    /// It cannot be written.
    #[error("cannot write results to {path}: {reason}; choose another file with --db FILE")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Read-only, or no space.
        reason: String,
    },
    /// It cannot be opened.
    #[error("cannot open results file {path}: {source}; choose another with --db FILE")]
    Open {
        /// The file or its directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process adds to a run.
    #[error("run {run} is being measured by {}; wait until it ends",
        .pid.map_or("a process that does not show itself".to_owned(), |pid| format!("process {pid}")))]
    Claimed {
        /// The run.
        run: String,
        /// Who.
        pid: Option<u32>,
    },
    /// There is no such run in it.
    #[error("no run {run} in {path}{}", .latest.as_ref().map_or(String::new(), |id| format!("; the latest is {id}")))]
    NoRun {
        /// What was asked for.
        run: String,
        /// The file.
        path: PathBuf,
        /// The latest run in it.
        latest: Option<String>,
    },
    /// Anything else SQLite said.
    #[error("results file {path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: rusqlite::Error,
    },
}

impl StoreError {
    pub(super) fn from(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => StoreError::Foreign(path),
            Some(ErrorCode::ReadOnly) => StoreError::Unwritable { path, reason: "it is read-only".to_owned() },
            Some(ErrorCode::DiskFull) => {
                StoreError::Unwritable { path, reason: "no space left on the disk".to_owned() }
            }
            Some(ErrorCode::SystemIoFailure) => StoreError::Unwritable { path, reason: source.to_string() },
            Some(ErrorCode::CannotOpen) if path.is_dir() => {
                StoreError::Open { path, source: io::ErrorKind::IsADirectory.into() }
            }
            Some(ErrorCode::CannotOpen) => {
                StoreError::Open { path, source: io::Error::other("no such file, or no permission") }
            }
            _ => StoreError::Sqlite { path, source },
        }
    }
}
