//! Hugetlb pools of a run: what it borrows, and what it cannot have.

use vmtax_core::{
    availability::{Demand, pool_need},
    setting::{Backing, Setting},
    trial::Unavailable,
};
use vmtax_machine::knob::{self, Contention, Error, Lease, Want};

use crate::output;

/// What was borrowed, and what not.
#[derive(Debug, Default)]
pub struct Pools {
    lease: Option<Lease>,
    shortages: Vec<Shortage>,
}

/// A pool that could not be borrowed, for a backing nobody named.
#[derive(Debug)]
struct Shortage {
    backing: Backing,
    error: Error,
}

/// What a backing takes from its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Need {
    backing: Backing,
    want: Want,
}

/// Which needs the host's memory does for.
#[derive(Debug, Default)]
struct Shares {
    granted: Vec<Need>,
    shortages: Vec<Shortage>,
}

/// Sees that no other vmtax measures, which would disturb both, and puts back what a killed one has left.
pub fn settle(host: &knob::Host) -> Result<(), Error> {
    knob::check_free(host)?;
    if !knob::is_left_changed(host) {
        return Ok(());
    }
    match knob::restore(host, Contention::Refuse) {
        Ok(outcomes) => outcomes.iter().for_each(left_behind),
        Err(Error::Forbidden { .. }) => {
            output::note("note: a vmtax that was killed has left this host changed; sudo vmtax restore puts it back")
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

impl Pools {
    /// Borrows the pages that the backings asked for need. A backing that `is_named` must be had in full; one that is there
    /// by default is listed as unavailable if it cannot.
    pub fn borrow(
        host: knob::Host,
        settings: &[Setting],
        demand: Demand,
        is_named: impl Fn(Backing) -> bool,
    ) -> Result<Pools, Error> {
        let mut lease = Lease::acquire(host.clone(), Contention::Refuse)?;
        lease.recovered().iter().for_each(left_behind);
        let mut needs = needs(settings, demand);
        // Whoever was asked for comes first when memory does not do for all.
        needs.sort_by_key(|need| !is_named(need.backing));
        let Shares { granted, mut shortages } = share_memory(&host, needs, &is_named)?;
        for Need { backing, want } in granted {
            if let Err(error) = lease.borrow_pool(want) {
                shortages.push(Shortage::unless_named(backing, error, &is_named)?);
            }
        }
        Ok(Pools { lease: Some(lease), shortages })
    }

    /// Why a setting is unavailable, in the words of the attempt where one was made.
    pub fn reason(&self, why: &Unavailable) -> Unavailable {
        match self.shortages.iter().find(|shortage| shortage.backing == why.setting.host) {
            Some(Shortage { error, .. }) => {
                Unavailable { reason: error.to_string(), remedy: error.remedy().unwrap_or_default(), ..why.clone() }
            }
            None => why.clone(),
        }
    }

    /// The right to what was borrowed, for a run that gives it back itself.
    pub fn into_lease(self) -> Option<Lease> {
        self.lease
    }

    /// Puts everything back, and says so.
    pub fn give_back(self) -> Result<(), Error> {
        let Some(lease) = self.lease else { return Ok(()) };
        for outcome in lease.release()? {
            output::note(outcome);
        }
        Ok(())
    }
}

impl Shortage {
    /// The error itself where it is about a backing that was named, or about something else than pages.
    fn unless_named(backing: Backing, error: Error, is_named: impl Fn(Backing) -> bool) -> Result<Self, Error> {
        match error {
            Error::Partial { .. } | Error::NoPool { .. } | Error::TooMuch { .. } if !is_named(backing) => {
                Ok(Shortage { backing, error })
            }
            error => Err(error),
        }
    }
}

fn left_behind(outcome: &knob::Outcome) {
    output::note(format!("left by an earlier run: {outcome}"));
}

fn needs(settings: &[Setting], demand: Demand) -> Vec<Need> {
    let Demand { arena, tables, .. } = demand;
    let need = |backing| {
        let (page, pages) = pool_need(backing, arena.0, tables.0)?;
        Some(Need { backing, want: Want { page, pages } })
    };
    let is_asked = |backing: &Backing| settings.iter().any(|setting| setting.host == *backing);
    let is_whole = |backing: &Backing| arena.0.is_multiple_of(backing.page().bytes());
    Backing::ALL.into_iter().filter(is_asked).filter(is_whole).filter_map(need).collect()
}

/// Those needs, in their order, that together leave the host half of its memory.
fn share_memory(host: &knob::Host, needs: Vec<Need>, is_named: impl Fn(Backing) -> bool) -> Result<Shares, Error> {
    let mut shares = Shares::default();
    for need in needs {
        let together: Vec<Want> = shares.granted.iter().chain([&need]).map(|need| need.want).collect();
        match knob::check_memory(host, &together) {
            Ok(()) => shares.granted.push(need),
            Err(error) => shares.shortages.push(Shortage::unless_named(need.backing, error, &is_named)?),
        }
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use vmtax_core::units::PageSize;

    use super::*;

    /// A host of plain files with empty pools of 2 MiB and 1 GiB pages.
    fn host(root: &Path, available_mib: u64) -> knob::Host {
        for directory in ["hugepages-2048kB", "hugepages-1048576kB"] {
            let pool = root.join("sys/kernel/mm/hugepages").join(directory);
            fs::create_dir_all(&pool).unwrap();
            for file in ["nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages"] {
                fs::write(pool.join(file), "0\n").unwrap();
            }
        }
        let other = "Buffers Cached SwapCached Active Inactive SwapTotal SwapFree Dirty Writeback Mapped Slab Committed_AS \
                     VmallocTotal VmallocUsed VmallocChunk";
        let other: String = other.split_whitespace().map(|name| format!("{name}: 0 kB\n")).collect();
        let kib = available_mib << 10;
        fs::create_dir_all(root.join("proc")).unwrap();
        let meminfo = format!("MemTotal: {kib} kB\nMemFree: {kib} kB\nMemAvailable: {kib} kB\n{other}");
        fs::write(root.join("proc/meminfo"), meminfo).unwrap();
        knob::Host::at(root.join("run"), root.join("sys"), root.join("proc"))
    }

    #[test]
    fn a_default_backing_for_which_memory_does_not_do_is_left_out_and_a_named_one_refused() {
        let directory = tempfile::tempdir().unwrap();
        let host = host(directory.path(), 4 << 10);
        let large = Need { backing: Backing::Huge2m, want: Want { page: PageSize::Large, pages: 515 } };
        let giant = Need { backing: Backing::Huge1g, want: Want { page: PageSize::Giant, pages: 1 } };
        let Shares { granted, shortages } = share_memory(&host, vec![large, giant], |_| false).unwrap();
        assert_eq!(granted, [large]);
        assert_eq!(shortages[0].backing, Backing::Huge1g);
        let text = "cannot reserve 2054 MiB in huge pages: more than half of the 4 GiB that are available";
        assert_eq!(shortages[0].error.to_string(), text);
        let refused = share_memory(&host, vec![large, giant], |backing| backing == Backing::Huge1g).unwrap_err();
        assert_eq!(refused.to_string(), text);
    }
}
