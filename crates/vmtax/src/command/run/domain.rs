//! `vmtax run --domain NAME`: the guests of a plan made like a domain of libvirt's.
//!
//! What the domain says becomes factors of one level each, in the text of the plan, so that the run keeps what it used and can be
//! resumed without libvirt. What the plan says itself stays as it is.

use vmtax_core::{factor::Level, plan::Plan, setting::Backing};

use crate::{
    command::Refusal,
    guest::{
        Accel, Machine,
        domain::Domain,
        machine::{Net, Vhost},
    },
};

/// The text of a plan with what `domain` says and the plan does not.
pub fn joined(text: &str, plan: &Plan, domain: &Domain) -> Result<String, Refusal> {
    let varies = |name: &str| plan.factors.iter().any(|varied| varied.factor.name == name);
    let has_guest = plan.cells().iter().any(|cell| cell.setting.is_linux_guest());
    let head = text.lines().position(|line| line.trim() == "[factors]");
    let (true, Some(head)) = (has_guest, head) else {
        let message = format!("--domain {}: the plan has no Linux guest to be made like it", domain.name);
        return Err(Refusal::new(message, "add venue = [\"guest\"] to its [factors]"));
    };
    let note = format!("# like the domain {}", domain.name.escape_default());
    let lines: Vec<&str> = text.lines().collect();
    let (before, after) = lines.split_at(head + 1);
    let with = |is_meant: fn(&str) -> bool| {
        let added = factors(&domain.machine).into_iter().filter(|(name, _)| !varies(name) && is_meant(name));
        let added: Vec<String> = added.map(|(name, level)| format!("{name} = [{level}]")).collect();
        let all = before.iter().copied().chain([note.as_str()]).chain(added.iter().map(String::as_str));
        all.chain(after.iter().copied()).collect::<Vec<_>>().join("\n") + "\n"
    };
    // Workloads that name their number of vCPUs follow no factor, and a factor that nothing follows is no plan.
    let whole = with(|_| true);
    Ok(if Plan::parse("", &whole).is_ok() { whole } else { with(|name| name != "vcpus") })
}

/// What cannot be taken over into a plan, a sentence each.
pub fn notes(domain: &Domain) -> Vec<String> {
    let disks = match domain.machine.disks.len() {
        0 => None,
        n => Some(format!("{n} of its disks are left out: no workload of a plan uses one")),
    };
    domain.notes.iter().cloned().chain(disks).collect()
}

/// The factors that make a machine, with their level as a plan writes it.
fn factors(machine: &Machine) -> Vec<(&'static str, String)> {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let host = match machine.backing {
        Backing::Small => "4k",
        Backing::Thp => "thp",
        Backing::Huge2m => "2m",
        Backing::Huge1g => "1g",
    };
    let accel = match machine.accel {
        // It names what it runs on; where KVM boots no guest, that is found by trying.
        Accel::Kvm => "auto",
        Accel::Tcg => "tcg",
    };
    let vhost = match &machine.net {
        Some(Net::Tap { vhost: Vhost::On, .. }) => Some("on"),
        Some(Net::Tap { vhost: Vhost::Off, .. }) => Some("off"),
        Some(Net::User) | None => None,
    };
    let mut factors = vec![
        ("host", quoted(host)),
        ("accel", quoted(accel)),
        ("memory", quoted(&Level::Size(machine.memory).to_string())),
        ("vcpus", machine.vcpus.to_string()),
        ("qemu", quoted(&machine.qemu.display().to_string())),
        ("machine", quoted(&machine.board)),
    ];
    // The processor of the host is what QEMU takes by itself, and emulation has none.
    factors.extend(machine.cpu.iter().filter(|cpu| *cpu != "host").map(|cpu| ("cpu", quoted(cpu))));
    factors.extend(vhost.map(|vhost| ("vhost", quoted(vhost))));
    factors
}

#[cfg(test)]
mod tests {
    use vmtax_core::units::{Bytes, GIB};

    use super::*;

    fn domain() -> Domain {
        let machine = Machine {
            vcpus: 2,
            memory: Bytes(2 * GIB),
            backing: Backing::Huge2m,
            net: Some(Net::Tap { name: None, vhost: Vhost::Off }),
            ..Machine::new(Accel::Kvm)
        };
        Domain { name: "db".to_owned(), machine, pin: Vec::new(), notes: Vec::new() }
    }

    const PLAN: &str = "[factors]\nvenue = [\"native\", \"guest\"]\nmemory = [\"1G\"]\n\
                        [[workload]]\nprobe = \"chase\"\nsize = \"64M\"\n";

    #[test]
    fn a_domain_says_what_the_plan_leaves_open() {
        for (own, vcpus) in [("", 2), ("vcpus = 1\n", 1)] {
            let text = format!("{PLAN}{own}");
            let plan = Plan::parse("plan.toml", &text).unwrap();
            let joined = joined(&text, &plan, &domain()).unwrap();
            let plan = Plan::parse("plan.toml", &joined).unwrap();
            let cell = plan.cells().into_iter().find(|cell| cell.setting.is_linux_guest()).unwrap();
            let guest = plan.guest(&cell).unwrap().unwrap();
            assert_eq!((guest.memory, guest.host, guest.vcpus), (Bytes(GIB), Backing::Huge2m, vcpus));
            assert_eq!((guest.board, guest.vhost), (Some("q35"), Some(vmtax_core::plan::Vhost::Off)));
        }
    }

    #[test]
    fn a_plan_without_guests_is_refused() {
        let text = "[[workload]]\nprobe = \"chase\"\n";
        let plan = Plan::parse("plan.toml", text).unwrap();
        let error = joined(text, &plan, &domain()).unwrap_err();
        assert_eq!(error.to_string(), "--domain db: the plan has no Linux guest to be made like it");
    }
}
