//! A trial in a Linux guest: a fresh boot, the guest set as the plan says, the trial inside it, evidence from both sides, and
//! its end.
//!
//! A boot is the unit of replication: what chance decides at boot and at allocation is drawn anew for every trial. A guest that
//! hangs, panics or dies is booted again as often as the plan allows; what contradicts the setting is never tried again.

use std::{path::Path, sync::atomic::Ordering, time::Duration};

use vmtax_core::{
    experiment::Finding,
    plan::{self, Cell, Guest as Wanted, Plan},
    setting::Backing,
    trial::KvmCounts,
    units::PageSize,
};
use vmtax_machine::facts;

use super::{TrialError, bench::HostBench};
use crate::{
    agent::message::{Got, Trial, Wish},
    guest::{
        Accel, Guest, GuestError, Machine, Patience,
        evidence::Evidence,
        link::{Link, Thread},
        machine::{Net, Vhost},
    },
    image::{ImageError, Initramfs, Kernel, Role, Source},
};

/// Time for a trial inside, whatever it is.
const LEAST: Duration = Duration::from_secs(120);
/// How much longer than expected a trial may take: emulated, memory is a hundred times slower.
const SLOWER: f64 = 200.0;

/// What guests of a run boot, made when the first of them is wanted.
#[derive(Debug, Default)]
pub struct Guests {
    image: Option<(Kernel, Initramfs)>,
    /// What `auto` came to for each kind of machine.
    auto: Vec<(Machine, Resort)>,
}

/// What executes guests where the plan leaves it open, and why it is not KVM.
type Resort = (Accel, Option<String>);

impl Guests {
    /// Asks anew what `auto` comes to: KVM's module is about to be another.
    pub fn forget_accel(&mut self) {
        self.auto.clear();
    }

    fn image(&mut self) -> Result<&(Kernel, Initramfs), ImageError> {
        if self.image.is_none() {
            let kernel = Kernel::find(&Source::Found)?;
            let initramfs = Initramfs::build(&kernel, Role::Guest)?;
            self.image = Some((kernel, initramfs));
        }
        Ok(self.image.as_ref().expect("made above"))
    }

    fn boot(&mut self, machine: Machine) -> Result<Guest, GuestError> {
        let (kernel, initramfs) = self.image()?;
        Guest::boot(machine, kernel, initramfs, Patience::default())
    }

    /// What executes a guest, found by trying where the plan leaves it open; and why it is not KVM.
    fn accel(&mut self, wanted: &Wanted) -> Result<Resort, GuestError> {
        match wanted.accel {
            plan::Accel::Kvm => return Ok((Accel::Kvm, None)),
            plan::Accel::Tcg => return Ok((Accel::Tcg, None)),
            plan::Accel::Auto => {}
        }
        // As small as a machine with this QEMU, board, processor and these arguments can be.
        let usual = Machine::new(Accel::Kvm);
        let plain = Machine {
            memory: usual.memory,
            backing: usual.backing,
            vcpus: usual.vcpus,
            net: None,
            append: String::new(),
            ..machine(wanted, Accel::Kvm)
        };
        if let Some((_, known)) = self.auto.iter().find(|(tried, _)| *tried == plain) {
            return Ok(known.clone());
        }
        let found = match self.boot(plain.clone()) {
            Ok(guest) => {
                guest.shut_down()?;
                (Accel::Kvm, None)
            }
            Err(error @ (GuestError::Qemu { .. } | GuestError::NoSign { .. })) => (Accel::Tcg, Some(error.to_string())),
            Err(error) => return Err(error),
        };
        self.auto.push((plain, found.clone()));
        Ok(found)
    }
}

/// What went wrong, and whether another boot may go better.
enum Mishap {
    Chance(TrialError),
    Certain(TrialError),
}

impl From<GuestError> for Mishap {
    fn from(error: GuestError) -> Mishap {
        let remedy = error.remedy().map_or(String::new(), |remedy| format!("; {remedy}"));
        let failed = TrialError::Failed(format!("{error}{remedy}"));
        match error {
            GuestError::Silent { .. } | GuestError::Died { .. } | GuestError::Protocol(_) => Mishap::Chance(failed),
            _ => Mishap::Certain(failed),
        }
    }
}

