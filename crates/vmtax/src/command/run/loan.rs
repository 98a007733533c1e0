//! `vmtax run --reserve`: the hugetlb pages that the backings of a plan need, borrowed for the run.

use std::collections::{BTreeMap, BTreeSet};

use vmtax_core::{availability::pool_need, plan::Plan, units::PageSize};
use vmtax_machine::knob::{Error, Lease, Want};

use super::missing;
use crate::lab::{
    knobs::{self, Obstacle},
    program,
};

/// Pages that a pool could not lend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// Of this size.
    pub page: PageSize,
    /// Why not.
    pub obstacle: Obstacle,
}

/// What the cells of a plan take from each pool that the plan does not set itself: every amount, as one plot is laid after
/// the other and the largest decides.
pub fn needs(plan: &Plan) -> BTreeMap<PageSize, BTreeSet<u64>> {
    let mut needs: BTreeMap<PageSize, BTreeSet<u64>> = BTreeMap::new();
    for work in plan.cells().iter().filter_map(|cell| missing::work(plan, cell)) {
        let (backing, demand) = (work.setting.host, work.demand);
        let is_whole = demand.arena.0.is_multiple_of(backing.page().bytes());
        if let Some((page, pages)) = pool_need(backing, demand.arena.0, demand.tables.0)
            && is_whole
            && !knobs::sets_pool_of(plan, backing)
        {
            needs.entry(page).or_default().insert(pages);
        }
    }
    for (page, pages) in plan.cells().iter().filter_map(|cell| program::pages(&plan.job(cell).ok()?)) {
        needs.entry(page).or_default().insert(pages);
    }
    needs
}

/// Borrows what the largest cells need, or else what the largest that can be served do; what fell short is returned.
///
/// # Errors
/// Something else than pages is wanting.
pub fn borrow(lease: &mut Lease, plan: &Plan) -> Result<Vec<Shortage>, Error> {
    let mut shortages = Vec::new();
    for (page, amounts) in needs(plan) {
        let mut first = None;
        for pages in amounts.into_iter().rev() {
            match lease.borrow_pool(Want { page, pages }) {
                Ok(_) => break,
                Err(error @ (Error::Partial { .. } | Error::NoPool { .. } | Error::TooMuch { .. })) => {
                    first.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        shortages.extend(first.map(|error| Shortage { page, obstacle: error.into() }));
    }
    Ok(shortages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_cell_of_each_pool_decides_and_a_pool_that_the_plan_sets_is_left_to_it() {
        let check = |factors: &str, expected: &[(PageSize, &[u64])]| {
            let text = format!(
                "[factors]\nhost = [\"4k\", \"thp\", \"2m\", \"1g\"]\nsize = [\"8M\", \"1G\"]\n{factors}\n\
                 [[workload]]\nprobe = \"chase\"\n"
            );
            let needs = needs(&Plan::parse("plan.toml", &text).unwrap());
            let got: Vec<(PageSize, Vec<u64>)> = needs.into_iter().map(|(p, n)| (p, n.into_iter().collect())).collect();
            let expected: Vec<(PageSize, Vec<u64>)> = expected.iter().map(|(p, n)| (*p, n.to_vec())).collect();
            assert_eq!(got, expected);
        };
        check("", &[(PageSize::Large, &[4, 512]), (PageSize::Giant, &[1])]);
        check("pool_2m = [512]", &[(PageSize::Giant, &[1])]);
    }
}
