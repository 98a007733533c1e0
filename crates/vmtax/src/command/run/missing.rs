//! Which cells of a plan cannot be measured on a host, and why.

use std::collections::BTreeMap;

use vmtax_core::{
    availability::{self, Demand, Reserve},
    experiment::Missing,
    factor::Hardness,
    host::{Host, ThpMode},
    plan::{self, Cell, Job, Plan, Setting},
    setting::{self, Backing},
    units::{Bytes, PageSize},
};
use vmtax_machine::{knob, microvm};

use super::loan::Shortage;
use crate::lab::{
    self,
    knobs::{self, Obstacle},
};

/// What is known of a host.
#[derive(Debug, Clone, Copy)]
pub struct Known<'h> {
    /// Its facts, borrowed pages included.
    pub facts: &'h Host,
    /// Its knobs.
    pub knobs: &'h knob::Host,
    /// What could not be borrowed for the run.
    pub shortages: &'h [Shortage],
    /// Why no knob may be turned, where that is so.
    pub denied: Option<&'h Obstacle>,
}

/// Cells of `plan` that cannot be measured on a host.
pub fn on(known: Known<'_>, plan: &Plan) -> Vec<Missing> {
    let mut whole_plots = BTreeMap::new();
    let mut judge = |cell: &Cell| {
        let whole = cell.setting.stratum(Hardness::WholePlot);
        let of_knobs: &Option<Obstacle> =
            whole_plots.entry(whole.to_string()).or_insert_with(|| knobs::obstacle(known.knobs, &whole));
        let denied = known.denied.filter(|_| knobs::needs_turning(known.knobs, &whole, &plan.memory(cell)));
        of_knobs.clone().or_else(|| denied.cloned()).or_else(|| obstacle(known, plan, cell))
    };
    let missing =
        |(cell, Obstacle { reason, remedy }): (&Cell, Obstacle)| Missing { cell: cell.name(), reason, remedy };
    plan.cells().iter().filter_map(|cell| Some((cell, judge(cell)?))).map(missing).collect()
}

/// What stands in the way of a cell whose knobs can be had.
fn obstacle(known: Known<'_>, plan: &Plan, cell: &Cell) -> Option<Obstacle> {
    let job = match job(plan, cell) {
        Ok(job) => job,
        Err(obstacle) => return Some(obstacle),
    };
    if let Job::Reserve(reserve) = job {
        return known.denied.cloned().or_else(|| unprepared(known.facts, reserve));
    }
    if let Some(obstacle) = lab::program::obstacle(&job).or_else(|| unpooled(known, &job)) {
        return Some(obstacle);
    }
    let memory = plan.memory(cell);
    if let Some(obstacle) = knobs::obstacle_of_memory(known.knobs, &memory) {
        return Some(obstacle);
    }
    if let Some((reason, remedy)) = guest(plan, cell).and_then(|wanted| lab::guest::obstacle(&wanted)) {
        return Some(Obstacle::new(reason, in_plan(&remedy)));
    }
    let work = work(plan, cell)?;
    let host = under(known.facts, &cell.setting, &memory);
    let availability = availability::availability(&host, &[work.setting], work.demand);
    let why = availability.unavailable().next()?;
    let pool = work.setting.host.pool();
    if pool.is_some() && knobs::sets_pool_of(plan, work.setting.host) {
        return Some(Obstacle::new(&why.reason, "more pages in the plan, or leave this out of it with [[exclude]]"));
    }
    match known.shortages.iter().find(|shortage| Some(shortage.page) == pool) {
        Some(shortage) => Some(shortage.obstacle.clone()),
        None => Some(Obstacle::new(&why.reason, in_plan(&why.remedy))),
    }
}

/// The job of a cell, or why there is no such work on any host.
fn job(plan: &Plan, cell: &Cell) -> Result<Job, Obstacle> {
    let job = plan.job(cell).map_err(|reason| Obstacle::new(reason, "exclude it from the plan"))?;
    match job.layout() {
        Ok(_) => Ok(job),
        Err(error) => Err(Obstacle::new(error.to_string(), "another size or stride in the plan")),
    }
}