/// Makes a trial of a cell in a guest of its own.
pub fn trial(
    bench: &mut HostBench<'_>,
    plan: &Plan,
    cell: &Cell,
    wanted: &Wanted,
    seed: u64,
) -> Result<Finding, TrialError> {
    bench.rig.spare = None;
    for retry in 0.. {
        match attempt(bench, plan, cell, wanted, seed) {
            Ok(mut finding) => {
                finding.evidence.insert("guest.retries".to_owned(), retry.to_string());
                return Ok(finding);
            }
            Err(_) if bench.rig.stop.load(Ordering::Relaxed) => return Err(TrialError::Interrupted),
            Err(Mishap::Chance(_)) if retry < plan.retries => {}
            Err(Mishap::Chance(error) | Mishap::Certain(error)) => return Err(error),
        }
    }
    unreachable!("the last retry returns")
}

fn attempt(bench: &mut HostBench<'_>, plan: &Plan, cell: &Cell, wanted: &Wanted, seed: u64) -> Result<Finding, Mishap> {
    let (accel, why) = bench.guests.accel(wanted)?;
    let mut guest = bench.guests.boot(machine(wanted, accel))?;
    guest.pin(&bench.rig.pin)?;
    let got = guest.set(wish(plan, cell, wanted))?;
    let expected = plan.job(cell).map_or(0.0, |job| job.expected_seconds());
    let patience = LEAST + Duration::from_secs_f64(expected * SLOWER);
    let found = guest.trial(Trial { plan: plan.inside(cell), seed }, patience)?;
    let evidence = guest.evidence()?;
    let (hello, timing) = (guest.hello().clone(), guest.timing());
    guest.shut_down()?;
    if hello.cpus != wanted.vcpus {
        let reason = format!("the guest has {} CPUs, not {}", hello.cpus, wanted.vcpus);
        return Err(Mishap::Certain(TrialError::Failed(reason)));
    }
    let mut facts = from_outside(&evidence);
    facts.extend(from_inside(&got));
    facts.extend(modules());
    facts.extend([
        ("guest.cpus".to_owned(), hello.cpus.to_string()),
        ("guest.memory_bytes".to_owned(), hello.memory.0.to_string()),
        ("guest.kernel".to_owned(), hello.kernel),
        ("guest.boot_seconds".to_owned(), format!("{:.2}", timing.agent.as_secs_f64())),
    ]);
    facts.extend(found.evidence.into_iter().map(|(name, value)| (format!("guest.{name}"), value)));
    // An emulated clock disagrees with itself: that is said by the first caveat.
    let caveats = found.caveats.into_iter().filter(|caveat| accel == Accel::Kvm || !caveat.contains("clock"));
    let emulated = (accel == Accel::Tcg).then(|| EMULATED.to_owned());
    let why = why.map(|why| format!("guests run under emulation, as KVM boots none here: {why}"));
    Ok(Finding {
        metrics: found.metrics,
        evidence: facts.into_iter().collect(),
        caveats: emulated.into_iter().chain(why).chain(caveats).collect(),
    })
}

/// What a reader must know of every figure from TCG.
const EMULATED: &str = "emulated: the guest's processor is QEMU's, and its times mean nothing";

fn machine(wanted: &Wanted, accel: Accel) -> Machine {
    let usual = Machine::new(accel);
    let net = |vhost| Net::Tap { name: None, vhost };
    Machine {
        qemu: wanted.qemu.map_or(usual.qemu, Into::into),
        board: wanted.board.map_or(usual.board, str::to_owned),
        net: wanted.vhost.map(|vhost| match vhost {
            plan::Vhost::On => net(Vhost::On),
            plan::Vhost::Off => net(Vhost::Off),
        }),
        cpu: wanted.cpu.map(str::to_owned),
        vcpus: wanted.vcpus,
        memory: wanted.memory,
        backing: wanted.host,
        extra: wanted.arguments.map_or(Vec::new(), |text| text.split_whitespace().map(str::to_owned).collect()),
        append: if wanted.pages == Backing::Huge1g { "hugepagesz=1G hugepages=1".to_owned() } else { String::new() },
        ..Machine::new(accel)
    }
}

