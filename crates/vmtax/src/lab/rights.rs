//! A trial of `rights`: every way to a huge page, tried for real by two persons.

use vmtax_core::{
    experiment::Finding,
    rights::{self, Answer, GRANTED, PERSONS, WAYS},
};
use vmtax_machine::{
    knob::Host,
    rights::{Attempt, Outcome, Person, Way, errno_name, survey},
};

use super::{TrialError, bench::HostBench};

/// Tries them; a page that a pool lacks is borrowed only where that was allowed.
pub fn trial(bench: &mut HostBench<'_>) -> Result<Finding, TrialError> {
    let attempts = survey(&Host::default(), bench.knobs.lender());
    Ok(rights::finding(&attempts.iter().map(answer).collect::<Vec<_>>()))
}

fn answer(attempt: &Attempt) -> Answer {
    let person = match attempt.person {
        Person::Present => PERSONS[0],
        Person::Ordinary => PERSONS[1],
    };
    let way = match attempt.way {
        Way::Mmap => WAYS[0],
        Way::Shmget => WAYS[1],
        Way::File => WAYS[2],
        Way::Memfd => WAYS[3],
    };
    let said = match &attempt.outcome {
        Outcome::Granted => GRANTED.to_owned(),
        Outcome::Refused { operation, errno } => format!("{} ({operation})", errno_name(*errno)),
        Outcome::Killed { signal } => format!("killed by signal {signal}"),
        Outcome::NotTested { reason } => format!("not tested: {reason}"),
    };
    Answer { person, way, page: attempt.page, said, remedy: attempt.remedy.clone() }
}
