//! What was changed, on disk before it is changed: `/run/vmtax/journal`, one JSON record a line.
//!
//! ```text
//! {"record":"boot","id":"ccf2e996-…"}                              the changes die with this boot
//! {"record":"intent","change":0,"knob":{"pool":"2m"},"old":0,"want":16}     synced, then written
//! {"record":"got","change":0,"value":16}                           what was read back
//! {"record":"giving_back","change":0,"from":24,"to":8}             synced, then written
//! {"record":"settled","change":0}                                  nothing left to put back
//! {"record":"joined","change":2,"earlier":1}       2 goes back to what 1 was to go back to; nothing is left of 1
//! ```
//!
//! The file exists only while something may have to be put back. A last line without its end was never followed by a
//! change, because the sync precedes it: it is cut off. `/run` may be a disk (it is on some hosts), so that a journal can
//! outlive the state it speaks of; one of another boot is discarded.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::{Error, Host, Knob, Value};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(super) enum Record {
    Boot { id: String },
    Intent { change: usize, knob: Knob, old: Value, want: Value },
    Got { change: usize, value: Value },
    GivingBack { change: usize, from: Value, to: Value },
    Joined { change: usize, earlier: usize },
    Settled { change: usize },
}

/// A change, as far as the journal tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub knob: Knob,
    /// To be put back.
    pub old: Value,
    pub want: Value,
    /// What was read back; none when vmtax ended between the write and the record of it.
    pub got: Option<Value>,
    pub is_settled: bool,
}

#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    boot: String,
    /// None as long as nothing was recorded.
    file: Option<File>,
    /// Bytes of whole records.
    len: u64,
    changes: Vec<Change>,
}

impl Journal {
    /// The journal of `host`, with what predecessors left in it. Asks for the lock to be held.
    pub fn open(host: &Host) -> Result<Journal, Error> {
        let boot_path = host.proc.join("sys/kernel/random/boot_id");
        let boot = host.kernel.read(&boot_path).map_err(|e| Error::io("read", &boot_path, e))?.trim().to_owned();
        let mut journal = Journal { path: host.journal_path(), boot, file: None, len: 0, changes: Vec::new() };
        match fs::read(&journal.path) {
            Ok(bytes) => journal.load(&bytes)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("read", &journal.path, e)),
        }
        Ok(journal)
    }

    /// All changes, oldest first; a change's place is its number.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Records the intent to change `knob`, and returns the number of the change.
    pub fn intend(&mut self, knob: Knob, old: Value, want: Value) -> Result<usize, Error> {
        let change = self.changes.len();
        self.append(Record::Intent { change, knob, old, want })?;
        Ok(change)
    }

    /// Records `record`, and returns when it is on disk.
    pub fn append(&mut self, record: Record) -> Result<(), Error> {
        let written = self.write(&record);
        written.map_err(|e| Error::io("record a change in", &self.path, e))?;
        apply(&mut self.changes, record).expect("only records that follow from the journal are appended");
        Ok(())
    }

    /// Removes the file: there is nothing left to put back.
    pub fn discard(&mut self) -> Result<(), Error> {
        let removed = match fs::remove_file(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => self.sync_directory(),
        };
        removed.map_err(|e| Error::io("remove", &self.path, e))?;
        (self.file, self.len) = (None, 0);
        self.changes.clear();
        Ok(())
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for (index, line) in bytes.split_inclusive(|&b| b == b'\n').enumerate() {
            if !line.ends_with(b"\n") {
                break;
            }
            let corrupt = |reason: String| Error::Journal { path: self.path.clone(), line: index + 1, reason };
            let record: Record = serde_json::from_slice(line).map_err(|e| corrupt(e.to_string()))?;
            match record {
                Record::Boot { id } if index == 0 && id == self.boot => {}
                Record::Boot { .. } if index == 0 => return self.discard(),
                _ if index == 0 => return Err(corrupt("the boot it belongs to is missing".to_owned())),
                record => apply(&mut self.changes, record).map_err(|reason| corrupt(reason.to_owned()))?,
            }
            self.len += line.len() as u64;
        }
        if self.changes.is_empty() { self.discard() } else { Ok(()) }
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        if self.file.is_none() {
            let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&self.path)?;
            self.file = Some(file);
            if self.len == 0 {
                self.write_line(&Record::Boot { id: self.boot.clone() })?;
                self.sync_directory()?;
            }
        }
        self.write_line(record)
    }

    fn write_line(&mut self, record: &Record) -> io::Result<()> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        // Cuts off what a predecessor, or a full disk, left of a record.
        file.set_len(self.len)?;
        file.write_all_at(&line, self.len)?;
        file.sync_all()?;
        self.len += line.len() as u64;
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let directory = self.path.parent().expect("the journal is in the state directory");
        File::open(directory)?.sync_all()
    }
}

fn apply(changes: &mut Vec<Change>, record: Record) -> Result<(), &'static str> {
    const UNKNOWN: &str = "it speaks of a change that is not recorded";
    match record {
        Record::Boot { .. } => return Err("a second boot"),
        Record::Intent { change, .. } if change != changes.len() => return Err("a change is missing before it"),
        Record::Intent { change: _, knob, old, want } => {
            changes.push(Change { knob, old, want, got: None, is_settled: false });
        }
        Record::Got { change, value } => changes.get_mut(change).ok_or(UNKNOWN)?.got = Some(value),
        // From here on the change is one from `to` to `from`: what others added before is theirs, also when this
        // restoration is killed and the next one judges again. A pool that is raised may get a part of it.
        Record::GivingBack { change, from, to } => {
            let change = changes.get_mut(change).ok_or(UNKNOWN)?;
            let is_raised = matches!((&from, &to), (Value::Count(from), Value::Count(to)) if from < to);
            change.got = (!is_raised).then(|| from.clone());
            (change.old, change.want) = (to, from);
        }
        Record::Joined { change, earlier } => {
            let first = changes.get_mut(earlier).ok_or(UNKNOWN)?;
            first.is_settled = true;
            let old = first.old.clone();
            changes.get_mut(change).ok_or(UNKNOWN)?.old = old;
        }
        Record::Settled { change } => changes.get_mut(change).ok_or(UNKNOWN)?.is_settled = true,
    }
    Ok(())
}

#[cfg(test)]
mod tests;
