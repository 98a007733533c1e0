//! From a cell of a plan to its job.

use std::time::Duration;

use super::{Benchmark, Bloat, Compact, Job, Os, Own, Reserve, Sweep, Touch, Walk};
use crate::{
    factor::Level,
    os::Test,
    plan::{Cell, Plan, Task},
    program,
    setting::{Backing, Replica, Setting},
    touch::Populated,
    units::PageSize,
    walk::Order,
};

impl Plan {
    /// The job of a cell, or in words why there is none.
    pub fn job(&self, cell: &Cell) -> Result<Job, String> {
        let workload = self.workload(&cell.workload).ok_or_else(|| format!("no workload named `{}`", cell.workload))?;
        let values = Values(self.parameters(cell));
        let setting = || Ok::<_, String>(Setting { guest: leaf(cell)?, host: self.backing(cell)? });
        Ok(match workload.kind.task {
            Task::Probe(probe) => Job::Probe(Sweep {
                probe,
                setting: setting()?,
                size: values.size("size"),
                stride: values.size("stride"),
                vcpus: values.count("vcpus") as u32,
            }),
            Task::Touch => Job::Touch(Touch {
                setting: setting()?,
                size: values.size("size"),
                vcpus: values.count("vcpus") as u32,
                populated: if values.is_on("populate") { Populated::Before } else { Populated::No },
            }),
            Task::Walk => Job::Walk(Walk {
                setting: setting()?,
                size: values.size("size"),
                stride: values.size("stride"),
                order: if values.is("order", Order::Random.name()) { Order::Random } else { Order::Sequential },
                passes: values.count("passes") as u32,
                references: Some(values.count("references")).filter(|most| *most > 0),
            }),
            Task::Reserve => Job::Reserve(Reserve {
                page: if values.is("page", PageSize::Giant.name()) { PageSize::Giant } else { PageSize::Large },
                pages: values.count("pages"),
                rounds: values.count("rounds") as u32,
                compact: if values.is_on("compact") { Compact::Before } else { Compact::Off },
                stress: values.share("stress"),
                kept: values.share("kept"),
            }),
            Task::Rights => Job::Rights,
            Task::Bloat if is_microvm(cell) => {
                return Err(
                    "what a mapping takes is a question to this host's kernel, and the micro-VM has none".into()
                );
            }
            Task::Bloat => Job::Bloat(Bloat {
                host: self.backing(cell)?,
                size: values.size("size"),
                stride: values.size("stride"),
            }),
            Task::Os | Task::Program(_) | Task::Command if is_microvm(cell) => {
                return Err(format!("`{}` runs on an operating system, and the micro-VM has none", workload.name));
            }
            Task::Program(_) | Task::Command if cell.setting.is_linux_guest() => {
                return Err("guests boot an image that holds vmtax alone, and no other program".into());
            }
            Task::Os => Job::Os(Os {
                test: values.test(workload.kind.name),
                time: Duration::from_secs(values.count("seconds")),
                vcpus: values.count("vcpus") as u32,
            }),
            Task::Program(program) => {
                let values = program::Values::new(program, &values.0).map_err(|unfit| unfit.to_string())?;
                Job::Program(Benchmark { program, values, tree: workload.tree.clone() })
            }
            Task::Command => Job::Command(Own {
                command: workload.command.clone().ok_or("no command is given")?,
                timeout: Duration::from_secs(values.count("timeout")),
            }),
        })
    }

    /// The cells of a workload that have a job, without the baseline's twin, in the order of the plan.
    pub fn jobs(&self, workload: &str) -> Vec<(Cell, Job)> {
        let own = |cell: &Cell| cell.workload == workload && cell.replica == Replica::A;
        self.cells()
            .into_iter()
            .filter(own)
            .filter_map(|cell| Some((self.job(&cell).ok()?, cell)))
            .map(|(job, cell)| (cell, job))
            .collect()
    }

    /// What the memory of a cell counts as standing on; of transparent pages of another size, the plan's memory says which.
    pub(in crate::plan) fn backing(&self, cell: &Cell) -> Result<Backing, String> {
        let host = self.memory(cell).level("host").and_then(Level::word).unwrap_or_default();
        named(host).ok_or_else(|| format!("memory in pages of {host} cannot be laid yet"))
    }
}

/// The backing that memory of this name counts as.
pub(in crate::plan) fn named(name: &str) -> Option<Backing> {
    let known = Backing::ALL.into_iter().find(|backing| backing.name() == name);
    known.or_else(|| name.starts_with("thp-").then_some(Backing::Thp))
}

/// The parameters of a cell. Every kind has those that its task asks for: a test makes a job of each.
struct Values(Vec<(&'static str, Level)>);

impl Values {
    fn level(&self, name: &str) -> Level {
        let found = self.0.iter().find(|(own, _)| *own == name);
        found.map(|(_, level)| *level).expect("the kinds have the parameters of their tasks")
    }

    fn size(&self, name: &str) -> crate::units::Bytes {
        self.level(name).size().expect("sizes have the grammar of one")
    }

    fn count(&self, name: &str) -> u64 {
        self.level(name).count().expect("counts have the grammar of one")
    }

    fn share(&self, name: &str) -> f64 {
        self.level(name).share().expect("shares have the grammar of one")
    }

    /// The test that a kind of this name runs; copies of files are told apart by their buffer.
    fn test(&self, kind: &str) -> Test {
        let buffer = self.0.iter().find(|(own, _)| *own == "buffer");
        let name = buffer.map_or(kind.to_owned(), |(_, buffer)| format!("{kind}-{buffer}"));
        Test::named(&name).expect("the kinds have the names of the tests")
    }

    fn is(&self, name: &str, word: &str) -> bool {
        self.level(name).word() == Some(word)
    }

    fn is_on(&self, name: &str) -> bool {
        self.is(name, "on")
    }
}

fn is_microvm(cell: &Cell) -> bool {
    cell.setting.is_virtual() && !cell.setting.is_linux_guest()
}

/// The leaf of a micro-VM's page table; none in a process, be it natively or in a Linux guest.
fn leaf(cell: &Cell) -> Result<Option<PageSize>, String> {
    if !is_microvm(cell) {
        return Ok(None);
    }
    let name = cell.setting.level("guest").and_then(Level::word).unwrap_or_default();
    let leaf = PageSize::ALL.into_iter().find(|page| page.name() == name);
    leaf.map(Some).ok_or_else(|| format!("a micro-VM has no kernel, and so no {name} pages of its own"))
}