/// What a cell takes of the host's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Where it runs, on what.
    pub setting: setting::Setting,
    /// How much it takes.
    pub demand: Demand,
}

/// What a cell takes; none where there is no such work, or it has no memory of its own.
pub fn work(plan: &Plan, cell: &Cell) -> Option<Work> {
    let job = job(plan, cell).ok()?;
    match guest(plan, cell) {
        // All of its memory, whatever the workload takes of it.
        Some(plan::Guest { memory, vcpus, host, .. }) => {
            let demand = Demand { arena: memory, tables: Bytes(0), vcpus, reserve: Reserve::No };
            Some(Work { setting: setting::Setting::native(host), demand })
        }
        None => Work::of(&job),
    }
}

fn guest(plan: &Plan, cell: &Cell) -> Option<plan::Guest> {
    plan.guest(cell).ok().flatten()
}

impl Work {
    /// A plot is laid once, and its tables are those of the guest that runs at the time.
    fn of(job: &Job) -> Option<Work> {
        let (setting, size) = (job.setting()?, job.memory());
        let tables = if setting.guest.is_some() { microvm::low_bytes(size, PageSize::Small) } else { Bytes(0) };
        Some(Work { setting, demand: Demand { arena: size, tables, vcpus: job.vcpus(), reserve: Reserve::No } })
    }
}

/// Why a program cannot have the huge pages that it asks for.
fn unpooled(known: Known<'_>, job: &Job) -> Option<Obstacle> {
    let (page, pages) = lab::program::pages(job)?;
    if let Some(shortage) = known.shortages.iter().find(|shortage| shortage.page == page) {
        return Some(shortage.obstacle.clone());
    }
    let pool = known.facts.pools.iter().find(|pool| pool.page == page);
    let free = pool.map_or(0, |pool| pool.free.saturating_sub(pool.reserved));
    let reason = format!("{pages} pages of {} needed, {free} free", page.prose());
    (free < pages).then(|| Obstacle::new(reason, "vmtax run --reserve (as root)"))
}

/// Why pages cannot be prepared: no such pool, or more than half of what is available would be taken.
fn unprepared(host: &Host, job: plan::Reserve) -> Option<Obstacle> {
    let page = job.page;
    if host.pools.iter().all(|pool| pool.page != page) {
        let reason = format!("this kernel has no pool of {} pages", page.prose());
        return Some(Obstacle::new(reason, "another page size in the plan"));
    }
    let most = (host.memory.available?.0 as f64 * availability::RESERVE_SHARE) as u64 / page.bytes();
    let reason = format!("{} pages of {} are more than half of the available memory", job.pages, page.prose());
    (job.pages > most).then(|| Obstacle::new(reason, format!("pages = {most} in the plan, or fewer")))
}

/// The host as it will be when the knobs of a cell are set.
fn under(facts: &Host, setting: &Setting, memory: &Setting) -> Host {
    let mut host = facts.clone();
    if let Some(thp) = &mut host.thp {
        // What memory gets under a mode that the plan sets is what it measures: evidence, not an obstacle.
        if setting.named("thp").is_some() {
            thp.enabled = ThpMode::Madvise;
        }
        if knobs::size_of(memory).is_some() {
            (thp.enabled, thp.sizes) = (ThpMode::Madvise, Vec::new());
        }
    }
    for backing in [Backing::Huge2m, Backing::Huge1g] {
        let name = format!("pool_{backing}");
        let level = setting.named(&name).and_then(|level| level.count());
        let pool = host.pools.iter_mut().find(|pool| Some(pool.page) == backing.pool());
        if let (Some(pages), Some(pool)) = (level, pool) {
            let used = pool.total.saturating_sub(pool.free);
            (pool.total, pool.free, pool.surplus) = (pages, pages.saturating_sub(used), 0);
        }
    }
    host
}

