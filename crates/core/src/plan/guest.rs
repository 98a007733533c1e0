//! The Linux guest of a cell: its machine, and the trial as the guest hears of it.

use std::fmt::Write;

use super::{Cell, Ground, Job, Plan, job::named};
use crate::{
    factor::Level,
    setting::Backing,
    units::{Bytes, GIB, MIB},
};

/// What executes a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accel {
    /// KVM where a guest boots under it, else emulation.
    Auto,
    /// The processor, by /dev/kvm.
    Kvm,
    /// QEMU's emulation of a processor.
    Tcg,
}

/// Who moves packets between a guest's network card and its tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vhost {
    /// A thread of the host's kernel.
    On,
    /// QEMU.
    Off,
}

/// The machine of a Linux guest, as far as the plan says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guest {
    /// What executes it.
    pub accel: Accel,
    /// Its processors: one for each thread of the workload.
    pub vcpus: u32,
    /// Its memory.
    pub memory: Bytes,
    /// What its memory stands on, on the host.
    pub host: Backing,
    /// What the workload's memory stands on, inside.
    pub pages: Backing,
    /// Its network card on a tap, and who serves it; none without a card.
    pub vhost: Option<Vhost>,
    /// QEMU: a name on PATH, or a path; none for the usual one.
    pub qemu: Option<&'static str>,
    /// QEMU's name of the board; none for the usual one.
    pub board: Option<&'static str>,
    /// QEMU's name of the processor; none for the fullest there is.
    pub cpu: Option<&'static str>,
    /// Further arguments of QEMU.
    pub arguments: Option<&'static str>,
}

/// Seconds to boot a guest and to power it off, emulated.
const BOOT: f64 = 5.0;
/// What a guest's kernel, its agent and page tables take beside the workload.
const OWN: u64 = 384 * MIB;

impl Plan {
    /// The guest of a cell; none where it has another venue, or why there can be none.
    pub fn guest(&self, cell: &Cell) -> Result<Option<Guest>, String> {
        let ground = self.workload(&cell.workload).map(|workload| workload.kind.ground);
        let is_anywhere = match ground {
            Some(Ground::Memory | Ground::System) => true,
            Some(Ground::Host) | None => false,
        };
        if !cell.setting.is_linux_guest() || !is_anywhere {
            return Ok(None);
        }
        let word = |name| cell.setting.level(name).and_then(Level::word);
        let job = self.job(cell)?;
        let host = self.backing(cell)?;
        let pages = word("guest").and_then(named).ok_or("its memory stands on nothing that is known")?;
        Ok(Some(Guest {
            accel: match word("accel") {
                Some("kvm") => Accel::Kvm,
                Some("tcg") => Accel::Tcg,
                _ => Accel::Auto,
            },
            vcpus: job.vcpus(),
            memory: cell.setting.level("memory").and_then(Level::size).unwrap_or_else(|| memory(&job, pages, host)),
            host,
            pages,
            vhost: word("vhost").map(|word| if word == "on" { Vhost::On } else { Vhost::Off }),
            qemu: word("qemu"),
            board: word("machine"),
            cpu: word("cpu"),
            arguments: word("qemu_args"),
        }))
    }

    /// How long a trial of a cell may take, the boot of its guest included, to within a factor of three or so; none where
    /// there is no such work.
    pub fn expected_seconds(&self, cell: &Cell) -> Option<f64> {
        let boot = if self.guest(cell).ok()?.is_some() { BOOT } else { 0.0 };
        Some(self.job(cell).ok()?.expected_seconds() + boot)
    }

    /// The trial of a cell as a Linux guest hears of it: the smallest plan that says it, natively.
    pub fn inside(&self, cell: &Cell) -> String {
        let workload = self.workload(&cell.workload);
        let kind = workload.map_or("", |workload| workload.kind.name);
        let pages = cell.setting.level("guest").filter(|_| workload.is_some_and(|w| w.kind.ground == Ground::Memory));
        let pages = pages.map_or(String::new(), |level| format!("host = [\"{level}\"]\n"));
        let mut text =
            format!("[factors]\nvenue = [\"native\"]\n{pages}[[workload]]\nname = \"trial\"\nprobe = \"{kind}\"\n");
        for (name, level) in self.parameters(cell) {
            let _ = match level {
                Level::Count(n) => writeln!(text, "{name} = {n}"),
                Level::Word(_) | Level::Size(_) | Level::Share(_) => writeln!(text, "{name} = \"{level}\""),
            };
        }
        text
    }
}

/// What a workload takes and what the guest does, in whole pages of both sides; where memory inside comes in pages of 1 GiB,
/// one more for where they begin.
fn memory(job: &Job, pages: Backing, host: Backing) -> Bytes {
    let inside = job.memory().0.next_multiple_of(pages.page().bytes());
    let room = if pages == Backing::Huge1g { GIB } else { 0 };
    let unit = host.page().bytes().max(128 * MIB);
    Bytes((inside + room + OWN).next_multiple_of(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(factors: &str) -> Plan {
        let text = format!(
            "[factors]\nvenue = [\"native\", \"guest\"]\n{factors}\n[[workload]]\nprobe = \"chase\"\nsize = \"64M\"\nvcpus = 2\n"
        );
        Plan::parse("plan.toml", &text).unwrap()
    }

    #[test]
    fn a_guest_has_what_the_plan_says_and_memory_for_its_workload() {
        let plan = plan("host = [\"2m\"]\nguest = [\"1g\"]\naccel = [\"tcg\"]\nqemu = [\"/opt/q\"]\nvhost = [false]");
        let [native, guest, _] = &plan.cells()[..] else { panic!() };
        assert_eq!(plan.guest(native), Ok(None));
        let expected = Guest {
            accel: Accel::Tcg,
            vcpus: 2,
            memory: Bytes(2 * GIB + 384 * MIB),
            host: Backing::Huge2m,
            pages: Backing::Huge1g,
            vhost: Some(Vhost::Off),
            qemu: Some("/opt/q"),
            board: None,
            cpu: None,
            arguments: None,
        };
        assert_eq!(plan.guest(guest), Ok(Some(expected)));
        let added = plan.expected_seconds(guest).unwrap() - plan.expected_seconds(native).unwrap();
        assert!((added - BOOT).abs() < 1e-9, "{added}");
    }

    #[test]
    fn the_trial_inside_is_the_same_work_natively() {
        let plan = plan("guest = [\"2m\"]\nstride = [\"64\"]");
        let plan = Plan { factors: plan.factors.into_iter().filter(|v| v.factor.name != "stride").collect(), ..plan };
        let cell = plan.cell("chase venue=guest guest=2m").unwrap();
        let inside = Plan::parse("trial", &plan.inside(&cell)).unwrap();
        let there = inside.job(&inside.cells()[0]).unwrap();
        assert_eq!(there.setting().unwrap().host, Backing::Huge2m);
        assert_eq!((there.memory(), there.vcpus()), (Bytes(64 * MIB), 2));
    }
}
