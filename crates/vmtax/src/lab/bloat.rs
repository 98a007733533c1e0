//! A trial of `bloat`: a fresh mapping, one byte touched every stride, and what that took.

use std::collections::BTreeMap;

use vmtax_core::{experiment::Finding, plan::Bloat, setting::Backing};
use vmtax_machine::{
    bloat::{Pattern, Touch, measure},
    knob::Host,
};

use super::{
    TrialError,
    attempt::{cost, failed},
    bench::HostBench,
};

/// Maps, touches, reads back, unmaps.
pub fn trial(bench: &mut HostBench<'_>, job: Bloat) -> Result<Finding, TrialError> {
    bench.rig.spare = None;
    let touch = Touch { bytes: job.size, pattern: Pattern::Every(job.stride) };
    let found = measure(&Host::default(), bench.rig.foundation(job.host), touch).map_err(|e| failed(&e))?;
    let usage = found.usage;
    if job.host == Backing::Small && usage.huge.0 > 0 {
        return Err(TrialError::Failed(format!(
            "asked for 4 KiB pages, but {} are in transparent huge ones",
            usage.huge
        )));
    }
    let mut facts = BTreeMap::from([
        ("touched_bytes".to_owned(), found.touched.0.to_string()),
        ("smaps.resident_bytes".to_owned(), usage.resident.0.to_string()),
        ("smaps.huge_bytes".to_owned(), usage.huge.0.to_string()),
        ("smaps.pool_bytes".to_owned(), usage.pool.0.to_string()),
    ]);
    facts.extend(found.pool_pages.map(|pages| ("pool_pages".to_owned(), pages.to_string())));
    let is_partial = job.host == Backing::Thp && usage.huge < usage.resident;
    let caveat = format!("of {} in use only {} are in transparent huge pages", usage.resident, usage.huge);
    Ok(Finding {
        metrics: cost("bytes_used", found.used().0 as f64, "B").into_iter().collect(),
        evidence: facts,
        caveats: is_partial.then_some(caveat).into_iter().collect(),
    })
}
