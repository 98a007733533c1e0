//! A lease on the host's knobs: while it lives they may be changed, and when it ends they are put back.

mod change;
mod set;

use std::time::Duration;

use super::{
    Contention, Error, Host, Knob, Outcome, Pool, Switch, Value, Want, check_memory, guardian::Guardian,
    journal::Journal, lock::Lock, restore,
};
use change::Applied;

/// The right to turn knobs on this host, held by one process at a time.
///
/// Dropping it puts everything back, as [`Lease::release`] does, but cannot say what became of it. Memory that uses
/// borrowed pages should be unmapped first; its pages stay out of use for others until then.
#[derive(Debug)]
pub struct Lease {
    host: Host,
    journal: Journal,
    recovered: Vec<Outcome>,
    // Before the lock: the guardian is dismissed while the lock is still ours.
    guardian: Option<Guardian>,
    lock: Option<Lock>,
}

/// Pages that a pool now has available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The page size.
    pub page: vmtax_core::units::PageSize,
    /// Pages available now, at least as many as were wanted.
    pub available: u64,
    /// Pages by which the pool was raised for it; 0 when nothing was changed.
    pub borrowed: u64,
    /// How long the kernel took to raise the pool.
    pub elapsed: Duration,
    /// In the journal; none when nothing was changed.
    change: Option<usize>,
}

/// A switch that was turned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Which.
    pub switch: Switch,
    /// Its word before.
    pub from: String,
    /// Its word now, read back.
    pub to: String,
}

impl Lease {
    /// Takes the host's lock, puts back what killed predecessors left changed, and starts the guardian.
    ///
    /// Changes nothing else. The program's `main` must begin with [`super::guardian::dispatch`].
    pub fn acquire(host: Host, contention: Contention) -> Result<Lease, Error> {
        let mut lease = Lease::unguarded(host, contention)?;
        let lock = lease.lock.as_ref().expect("taken by unguarded");
        lease.guardian = Some(Guardian::start(&lease.host, lock)?);
        Ok(lease)
    }

    /// Without a guardian, for tests of this module: a guardian is another process and sees no fake kernel.
    pub(crate) fn unguarded(host: Host, contention: Contention) -> Result<Lease, Error> {
        let lock = Lock::take(&host, contention)?;
        let mut journal = Journal::open(&host)?;
        let recovered = restore::put_back(&host, &mut journal);
        if recovered.iter().any(Outcome::is_failed) {
            return Err(Error::Unrestored(recovered));
        }
        Ok(Lease { host, journal, recovered, guardian: None, lock: Some(lock) })
    }

    /// The host it is on.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// What became of the changes that killed predecessors had left.
    pub fn recovered(&self) -> &[Outcome] {
        &self.recovered
    }

    /// The guardian's process.
    pub fn guardian_pid(&self) -> Option<u32> {
        self.guardian.as_ref().map(Guardian::pid)
    }

    /// Makes the wanted pages available; a pool that has them is not changed, and none is ever lowered.
    ///
    /// Refuses what [`check_memory`] refuses. A pool that can only partly be raised is put back before
    /// [`Error::Partial`] is returned.
    pub fn borrow_pool(&mut self, want: Want) -> Result<Grant, Error> {
        let grant = self.borrow_up_to(want)?;
        if let Some(change) = grant.change
            && grant.available < want.pages
        {
            self.undo(change)?;
            return Err(Error::Partial { page: want.page, needed: want.pages, granted: grant.available });
        }
        Ok(grant)
    }

    /// As [`Lease::borrow_pool`], but content with what the kernel grants.
    pub fn borrow_up_to(&mut self, want: Want) -> Result<Grant, Error> {
        let Want { page, pages } = want;
        check_memory(&self.host, &[want])?;
        let before = Pool::read(&self.host, page)?;
        if before.shortfall(pages) == 0 {
            let (available, elapsed) = (before.available(), Duration::ZERO);
            return Ok(Grant { page, available, borrowed: 0, elapsed, change: None });
        }
        let aim = |host: &Host| {
            let pool = Pool::read(host, page)?;
            let target = pool.total.saturating_add(pool.shortfall(pages));
            Ok((Value::Count(pool.persistent()), Value::Count(target)))
        };
        let applied = self.apply(Knob::Pool(page), "raise", aim)?;
        let now = Pool::read(&self.host, page)?;
        let old = if let Value::Count(old) = applied.old { old } else { before.persistent() };
        let borrowed = now.persistent().saturating_sub(old);
        let Applied { change, elapsed, .. } = applied;
        Ok(Grant { page, available: now.available(), borrowed, elapsed, change: Some(change) })
    }

    /// Sets `switch` to `word`, reads back that it is, and remembers what it was before its first turn.
    ///
    /// A switch that stands there already is not touched. One that reads something else afterwards is put back before
    /// [`Error::NotTaken`] is returned.
    pub fn turn(&mut self, switch: Switch, word: &str) -> Result<Turn, Error> {
        switch.check(&self.host, word)?;
        let from = switch.read(&self.host)?;
        if from == word {
            return Ok(Turn { switch, to: from.clone(), from });
        }
        let knob = Knob::Switch(switch);
        let aim = |host: &Host| Ok((knob.read(host)?, Value::Word(switch.target(host, word)?)));
        let Applied { change, .. } = self.apply(knob, "turn", aim)?;
        let to = switch.read(&self.host)?;
        if to != word {
            self.undo(change)?;
            return Err(Error::NotTaken { switch, wanted: word.to_owned(), got: to });
        }
        self.join(change)?;
        Ok(Turn { switch, from, to })
    }

    /// Gives back what one grant borrowed, before the lease ends.
    pub fn give_back(&mut self, grant: Grant) -> Result<(), Error> {
        match grant.change {
            Some(change) if !self.journal.changes()[change].is_settled => self.undo(change),
            Some(_) | None => Ok(()),
        }
    }

    /// Puts everything back, ends the guardian, and says what became of each change.
    pub fn release(mut self) -> Result<Vec<Outcome>, Error> {
        let outcomes = self.finish();
        if outcomes.iter().any(Outcome::is_failed) { Err(Error::Unrestored(outcomes)) } else { Ok(outcomes) }
    }

    /// Ends it as SIGKILL does: nothing is put back.
    #[cfg(test)]
    pub(super) fn forget(mut self) {
        self.lock = None;
    }

    fn finish(&mut self) -> Vec<Outcome> {
        if self.lock.is_none() {
            return Vec::new();
        }
        let outcomes = restore::put_back(&self.host, &mut self.journal);
        if let Some(guardian) = self.guardian.take() {
            // It looks into the journal: what is still there it tries once more.
            guardian.dismiss();
        }
        self.lock = None;
        outcomes
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests;