/// A remedy in arguments of `vmtax matrix`, for who writes a plan.
fn in_plan(remedy: &str) -> String {
    match remedy.split_once(' ') {
        Some(("--size", size)) => format!("size = \"{size}\" in the plan"),
        Some(("--vcpus", vcpus)) => format!("at most {vcpus} vcpus in the plan"),
        Some(_) | None => remedy
            .replace("add --reserve (as root)", "vmtax run --reserve (as root)")
            .replace("--qemu FILE", "qemu = [\"FILE\"] in the plan"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use vmtax_core::host::{Memory, Pool, Thp};

    use super::*;
    use crate::command::matrix::pools;

    fn host() -> Host {
        let pool = Pool { page: PageSize::Large, total: 4, free: 3, reserved: 0, surplus: 0 };
        let thp = Thp { enabled: ThpMode::Never, defrag: None, shmem: None, pmd: None, sizes: Vec::new() };
        let memory = Memory { available: Some(Bytes(8 << 30)), ..Memory::default() };
        Host { pools: vec![pool], thp: Some(thp), memory, ..Host::default() }
    }

    fn missing(factors: &str, shortages: &[Shortage]) -> Vec<String> {
        missing_to(None, factors, shortages)
    }

    fn missing_to(denied: Option<&Obstacle>, factors: &str, shortages: &[Shortage]) -> Vec<String> {
        let text = format!("[factors]\n{factors}\n[[workload]]\nprobe = \"chase\"\nsize = \"8M\"\n");
        let plan = Plan::parse("plan.toml", &text).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let knobs = pools::tests::host(directory.path(), 8 << 10);
        let thp = knobs.sys.join("kernel/mm/transparent_hugepage");
        fs::create_dir_all(&thp).unwrap();
        fs::write(thp.join("enabled"), "always madvise [never]").unwrap();
        let known = Known { facts: &host(), knobs: &knobs, shortages, denied };
        on(known, &plan).iter().map(|m| format!("{}: {}; {}", m.cell, m.reason, m.remedy)).collect()
    }

    #[test]
    fn a_pool_that_is_too_small_is_remedied_by_vmtax_run() {
        let got = missing("host = [\"2m\"]", &[]);
        assert_eq!(
            got[0],
            "chase host=2m: 4 pages of 2 MiB needed, 3 free; vmtax run --reserve (as root), or: \
             echo 5 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
        );
        let short = Shortage { page: PageSize::Large, obstacle: Obstacle::new("the kernel granted 2", "ask for less") };
        assert_eq!(missing("host = [\"2m\"]", &[short])[0], "chase host=2m: the kernel granted 2; ask for less");
    }

    #[test]
    fn cells_are_judged_on_the_host_as_the_plan_sets_it() {
        assert_eq!(missing("host = [\"2m\"]\npool_2m = [5]", &[]), [""; 0]);
        let got = missing("host = [\"2m\"]\npool_2m = [5, 2]", &[]);
        assert_eq!(
            got,
            ["chase host=2m pool_2m=2: 4 pages of 2 MiB needed, 1 free; \
              more pages in the plan, or leave this out of it with [[exclude]]"]
        );
        assert_eq!(missing("host = [\"thp\"]", &[]).len(), 2, "switched off, and so is the twin");
        assert_eq!(missing("host = [\"thp\"]\nthp = [\"always\", \"never\"]", &[]), [""; 0]);
    }

    #[test]
    fn who_may_turn_no_knob_measures_where_they_stand_as_the_plan_wants_them() {
        let denied = Obstacle::new("not permitted", "sudo");
        let got = missing_to(Some(&denied), "host = [\"4k\"]\nthp = [\"never\", \"always\"]", &[]);
        assert_eq!(got, ["chase host=4k thp=always: not permitted; sudo"]);
    }

    #[test]
    fn remedies_speak_of_the_plan() {
        assert_eq!(in_plan("--size 512M"), "size = \"512M\" in the plan");
        assert_eq!(in_plan("--vcpus 2"), "at most 2 vcpus in the plan");
        assert_eq!(in_plan("free some memory"), "free some memory");
    }
}
