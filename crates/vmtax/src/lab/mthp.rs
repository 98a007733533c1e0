//! Memory on transparent pages of one size other than 2 MiB: what proves that it stands on them.
//!
//! smaps does not show such sizes; page frames do, or the size's own count of faults.

use vmtax_core::trial::KvmCounts;
use vmtax_machine::{
    backing::Memory,
    knob::Host,
    mthp::{Evidence, Faults, Mthp, Standing},
};

use super::{TrialError, host::FULL_COVERAGE};

/// Least share of memory in use that is on the size asked for without which a trial has failed.
const MOST: f64 = 0.5;

/// Memory is about to be taken on a size.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    size: Mthp,
    before: Option<Faults>,
}

/// Memory stands on a size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proof {
    size: Mthp,
    /// Its share of the memory in use.
    standing: Standing,
}

impl Expected {
    /// To be made before the memory is touched.
    pub fn of(size: Mthp) -> Expected {
        Expected { size, before: size.faults(&Host::default()) }
    }

    /// What `memory` stands on now. Memory that stands for the most part on something else is not what its setting says.
    pub fn proved(self, memory: &Memory) -> Result<Proof, TrialError> {
        let size = self.size;
        let standing = size.standing(&Host::default(), memory, self.before).ok_or_else(|| {
            TrialError::Failed(format!(
                "nothing shows what memory on {size} stands on: neither /proc/kpageflags nor its counts"
            ))
        })?;
        let resident = memory.usage().map_err(|e| TrialError::Failed(format!("reading smaps: {e}")))?.resident;
        let in_use = resident.0.max(1) as f64 / memory.bytes() as f64;
        let coverage = (standing.coverage / in_use).min(1.0);
        if coverage < MOST {
            let share = coverage * 100.0;
            let reason = format!("asked for {size}, but {share:.1} % of the memory is in pages of {}", size.bytes());
            return Err(TrialError::Failed(reason));
        }
        Ok(Proof { size, standing: Standing { coverage, ..standing } })
    }
}

impl Proof {
    /// As evidence.
    pub fn evidence(&self) -> [(String, String); 2] {
        let Proof { size, standing } = self;
        let known_by = match standing.evidence {
            Evidence::Frames => "frames",
            Evidence::Faults => "faults of the whole machine",
        };
        [(format!("{size}.coverage"), standing.coverage.to_string()), (format!("{size}.known_by"), known_by.to_owned())]
    }

    /// That not all of it stands on that size.
    pub fn caveat(&self) -> Option<String> {
        let Proof { size, standing: Standing { coverage, .. } } = *self;
        let words = || format!("only {:.1} % of the memory is in transparent {} pages", coverage * 100.0, size.bytes());
        (coverage < FULL_COVERAGE).then(words)
    }

    /// What KVM shows against it.
    pub fn contradiction(&self, kvm: Option<KvmCounts>) -> Option<String> {
        let larger = kvm.map_or(0, |kvm| kvm.pages_2m);
        let size = self.size;
        let words = || format!("asked for {size}, but KVM maps {larger} pages of 2 MiB, larger than any of the host's");
        (larger > 0).then(words)
    }
}
