//! A lease on the host's knobs: while it lives they may be changed, and when it ends they are put back.

use super::{
    Contention, Error, Host, Knob, Outcome, Pool, Want, check_memory,
    guardian::Guardian,
    journal::{Journal, Record},
    lock::Lock,
    restore,
};

/// How often a change is announced anew because somebody else changed the pool while the announcement was synced.
const ANNOUNCEMENTS: usize = 10;

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

    fn unguarded(host: Host, contention: Contention) -> Result<Lease, Error> {
        let lock = Lock::take(&host, contention)?;
        let mut journal = Journal::open(&host)?;
        let recovered = restore::put_back(&host, &mut journal);
        if recovered.iter().any(Outcome::is_failed) {
            return Err(Error::Unrestored(recovered));
        }
        Ok(Lease { host, journal, recovered, guardian: None, lock: Some(lock) })
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
        let Want { page, pages } = want;
        check_memory(&self.host, &[want])?;
        let before = Pool::read(&self.host, page)?;
        if before.shortfall(pages) == 0 {
            return Ok(Grant { page, available: before.available(), borrowed: 0 });
        }
        let (change, old) = self.raise_pool(want)?;
        let now = Pool::read(&self.host, page)?;
        if now.shortfall(pages) > 0 {
            self.give_back(change)?;
            return Err(Error::Partial { page, needed: pages, granted: now.available() });
        }
        Ok(Grant { page, available: now.available(), borrowed: now.persistent().saturating_sub(old) })
    }

    /// Puts everything back, ends the guardian, and says what became of each change.
    pub fn release(mut self) -> Result<Vec<Outcome>, Error> {
        let outcomes = self.finish();
        if outcomes.iter().any(Outcome::is_failed) { Err(Error::Unrestored(outcomes)) } else { Ok(outcomes) }
    }

    /// Raises the pool by what lacks; returns the number of the change and the persistent pages before it.
    fn raise_pool(&mut self, want: Want) -> Result<(usize, u64), Error> {
        let knob = Knob::Pool(want.page);
        let (change, old, target) = self.announce(want)?;
        let written = knob.write(&self.host, target);
        let recorded = knob.read(&self.host).and_then(|value| self.journal.append(Record::Got { change, value }));
        let failed = match written {
            Err(source) => Some(Error::io("raise", &knob.path(&self.host), source)),
            Ok(()) => recorded.err(),
        };
        match failed {
            None => Ok((change, old)),
            Some(error) => {
                self.give_back(change)?;
                Err(error)
            }
        }
    }

    /// Journals the raise. The sync takes milliseconds in which somebody else may raise the pool too; writing an older
    /// figure then would take their pages. Microseconds between the last look and the write remain: the kernel offers no
    /// compare-and-set.
    fn announce(&mut self, want: Want) -> Result<(usize, u64, u64), Error> {
        let knob = Knob::Pool(want.page);
        let mut pool = Pool::read(&self.host, want.page)?;
        for _ in 0..ANNOUNCEMENTS {
            let (old, target) = (pool.persistent(), pool.total.saturating_add(pool.shortfall(want.pages)));
            let change = self.journal.intend(knob, old, target)?;
            let now = Pool::read(&self.host, want.page)?;
            if now == pool {
                return Ok((change, old, target));
            }
            self.journal.append(Record::Settled { change })?;
            pool = now;
        }
        let busy = std::io::Error::new(std::io::ErrorKind::ResourceBusy, "somebody else keeps changing it");
        Err(Error::io("raise", &knob.path(&self.host), busy))
    }

    fn give_back(&mut self, change: usize) -> Result<(), Error> {
        let outcome = restore::undo(&self.host, &mut self.journal, change);
        if outcome.is_failed() { Err(Error::Unrestored(vec![outcome])) } else { Ok(()) }
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
