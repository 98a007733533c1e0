//! Which cells of a plan cannot be measured on a host, and why.

use vmtax_core::{
    arena::Layout,
    availability::{self, Demand, Reserve},
    experiment::Missing,
    host::Host,
    plan::{Cell, Job, Plan},
    units::{Bytes, PageSize},
};
use vmtax_machine::microvm;

/// Cells of `plan` that cannot be measured on `host`.
pub fn on(host: &Host, plan: &Plan) -> Vec<Missing> {
    let cells = plan.cells();
    cells.iter().filter_map(|cell| judge(host, plan, cell)).collect()
}

fn judge(host: &Host, plan: &Plan, cell: &Cell) -> Option<Missing> {
    let missing = |reason, remedy| Some(Missing { cell: cell.name(), reason, remedy });
    let job = match plan.job(cell) {
        Ok(job) => job,
        Err(reason) => return missing(reason, "exclude it from the plan".to_owned()),
    };
    if let Err(error) = Layout::new(job.probe, job.size, job.stride) {
        return missing(error.to_string(), "another size or stride in the plan".to_owned());
    }
    let availability = availability::availability(host, &[job.setting], demand(&job));
    let obstacle = availability.unavailable().next()?;
    missing(obstacle.reason.clone(), obstacle.remedy.clone())
}

/// What a job takes; its plot is laid once, and its tables are those of the guest that runs at the time.
fn demand(job: &Job) -> Demand {
    let tables = if job.setting.guest.is_some() { microvm::low_bytes(job.size, PageSize::Small) } else { Bytes(0) };
    Demand { arena: job.size, tables, vcpus: job.vcpus, reserve: Reserve::No }
}
