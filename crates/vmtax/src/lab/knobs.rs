//! The knobs of a plan: from its factors to the host's, set for a whole plot, read back around every trial.
//!
//! A factor of [`vmtax_core::factor::Hardness::WholePlot`] is one knob; [`level`] is the one place that says which, and how the kernel spells
//! its levels. Memory on transparent pages of one size turns the switches of all sizes, for its plot. Both stand on one
//! [`Panel`]: what neither names is where it was found.

mod level;

use std::collections::{BTreeMap, BTreeSet};

use vmtax_core::{
    availability::Reserve,
    plan::{Job, Plan, Setting},
    setting::Backing,
    units::PageSize,
};
use vmtax_machine::{
    knob::{Error, Host, Knob, Lease, Outcome, Panel, Position, Switch, Value},
    mthp::{self, Mthp},
};

use level::positions;
pub use level::{Obstacle, knob};

/// The host's settings while a plan runs, and the right to change them where the plan needs it.
#[derive(Debug)]
pub struct Knobs {
    host: Host,
    panel: Panel,
    /// Of the whole plot that is being measured.
    whole: Vec<Position>,
    lease: Option<Lease>,
    /// Whether trials may borrow pages that are wanting.
    reserve: Reserve,
    /// Where pools stood that trials raise themselves.
    raised: Vec<Position>,
}

impl Knobs {
    /// The knobs of `plan` as they stand now; without a lease none can be turned.
    pub fn of(plan: &Plan, host: Host, lease: Option<Lease>, reserve: Reserve) -> Knobs {
        let panel = Panel::find(&host, knobs(plan));
        let pools = pools_raised(plan, reserve).into_iter();
        let raised = pools.filter_map(|page| Position::now(&host, Knob::Pool(page)).ok()).collect();
        Knobs { host, panel, whole: Vec::new(), lease, reserve, raised }
    }

    /// The right to raise pools within a trial, whose business that is.
    pub fn lease(&mut self) -> Option<&mut Lease> {
        self.lease.as_mut()
    }

    /// The right to borrow a page that a trial finds wanting, where the user gave it.
    pub fn lender(&mut self) -> Option<&mut Lease> {
        match self.reserve {
            Reserve::Yes => self.lease.as_mut(),
            Reserve::No => None,
        }
    }

    /// Sets what a whole plot names; the other knobs of the plan go back to what they were found at.
    pub fn set(&mut self, whole: &Setting) -> Result<(), Obstacle> {
        let positions = positions(&self.host, whole)?;
        self.whole.clone_from(&positions);
        self.turn(&positions)
    }

    /// Turns, beside the whole plot's, the switches that the memory of a plot needs.
    pub fn prepare(&mut self, memory: &Setting) -> Result<(), Obstacle> {
        let mut positions = self.whole.clone();
        positions.extend(size_of(memory).into_iter().flat_map(|size| isolation(&self.host, size)));
        self.turn(&positions)
    }

    fn turn(&mut self, positions: &[Position]) -> Result<(), Obstacle> {
        match &mut self.lease {
            Some(lease) => Ok(self.panel.set(lease, positions)?),
            // Nothing in the plan is a knob.
            None => Ok(()),
        }
    }

    /// Whether turning a knob reloads KVM, which must not be open then.
    pub fn reload_kvm(&self) -> bool {
        self.panel.found().iter().any(|found| found.knob == Knob::Switch(Switch::NestedPaging))
    }

    /// What every knob of the plan reads now, by name; or in words which of them somebody else has turned.
    pub fn witness(&self) -> Result<BTreeMap<String, String>, String> {
        let readings = self.panel.readings(&self.host).map_err(|error| error.to_string())?;
        if let Some(contradiction) = readings.iter().find_map(|reading| reading.contradiction()) {
            return Err(contradiction);
        }
        let named = |knob, now: &Value| Some((format!("knob.{}", name(knob, now)?), now.to_string()));
        let mut facts: BTreeMap<_, _> = readings.iter().filter_map(|r| named(r.knob, &r.now)).collect();
        if let Some(ksm) = readings.iter().find(|reading| reading.knob == Knob::Switch(Switch::Ksm)) {
            let sharing = pages_sharing(&self.host)?;
            if ksm.now == Value::from("2") && sharing != "0" {
                return Err(format!("KSM was told to unmerge everything, but {sharing} pages share another"));
            }
            facts.insert("ksm.pages_sharing".to_owned(), sharing);
        }
        Ok(facts)
    }

