//! A knob at a value: what an experiment sets, and what was found before it.

use std::fmt;

use vmtax_core::units::{Bytes, PageSize};

use super::{Error, Host, Knob, Pool, Switch, Value, pool::check_bytes};

/// A knob at a value, as its user names it: pages of a pool, or one of the words of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The knob.
    pub knob: Knob,
    /// Where it stands, or shall stand.
    pub value: Value,
}

impl Position {
    /// A pool with exactly so many persistent pages.
    pub fn pool(page: PageSize, pages: u64) -> Position {
        Position { knob: Knob::Pool(page), value: Value::Count(pages) }
    }

    /// A switch at one of its [words](Switch::words).
    pub fn switch(switch: Switch, word: impl Into<String>) -> Position {
        Position { knob: Knob::Switch(switch), value: Value::Word(word.into()) }
    }

    /// Where a knob stands now.
    ///
    /// # Errors
    /// This host does not have it, or does not show it.
    pub fn now(host: &Host, knob: Knob) -> Result<Position, Error> {
        let value = match knob {
            Knob::Pool(page) => Value::Count(Pool::read(host, page)?.persistent()),
            Knob::Switch(switch) => Value::Word(switch.read(host)?),
        };
        Ok(Position { knob, value })
    }

    /// Whether all of `positions` could be had together, as far as can be known without trying. Changes nothing.
    ///
    /// # Errors
    /// Why not, for the first that could not.
    pub fn check(host: &Host, positions: &[Position]) -> Result<(), Error> {
        let mut bytes = 0_u64;
        for position in positions {
            match (position.knob, &position.value) {
                (Knob::Pool(page), Value::Count(pages)) => {
                    let pool = Pool::read(host, page)?;
                    check_lowering(page, pool, *pages)?;
                    let more = pages.saturating_sub(pool.persistent());
                    bytes = bytes.saturating_add(more.saturating_mul(page.bytes()));
                }
                (Knob::Switch(switch), value) => switch.check(host, &value.to_string())?,
                (Knob::Pool(_), Value::Word(_)) => unreachable!("a pool is set by count"),
            }
        }
        check_bytes(host, Bytes(bytes))
    }
}

/// Only pages that nobody uses leave a pool at once; the others would stay, as surplus, while it reads as lowered.
pub(super) fn check_lowering(page: PageSize, pool: Pool, wanted: u64) -> Result<(), Error> {
    let busy = pool.persistent().saturating_sub(pool.available());
    if wanted >= pool.persistent() || wanted >= busy {
        return Ok(());
    }
    Err(Error::PoolInUse { page, wanted, busy, total: pool.persistent() })
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.knob, self.value.brief())
    }
}
