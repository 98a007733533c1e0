//! What the lab makes of a cell: a probe on laid memory, natively or in a guest. What it cannot make yet is said here.

use super::{Cell, Plan};
use crate::{
    probe::Probe,
    setting::{self, Backing},
    units::{Bytes, GIB, PageSize},
};

/// A probe over laid memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// What is run.
    pub probe: Probe,
    /// Where, and on what.
    pub setting: setting::Setting,
    /// The memory that is walked.
    pub size: Bytes,
    /// The distance between accesses.
    pub stride: Bytes,
    /// Threads or vCPUs side by side.
    pub vcpus: u32,
}

/// Passes over the memory in a trial: the first, and those of the steady state.
const PASSES: f64 = 3.0;
/// Seconds to make and lay a byte: 0.4 s a GiB, as on machines seen so far.
const LAYING: f64 = 0.4 / GIB as f64;

impl Job {
    /// How long a trial may take, to within a factor of three or so: before the first, nothing better is known.
    pub fn expected_seconds(&self) -> f64 {
        let ns = match self.probe {
            Probe::Chase => 150.0,
            Probe::Stride | Probe::StrideWrite | Probe::Random | Probe::Touch | Probe::Walk | Probe::WalkRandom => 30.0,
        };
        let accesses = self.size.0 as f64 / self.stride.0 as f64;
        PASSES * accesses * ns * 1e-9 + self.size.0 as f64 * LAYING
    }
}

/// Workloads that are a [`Job`]. Others need an executor of their own.
const PROBES: [Probe; 4] = [Probe::Chase, Probe::Stride, Probe::StrideWrite, Probe::Random];

impl Plan {
    /// What in this plan cannot be run by this version, if anything: workloads that are no [`Job`].
    pub fn not_yet(&self) -> Option<String> {
        let strange = self.workloads.iter().find(|workload| probe(workload.kind.name).is_none())?;
        Some(format!("cannot run `{}` from a plan yet", strange.kind.name))
    }

    /// The job of a cell, or in words why there is none.
    pub fn job(&self, cell: &Cell) -> Result<Job, String> {
        let kind = self.workload(&cell.workload).map_or("", |workload| workload.kind.name);
        let probe = probe(kind).ok_or_else(|| format!("no executor for `{kind}` yet"))?;
        let memory = self.memory(cell);
        let host = memory.level("host").and_then(|level| level.word()).unwrap_or_default();
        let host = backing(host).ok_or_else(|| format!("memory in pages of {host} cannot be laid yet"))?;
        let parameters = self.parameters(cell);
        let level = |name: &str| parameters.iter().find(|(own, _)| *own == name).map(|(_, level)| *level);
        let size = |name: &str| level(name).and_then(|level| level.size()).expect("every probe has this parameter");
        let vcpus = level("vcpus").and_then(|level| level.count()).expect("every probe has vCPUs");
        let setting = setting::Setting { guest: leaf(cell), host };
        Ok(Job { probe, setting, size: size("size"), stride: size("stride"), vcpus: vcpus as u32 })
    }
}

fn probe(kind: &str) -> Option<Probe> {
    PROBES.into_iter().find(|probe| probe.name() == kind)
}

/// The backing that memory of this name counts as; of transparent pages of another size, the plan's memory says which.
fn backing(name: &str) -> Option<Backing> {
    let named = Backing::ALL.into_iter().find(|backing| backing.name() == name);
    named.or_else(|| name.starts_with("thp-").then_some(Backing::Thp))
}

/// The leaf of a guest; none natively.
fn leaf(cell: &Cell) -> Option<PageSize> {
    if !cell.setting.is_virtual() {
        return None;
    }
    let name = cell.setting.level("guest")?.word()?;
    PageSize::ALL.into_iter().find(|page| page.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{KIB, MIB};

    fn plan(text: &str) -> Plan {
        Plan::parse("plan.toml", text).unwrap()
    }

    #[test]
    fn a_cell_is_a_probe_on_memory_in_a_venue() {
        let plan = plan(
            "[factors]\nvenue = [\"native\", \"microvm\"]\nguest = [\"2m\"]\nhost = [\"thp\"]\n\
             [[workload]]\nprobe = \"random\"\nsize = \"64M\"\nvcpus = 2\n[baseline]\nvenue = \"native\"\n",
        );
        let jobs: Vec<Job> = plan.cells().iter().map(|cell| plan.job(cell).unwrap()).collect();
        let native = setting::Setting::native(Backing::Thp);
        let guest = setting::Setting::microvm(PageSize::Large, Backing::Thp);
        let job =
            |setting| Job { probe: Probe::Random, setting, size: Bytes(64 * MIB), stride: Bytes(4 * KIB), vcpus: 2 };
        assert_eq!(jobs, [native, guest, native].map(job));
        assert_eq!(plan.not_yet(), None);
    }

    #[test]
    fn what_cannot_be_run_yet_is_named() {
        let check = |text, expected: &str| assert_eq!(plan(text).not_yet().as_deref(), Some(expected));
        check("[[workload]]\nprobe = \"reserve\"\n", "cannot run `reserve` from a plan yet");
    }

    #[test]
    fn transparent_pages_of_every_size_count_as_thp() {
        let small = plan("[factors]\nhost = [\"4k\", \"thp-64k\"]\n[[workload]]\nprobe = \"chase\"\n");
        let cell = small.cell("chase host=thp-64k").unwrap();
        assert_eq!(small.job(&cell).unwrap().setting, setting::Setting::native(Backing::Thp));
    }
}
