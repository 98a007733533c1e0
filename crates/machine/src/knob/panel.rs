//! The knobs that an experiment varies, set together: each where a whole plot names it, the others where they were found.

use super::{Error, Host, Knob, Lease, Position, Value};

/// Knobs with what they were found at.
#[derive(Debug, Clone, Default)]
pub struct Panel {
    found: Vec<Position>,
    /// What was asked for last, for every knob.
    set: Vec<Position>,
    /// Knobs that were turned at some time.
    turned: Vec<Knob>,
}

impl Panel {
    /// The knobs as they stand now. Those this host does not have are left out: nobody can set them.
    pub fn find(host: &Host, knobs: impl IntoIterator<Item = Knob>) -> Panel {
        let mut found: Vec<Position> = Vec::new();
        for position in knobs.into_iter().filter_map(|knob| Position::now(host, knob).ok()) {
            if found.iter().all(|known| known.knob != position.knob) {
                found.push(position);
            }
        }
        Panel { set: found.clone(), found, turned: Vec::new() }
    }

    /// Sets the knobs named, and puts the others back to what they were found at. Reads each back.
    ///
    /// # Errors
    /// A knob cannot be had. All are then back, as far as they can be, and the first reason is returned.
    pub fn set(&mut self, lease: &mut Lease, positions: &[Position]) -> Result<(), Error> {
        let outcome = self.turn(lease, positions);
        if outcome.is_err() {
            // The reason is the first error; what could not be put back is in the journal, and said at the end.
            let _ = self.turn(lease, &[]);
        }
        outcome
    }

    fn turn(&mut self, lease: &mut Lease, positions: &[Position]) -> Result<(), Error> {
        let strange = positions.iter().find(|p| self.found.iter().all(|found| found.knob != p.knob));
        if let Some(strange) = strange {
            // Says why it was not found.
            Position::now(lease.host(), strange.knob)?;
        }
        let target = |found: &Position| positions.iter().find(|p| p.knob == found.knob).unwrap_or(found).clone();
        self.set = self.found.iter().map(target).collect();
        let mut steps = Vec::new();
        for (found, target) in self.found.iter().zip(&self.set) {
            let now = Position::now(lease.host(), target.knob)?;
            if now != *target {
                steps.push((is_more(&now.value, &target.value), found == target, target.clone()));
            }
        }
        // What makes room comes first.
        steps.sort_by_key(|(is_more, _, _)| *is_more);
        for (_, is_back, target) in steps {
            if !self.turned.contains(&target.knob) {
                self.turned.push(target.knob);
            }
            // Putting back knows more than the word: a module gets all of its parameters again.
            if is_back { lease.put_back(target.knob).map(drop)? } else { lease.set(&target)? }
        }
        Ok(())
    }

    /// What every knob reads now, and what is set.
    ///
    /// # Errors
    /// One cannot be read any more.
    pub fn readings(&self, host: &Host) -> Result<Vec<Reading>, Error> {
        let reading = |set: &Position| {
            let value = Position::now(host, set.knob)?.value;
            Ok(Reading { knob: set.knob, set: set.value.clone(), now: value })
        };
        self.set.iter().map(reading).collect()
    }

    /// What the knobs were found at.
    pub fn found(&self) -> &[Position] {
        &self.found
    }

    /// Those that were turned at some time, with what they were found at.
    pub fn turned(&self) -> impl Iterator<Item = &Position> {
        self.found.iter().filter(|found| self.turned.contains(&found.knob))
    }
}

/// A knob read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The knob.
    pub knob: Knob,
    /// What it was set to, or left at.
    pub set: Value,
    /// What it reads.
    pub now: Value,
}

impl Reading {
    /// That somebody else turned it, in words; none when it stands where it was set.
    pub fn contradiction(&self) -> Option<String> {
        let Reading { knob, set, now } = self;
        (set != now).then(|| format!("{knob} was set to {set}, but reads {now}: somebody else has turned it"))
    }
}

fn is_more(now: &Value, target: &Value) -> bool {
    matches!((now, target), (Value::Count(now), Value::Count(target)) if target > now)
}

#[cfg(test)]
mod tests;
