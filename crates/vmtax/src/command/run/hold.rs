//! The host while a plan runs: its knobs, the pages borrowed for it, and how it is put back.

use vmtax_core::{availability::Reserve, experiment::Missing, host, plan::Plan, setting::Backing};
use vmtax_machine::knob::{Contention, Error, Host, Lease};

use super::{
    super::Refusal,
    loan::{self, Shortage},
    missing::{self, Known},
};
use crate::{
    lab::knobs::{Knobs, Obstacle, knobs, pools_raised},
    output,
};

/// The right to change what the plan needs changed. Dropped, it puts everything back as well, without a word.
#[derive(Debug)]
pub struct Hold {
    host: Host,
    knobs: Knobs,
    shortages: Vec<Shortage>,
    /// Why no knob may be turned, where that is so.
    denied: Option<Error>,
}

/// That the host is back, line by line.
#[derive(Debug)]
pub struct Released(Vec<String>);

impl Hold {
    /// Takes a lease where the plan varies a knob, or pages are to be borrowed; otherwise nothing is locked. Who may not take
    /// one can still measure what needs no knob turned.
    ///
    /// # Errors
    /// Somebody else holds the host, or pages were asked for and it may not be changed.
    pub fn take(host: Host, plan: &Plan, reserve: Reserve) -> Result<Hold, Error> {
        let raises = !pools_raised(plan, reserve).is_empty();
        let needs_lease = reserve == Reserve::Yes || raises || !knobs(plan).is_empty();
        let (mut lease, denied) = match needs_lease.then(|| Lease::acquire(host.clone(), Contention::Refuse)) {
            None => (None, None),
            Some(Ok(lease)) => (Some(lease), None),
            Some(Err(error @ Error::Forbidden { .. })) if reserve == Reserve::No => (None, Some(error)),
            Some(Err(error)) => return Err(error),
        };
        for outcome in lease.iter().flat_map(Lease::recovered) {
            output::note(format!("left by an earlier run: {outcome}"));
        }
        let shortages = match &mut lease {
            Some(lease) if reserve == Reserve::Yes => loan::borrow(lease, plan)?,
            Some(_) | None => Vec::new(),
        };
        Ok(Hold { knobs: Knobs::of(plan, host.clone(), lease, reserve), host, shortages, denied })
    }

    /// The knobs, to be turned.
    pub fn knobs(&mut self) -> &mut Knobs {
        &mut self.knobs
    }

    /// Cells that cannot be measured on the host as it is held.
    pub fn missing(&self, facts: &host::Host, plan: &Plan) -> Vec<Missing> {
        let denied = self.denied.as_ref().map(Obstacle::from);
        missing::on(Known { facts, knobs: &self.host, shortages: &self.shortages, denied: denied.as_ref() }, plan)
    }

    /// Refuses to go on without pages of a backing that was asked for by name.
    ///
    /// # Errors
    /// The pool that fell short, why, and the way out.
    pub fn insist(&self, named: &[Backing]) -> Result<(), Refusal> {
        let is_named = |shortage: &&Shortage| named.iter().any(|backing| backing.pool() == Some(shortage.page));
        match self.shortages.iter().find(is_named) {
            None => Ok(()),
            Some(Shortage { obstacle: Obstacle { reason, remedy }, .. }) => Err(Refusal::new(reason, remedy)),
        }
    }

    /// The hold, unless all that it may not do leaves nothing to measure.
    ///
    /// # Errors
    /// Why it may not.
    pub fn unless_idle(mut self, missing: &[Missing], plan: &Plan) -> Result<Hold, Error> {
        match self.denied.take() {
            Some(error) if missing.len() == plan.cells().len() => Err(error),
            denied => Ok(Hold { denied, ..self }),
        }
    }

    /// Puts everything back.
    ///
    /// # Errors
    /// Something is not.
    pub fn release(self) -> Result<Released, Error> {
        self.knobs.release().map(Released)
    }
}

impl Released {
    /// Tells the user.
    pub fn say(self) {
        if self.0.is_empty() {
            return output::note("No host setting was changed.");
        }
        output::note("Host settings changed for the run, and what became of them:");
        self.0.iter().for_each(|line| output::note(format!("  {line}")));
    }
}
