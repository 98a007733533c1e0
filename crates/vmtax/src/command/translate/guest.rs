//! One address of a process in a Linux guest: boots the guest, has its agent take memory, follows the address.

use std::process::ExitCode;

use vmtax_core::{
    setting::Backing,
    units::{Bytes, GIB, MIB, PageSize},
};
use vmtax_report::translation::guest::{self as report, Document};

use super::{leaf, offset};
use crate::{
    agent::message::{Place, Wish},
    cli::TranslateArgs,
    command::image,
    guest::{Accel, Guest, GuestError, Machine, Patience, machine::Populated},
    image::{Initramfs, Kernel, Role},
    output,
};

/// Boots it, follows the address, shuts it down. Changes nothing on this host.
pub fn run(args: &TranslateArgs) -> anyhow::Result<ExitCode> {
    let backing = in_guest(leaf(args)?);
    let at = offset(args)?;
    let bytes = Bytes(args.size.0.next_multiple_of(backing.page().bytes()));
    let place = Place { bytes, backing, at };
    let kernel = Kernel::find(&image::source(&args.kernel))?;
    let initramfs = Initramfs::build(&kernel, Role::Guest)?;
    let document = image::executed(args.accel, |accel| {
        let host = args.host.backing();
        let machine = Machine {
            qemu: args.qemu.clone(),
            backing: host,
            memory: memory(place, host),
            populated: Populated::OnTouch,
            ..Machine::new(accel)
        };
        follow(machine, place, &kernel, &initramfs)
    })?;
    output::print(&match args.json {
        true => serde_json::to_string(&document)? + "\n",
        false => report::text(&document),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn follow(machine: Machine, place: Place, kernel: &Kernel, initramfs: &Initramfs) -> Result<Document, GuestError> {
    let (host, accel) = (machine.backing, machine.accel);
    let mut guest = Guest::boot(machine, kernel, initramfs, Patience::default())?;
    let pool = place.backing.pool().map(|page| (page, place.bytes.0 / page.bytes()));
    guest.set(Wish { pools: pool.into_iter().collect(), thp: None })?;
    let translation = guest.translate(place)?;
    let evidence = guest.evidence()?;
    let document = Document {
        schema: 1,
        venue: "guest",
        guest: place.backing,
        host,
        emulated: accel == Accel::Tcg,
        qemu: evidence.qemu_version,
        kernel: format!("Linux {}", guest.hello().kernel),
        effective_page: translation.effective_page(),
        translation,
        kvm: evidence.kvm,
    };
    guest.shut_down()?;
    Ok(document)
}

/// What a process stands on to have such pages for certain: huge ones come from the guest's pool.
fn in_guest(leaf: PageSize) -> Backing {
    match leaf {
        PageSize::Small => Backing::Small,
        PageSize::Large => Backing::Huge2m,
        PageSize::Giant => Backing::Huge1g,
    }
}

/// Enough for the guest's system and the process: pages of 1 GiB must be found whole, so beside them another two are left.
fn memory(place: Place, host: Backing) -> Bytes {
    let system = match place.backing {
        Backing::Small | Backing::Thp | Backing::Huge2m => 384 * MIB,
        Backing::Huge1g => 3 * GIB,
    };
    Bytes((place.bytes.0 + place.bytes.0 / 4 + system).next_multiple_of(host.page().bytes().max(2 * MIB)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guests_memory_is_whole_pages_of_its_backing() {
        let place = |backing, bytes| Place { bytes: Bytes(bytes), backing, at: 0 };
        for host in Backing::ALL {
            for (backing, bytes) in [(Backing::Small, 3 * MIB), (Backing::Huge2m, 64 * MIB), (Backing::Huge1g, GIB)] {
                let memory = memory(place(backing, bytes), host);
                let machine = Machine { memory, backing: host, ..Machine::new(Accel::Tcg) };
                assert!(machine.check().is_ok() && memory.0 > bytes, "{memory}");
            }
        }
    }
}