/// The pages that the workload needs inside, and transparent ones for who asks.
fn wish(plan: &Plan, cell: &Cell, wanted: &Wanted) -> Wish {
    let bytes = plan.job(cell).map_or(0, |job| job.memory().0);
    let pools = wanted.pages.pool().map(|page: PageSize| (page, bytes.div_ceil(page.bytes())));
    Wish { pools: pools.into_iter().collect(), thp: Some("madvise".to_owned()) }
}

fn from_outside(evidence: &Evidence) -> Vec<(String, String)> {
    let Evidence { qemu_version, qemu_binary, accel, vcpu_threads, vcpu_places, ram, kvm, link } = evidence;
    let mut facts = vec![
        ("qemu.version", qemu_version.clone()),
        ("qemu.sha256", qemu_binary.clone()),
        ("qemu.accel", (*accel).to_owned()),
        ("qemu.vcpu_threads", vcpu_threads.len().to_string()),
        ("qemu.vcpu_places", vcpu_places.join(" ")),
        ("qemu.ram.kernel_page_kb", ram.kernel_page_kb.to_string()),
        ("qemu.ram.thp_coverage", format!("{:.4}", ram.thp_coverage)),
        ("qemu.ram.populated", format!("{:.4}", ram.populated)),
    ];
    if let Some(KvmCounts { pages_4k, pages_2m, pages_1g, faults, exits, .. }) = kvm {
        facts.extend([
            ("kvm.pages_4k", pages_4k.to_string()),
            ("kvm.pages_2m", pages_2m.to_string()),
            ("kvm.pages_1g", pages_1g.to_string()),
            ("kvm.pf_taken", faults.to_string()),
            ("kvm.exits", exits.to_string()),
        ]);
    }
    facts.extend(link.iter().flat_map(of_link));
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The parameters of KVM's modules that change the second stage, as they are during the trial.
fn modules() -> Vec<(String, String)> {
    const TOLD: [&str; 4] = ["kvm_intel.ept", "kvm_amd.npt", "kvm.tdp_mmu", "kvm.nx_huge_pages"];
    let kvm = facts::host().kvm;
    TOLD.into_iter().filter_map(|name| Some((format!("module.{name}"), kvm.parameter(name)?.to_owned()))).collect()
}

fn of_link(link: &Link) -> [(&'static str, String); 4] {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    let thread = match link.vhost_thread {
        Thread::Seen(id) => id.to_string(),
        Thread::Absent => "none".to_owned(),
        Thread::Hidden => "hidden".to_owned(),
    };
    [
        ("net.tap", text(&link.tap)),
        ("net.tap_flags", text(&link.tap_flags)),
        ("net.vhost_device", if link.vhost_device { "open" } else { "none" }.to_owned()),
        ("net.vhost_thread", thread),
    ]
}

fn from_inside(got: &Got) -> Vec<(String, String)> {
    let pools = got.pools.iter().map(|(page, pages)| (format!("guest.pool_{}", page.name()), pages.to_string()));
    let thp = got.thp.iter().map(|word| ("guest.thp".to_owned(), word.clone()));
    pools.chain(thp).collect()
}

/// Why no guest can be made on this host, as far as can be known without booting one; with the way out.
pub fn obstacle(wanted: &Wanted) -> Option<(String, String)> {
    let told = |reason: String, remedy: Option<String>| Some((reason, remedy.unwrap_or_default()));
    if let Err(error) = Kernel::find(&Source::Found) {
        return told(error.to_string(), error.remedy());
    }
    if wanted.vhost == Some(plan::Vhost::On) && !Path::new("/dev/vhost-net").exists() {
        let remedy = "sudo modprobe vhost_net, or vhost = [\"off\"] in the plan".to_owned();
        return told("there is no /dev/vhost-net".to_owned(), Some(remedy));
    }
    let machine = machine(wanted, Accel::Tcg);
    match machine.check().and_then(|()| crate::guest::boot::program(&machine.qemu)) {
        Ok(_) => None,
        Err(error) => told(error.to_string(), error.remedy()),
    }
}
