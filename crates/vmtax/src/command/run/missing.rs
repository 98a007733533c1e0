//! Which cells of a plan cannot be measured on a host, and why.

use vmtax_core::{
    availability::{self, Demand, Reserve},
    experiment::Missing,
    host::Host,
    plan::{self, Cell, Job, Plan},
    setting::Setting,
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
    if let Err(error) = job.layout() {
        return missing(error.to_string(), "another size or stride in the plan".to_owned());
    }
    let setting = match (job, job.setting()) {
        (Job::Reserve(reserve), _) => {
            let (reason, remedy) = unprepared(host, reserve)?;
            return missing(reason, remedy);
        }
        (_, Some(setting)) => setting,
        (_, None) => return None,
    };
    let availability = availability::availability(host, &[setting], demand(&job, setting));
    let obstacle = availability.unavailable().next()?;
    missing(obstacle.reason.clone(), obstacle.remedy.clone())
}

/// What a job takes; its plot is laid once, and its tables are those of the guest that runs at the time.
fn demand(job: &Job, setting: Setting) -> Demand {
    let size = job.memory();
    let tables = if setting.guest.is_some() { microvm::low_bytes(size, PageSize::Small) } else { Bytes(0) };
    Demand { arena: size, tables, vcpus: job.vcpus(), reserve: Reserve::No }
}

/// Why pages cannot be prepared: no such pool, or more than half of what is available would be taken.
fn unprepared(host: &Host, job: plan::Reserve) -> Option<(String, String)> {
    let page = job.page;
    if host.pools.iter().all(|pool| pool.page != page) {
        let reason = format!("this kernel has no pool of {} pages", page.prose());
        return Some((reason, "another page size in the plan".to_owned()));
    }
    let most = (host.memory.available?.0 as f64 * availability::RESERVE_SHARE) as u64 / page.bytes();
    let reason = format!("{} pages of {} are more than half of the available memory", job.pages, page.prose());
    (job.pages > most).then(|| (reason, format!("pages = {most} in the plan, or fewer")))
}
