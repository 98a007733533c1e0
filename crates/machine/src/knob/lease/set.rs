//! Setting a knob to exactly what somebody names, upwards or downwards, and putting one back before the lease ends.

use super::{
    super::{Error, Host, Knob, Outcome, Pool, Position, Value, Verdict, pool::check_bytes, position, restore},
    Lease,
};
use vmtax_core::units::{Bytes, PageSize};

impl Lease {
    /// Sets a knob to a value, reads back that it is there, and remembers what it was before its first change.
    ///
    /// A knob that stands there already is not touched. One that reads something else afterwards is put back before the
    /// error is returned. A pool is lowered by free pages alone.
    ///
    /// # Errors
    /// It cannot be had; the reason.
    pub fn set(&mut self, position: &Position) -> Result<(), Error> {
        match (position.knob, &position.value) {
            (Knob::Switch(switch), value) => self.turn(switch, &value.to_string()).map(drop),
            (Knob::Pool(page), Value::Count(pages)) => self.resize(page, *pages),
            (Knob::Pool(_), Value::Word(_)) => unreachable!("a pool is set by count"),
        }
    }

    /// Puts one knob back to what it was before this lease first changed it, and says what became of that; nothing where it
    /// has not been changed.
    ///
    /// # Errors
    /// It could not be put back.
    pub fn put_back(&mut self, knob: Knob) -> Result<Option<Outcome>, Error> {
        let mut last = None;
        for number in (0..self.journal.changes().len()).rev() {
            let change = &self.journal.changes()[number];
            if change.knob != knob || change.is_settled {
                continue;
            }
            let outcome = restore::undo(&self.host, &mut self.journal, number);
            match outcome.verdict {
                Verdict::Failed { .. } => return Err(Error::Unrestored(vec![outcome])),
                Verdict::PutBack { .. } | Verdict::AlreadyBack { .. } | Verdict::LeftAlone { .. } => {
                    last = Some(outcome);
                }
            }
        }
        Ok(last)
    }

    fn resize(&mut self, page: PageSize, pages: u64) -> Result<(), Error> {
        let before = Pool::read(&self.host, page)?;
        if before.persistent() == pages {
            return Ok(());
        }
        let more = pages.saturating_sub(before.persistent());
        check_bytes(&self.host, Bytes(more.saturating_mul(page.bytes())))?;
        let aim = |host: &Host| {
            let pool = Pool::read(host, page)?;
            position::check_lowering(page, pool, pages)?;
            Ok((Value::Count(pool.persistent()), Value::Count(pages)))
        };
        let change = self.apply(Knob::Pool(page), "set", aim)?.change;
        let granted = Pool::read(&self.host, page)?.persistent();
        if granted != pages {
            self.undo(change)?;
            return Err(Error::NotGranted { page, wanted: pages, granted });
        }
        self.join(change)
    }
}