    /// Puts everything back, and says line by line what had been changed and that it is back; no line where nothing was. The
    /// memory of the run must be gone, and KVM closed.
    ///
    /// # Errors
    /// Something is not back.
    pub fn release(mut self) -> Result<Vec<String>, Error> {
        let Some(lease) = self.lease.take() else { return Ok(Vec::new()) };
        let outcomes = lease.release()?;
        let is_told = |knob| outcomes.iter().any(|outcome| outcome.knob == knob);
        let mut lines: Vec<String> = outcomes.iter().map(Outcome::to_string).collect();
        let raised = self.raised.iter().filter(|found| self.panel.turned().all(|turned| turned.knob != found.knob));
        for found in self.panel.turned().chain(raised).filter(|found| !is_told(found.knob)) {
            let now = Position::now(&self.host, found.knob)?;
            lines.push(match now == *found {
                true => format!("{}: changed for the run, back at {}", found.knob, found.value),
                false => format!("{}: {} now, somebody set it since; it was {}", found.knob, now.value, found.value),
            });
        }
        Ok(lines)
    }
}

/// Every knob that running `plan` may turn.
pub fn knobs(plan: &Plan) -> Vec<Knob> {
    let factors = plan.factors.iter().filter_map(|varied| knob(varied.factor.name));
    let has_sizes = plan.cells().iter().any(|cell| size_of(&plan.memory(cell)).is_some());
    let sizes = Mthp::all().filter(|_| has_sizes).map(|size| Knob::Switch(Switch::Mthp(size)));
    factors.chain(sizes).collect()
}

/// Pools that trials of a plan raise themselves: `reserve`, whose business that is, and `rights`, where pages may be borrowed.
pub fn pools_raised(plan: &Plan, reserve: Reserve) -> BTreeSet<PageSize> {
    let of = |job: Job| match job {
        Job::Reserve(job) => vec![job.page],
        Job::Rights if reserve == Reserve::Yes => vec![PageSize::Large, PageSize::Giant],
        Job::Rights | Job::Probe(_) | Job::Touch(_) | Job::Walk(_) | Job::Bloat(_) => Vec::new(),
        Job::Os(_) | Job::Program(_) | Job::Command(_) => Vec::new(),
    };
    plan.cells().iter().filter_map(|cell| plan.job(cell).ok()).flat_map(of).collect()
}

/// The size of transparent page that memory is to stand on, where it names one.
pub fn size_of(memory: &Setting) -> Option<Mthp> {
    memory.level("host")?.word()?.parse().ok()
}

/// Whether the plan itself sets the pool of a backing, so that nothing is to be borrowed for it.
pub fn sets_pool_of(plan: &Plan, backing: Backing) -> bool {
    backing.pool().is_some_and(|page| plan.factors.iter().any(|v| knob(v.factor.name) == Some(Knob::Pool(page))))
}

/// Why the levels of a whole plot cannot be had together, as far as can be known without trying; none if they can.
pub fn obstacle(host: &Host, whole: &Setting) -> Option<Obstacle> {
    let checked = positions(host, whole).and_then(|positions| Ok(Position::check(host, &positions)?));
    checked.err()
}

/// Whether a whole plot, or memory of it, needs a knob that stands elsewhere now.
pub fn needs_turning(host: &Host, whole: &Setting, memory: &Setting) -> bool {
    let sizes = size_of(memory).into_iter().flat_map(|size| isolation(host, size));
    let wanted = positions(host, whole).unwrap_or_default().into_iter().chain(sizes);
    wanted.into_iter().any(|position| Position::now(host, position.knob).is_ok_and(|now| now != position))
}

/// Why memory cannot be laid on transparent pages of the size it names; none if it can, or names none.
pub fn obstacle_of_memory(host: &Host, memory: &Setting) -> Option<Obstacle> {
    let positions = isolation(host, size_of(memory)?);
    Position::check(host, &positions).err().map(Obstacle::from)
}

/// What the knob of a factor is called in evidence; of the sizes of transparent pages, only the one that is on.
fn name(knob: Knob, now: &Value) -> Option<String> {
    let name = match knob {
        Knob::Pool(PageSize::Giant) => "pool_1g",
        Knob::Pool(PageSize::Small | PageSize::Large) => "pool_2m",
        Knob::Switch(Switch::Thp) => "thp",
        Knob::Switch(Switch::Ksm) => "ksm",
        Knob::Switch(Switch::NxHugePages) => "nx_huge_pages",
        Knob::Switch(Switch::NestedPaging) => "nested_paging",
        Knob::Switch(Switch::Mthp(size)) => return (*now == Value::from("madvise")).then(|| size.to_string()),
    };
    Some(name.to_owned())
}

fn isolation(host: &Host, size: Mthp) -> Vec<Position> {
    mthp::isolation(host, size).into_iter().map(|(switch, word)| Position::switch(switch, word)).collect()
}

fn pages_sharing(host: &Host) -> Result<String, String> {
    let path = host.sys.join("kernel/mm/ksm/pages_sharing");
    let text = host.kernel.read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests;
