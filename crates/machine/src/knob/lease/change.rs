//! How a lease changes a knob: announced in the journal, made, read back, recorded; undone if any of that fails.

use std::{
    io,
    time::{Duration, Instant},
};

use super::{
    super::{
        Error, Host, Knob, Value,
        journal::{Change, Record},
        restore,
    },
    Lease,
};

/// How often a change is announced anew because somebody else turned the knob while the announcement was synced.
const ANNOUNCEMENTS: usize = 10;

/// A knob that was written, its change in the journal.
#[derive(Debug)]
pub(super) struct Applied {
    pub change: usize,
    pub old: Value,
    pub elapsed: Duration,
}

impl Lease {
    /// Journals a change, makes it, and journals what came of it; undone if any of that fails. `aim` reads what the knob is
    /// and says what it shall be.
    pub(super) fn apply(
        &mut self,
        knob: Knob,
        operation: &'static str,
        aim: impl Fn(&Host) -> Result<(Value, Value), Error>,
    ) -> Result<Applied, Error> {
        let (change, old, target) = self.announce(knob, operation, aim)?;
        let start = Instant::now();
        let written = knob.write(&self.host, &target, operation);
        let elapsed = start.elapsed();
        let recorded = knob.read(&self.host).and_then(|value| self.journal.append(Record::Got { change, value }));
        match written.and(recorded) {
            Ok(()) => Ok(Applied { change, old, elapsed }),
            Err(error) => {
                self.undo(change)?;
                Err(error)
            }
        }
    }

    /// Journals the change. The sync takes milliseconds in which somebody else may turn the knob too; writing an older
    /// figure then would take what is theirs. Microseconds between the last look and the write remain: the kernel offers
    /// no compare-and-set.
    fn announce(
        &mut self,
        knob: Knob,
        operation: &'static str,
        aim: impl Fn(&Host) -> Result<(Value, Value), Error>,
    ) -> Result<(usize, Value, Value), Error> {
        let mut aimed = aim(&self.host)?;
        for _ in 0..ANNOUNCEMENTS {
            let (old, target) = aimed.clone();
            let change = self.journal.intend(knob, old, target)?;
            let again = aim(&self.host)?;
            if again == aimed {
                return Ok((change, aimed.0, aimed.1));
            }
            self.journal.append(Record::Settled { change })?;
            aimed = again;
        }
        let busy = io::Error::new(io::ErrorKind::ResourceBusy, "somebody else keeps changing it");
        Err(Error::io(operation, &knob.path(&self.host), busy))
    }

    /// Makes two turns of one switch one: hundreds of turns of a run are put back by one write, and a module by one reload.
    pub(super) fn join(&mut self, change: usize) -> Result<(), Error> {
        let Change { knob, old, .. } = &self.journal.changes()[change];
        let is_ours = |c: &Change| c.knob == *knob && !c.is_settled && c.got.as_ref() == Some(old);
        if let Some(earlier) = self.journal.changes()[..change].iter().rposition(is_ours) {
            self.journal.append(Record::Joined { change, earlier })?;
        }
        let Change { old, got, .. } = &self.journal.changes()[change];
        if got.as_ref() == Some(old) { self.journal.append(Record::Settled { change }) } else { Ok(()) }
    }

    pub(super) fn undo(&mut self, change: usize) -> Result<(), Error> {
        let outcome = restore::undo(&self.host, &mut self.journal, change);
        if outcome.is_failed() { Err(Error::Unrestored(vec![outcome])) } else { Ok(()) }
    }
}
