//! One address of a process in the guest, from gva to hpa, by the word of each who knows a stage.
//!
//! | stage | told by | checked against |
//! |---|---|---|
//! | gva → gpa | the guest's kernel (`/proc/self/pagemap`) | both at the same offset in their page, gpa within the memory |
//! | gpa → hva | QEMU (`gpa2hva`) at the block's start | QEMU at gpa itself, and the host's mapping of the memory |
//! | hva → hpa | the host's kernel (`/proc/PID/pagemap`) | |
//!
//! A PC's memory is one block for QEMU and two for the guest: devices take what lies below 4 GiB, so the rest stands above.

use std::io;

use serde_json::{Value, json};
use vmtax_core::{
    translation::{Slot, Translation, Walk},
    units::{Bytes, GIB},
};
use vmtax_machine::{backing::Ground, folio};

use super::{Guest, GuestError, qmp::Qmp, talk::unexpected};
use crate::agent::message::{Ask, Place, Placed, Say};

/// Where a PC's memory goes on.
const ABOVE: u64 = 4 * GIB;

impl Guest {
    /// Has a process of the guest take memory, and follows an address of it. True until the next question.
    pub fn translate(&mut self, place: Place) -> Result<Translation, GuestError> {
        let Placed { gva, gpa, page } = match self.talk.ask(Ask::Place(place), "for memory", self.patience.answer)? {
            Say::Placed(placed) => checked(placed, place)?,
            other => return Err(unexpected(&other)),
        };
        let slot = self.slot(gpa)?;
        let hva = slot.hva_of(gpa).ok_or_else(|| GuestError::Protocol(format!("it has no memory at {gpa:#x}")))?;
        let told = hva_of(&mut self.qmp, gpa)?;
        if told != hva {
            let why = format!("by its block {gpa:#x} is at {hva:#x}, by QEMU's word at {told:#x}");
            return Err(GuestError::Contradiction(why));
        }
        let frame = folio::frame_of(self.pid, hva);
        let frame = frame.map_err(|e| GuestError::host(format!("read QEMU's page of {hva:#x}"), e))?;
        let walk = Walk { entries: Vec::new(), leaf: page, gpa };
        Ok(Translation { gva, walk, slot, hva, frame, kvm_gpa: None })
    }

    /// The part of the guest's memory that `gpa` is in, below or above.
    fn slot(&mut self, gpa: u64) -> Result<Slot, GuestError> {
        let memory = self.machine.memory;
        let base = hva_of(&mut self.qmp, 0)?;
        let is_above = gpa >= ABOVE;
        let slot = if is_above {
            let hva = hva_of(&mut self.qmp, ABOVE)?;
            Slot { number: None, gpa: ABOVE, hva, bytes: memory.0.saturating_sub(hva.saturating_sub(base)) }
        } else {
            Slot { number: None, gpa: 0, hva: base, bytes: memory.0.min(ABOVE) }
        };
        let ground = Ground::of_process(self.pid, memory).map_err(|e| GuestError::host("read QEMU's mappings", e))?;
        match ground {
            Some(ground) if holds(ground.addresses, base, memory, &slot) => Ok(slot),
            Some(Ground { addresses: (start, end), .. }) => Err(GuestError::Contradiction(format!(
                "by QEMU's word its memory begins at {base:#x}, and the host has mapped it from {start:#x} to {end:#x}"
            ))),
            None => Err(GuestError::Contradiction(format!("QEMU has no mapping of {memory}"))),
        }
    }
}

/// Whether the host's mapping holds the memory, and the memory this part of it.
fn holds((start, end): (u64, u64), base: u64, memory: Bytes, slot: &Slot) -> bool {
    let is_mapped = start <= base && base.checked_add(memory.0).is_some_and(|last| last <= end);
    is_mapped && base <= slot.hva && slot.hva - base + slot.bytes <= memory.0
}

/// What the guest says, if it can be.
fn checked(placed: Placed, place: Place) -> Result<Placed, GuestError> {
    let Placed { gva, gpa, page } = placed;
    if !(gva ^ gpa).is_multiple_of(page.bytes()) {
        return Err(GuestError::Protocol(format!("{gva:#x} and {gpa:#x} are no addresses in one page of {page}")));
    }
    if page != place.backing.page() {
        let wanted = place.backing.page();
        return Err(GuestError::Contradiction(format!("its process has pages of {page}, not of {wanted}")));
    }
    Ok(placed)
}

/// Where a guest-physical address is in QEMU's memory.
fn hva_of(qmp: &mut Qmp, gpa: u64) -> Result<u64, GuestError> {
    let answer = qmp.ask_with("human-monitor-command", json!({ "command-line": format!("gpa2hva {gpa:#x}") }))?;
    read(&answer).ok_or_else(|| {
        let said = answer.as_str().unwrap_or("nothing").trim().to_owned();
        GuestError::host(format!("ask QEMU for the place of {gpa:#x}"), io::Error::other(said))
    })
}

/// `Host virtual address for 0x0 (ram) is 0x7f3c1be00000`.
fn read(answer: &Value) -> Option<u64> {
    let (_, address) = answer.as_str()?.trim().split_once(" (ram) is 0x")?;
    u64::from_str_radix(address, 16).ok()
}

#[cfg(test)]
mod tests {
    use vmtax_core::{
        setting::Backing,
        units::{MIB, PageSize},
    };

    use super::*;

    #[test]
    fn qemus_word_on_an_address_is_read_and_its_refusal_is_none() {
        let check = |text: &str, expected| assert_eq!(read(&json!(text)), expected);
        check("Host virtual address for 0x0 (ram) is 0x7f3c1be00000\r\n", Some(0x7f3c_1be0_0000));
        check("Host virtual address for 0xfd000000 (vga.vram) is 0x7f3c1be00000\r\n", None);
        check("No memory is mapped at address 0xfffff000\r\n", None);
        check("Host virtual address for 0x0 (ram) is 0xnothing", None);
    }

    #[test]
    fn a_guests_lies_about_an_address_are_named() {
        let place = Place { bytes: Bytes(4 * MIB), backing: Backing::Huge2m, at: 0 };
        let placed = Placed { gva: 0x7f00_0020_1234, gpa: 0x4000_1234, page: PageSize::Large };
        assert_eq!(checked(placed, place).unwrap(), placed);
        let shifted = Placed { gpa: 0x4000_2234, ..placed };
        assert!(matches!(checked(shifted, place), Err(GuestError::Protocol(_))));
        let small = Placed { page: PageSize::Small, ..placed };
        assert!(matches!(checked(small, place), Err(GuestError::Contradiction(_))));
    }

    #[test]
    fn a_block_lies_within_the_memory_and_that_within_its_mapping() {
        let memory = Bytes(4 * GIB);
        let below = Slot { number: None, gpa: 0, hva: 8 * GIB, bytes: 4 * GIB };
        let above = Slot { number: None, gpa: ABOVE, hva: 10 * GIB, bytes: 2 * GIB };
        let check = |mapped, base, slot: &Slot, expected| assert_eq!(holds(mapped, base, memory, slot), expected);
        check((8 * GIB, 12 * GIB), 8 * GIB, &below, true);
        check((8 * GIB, 12 * GIB), 8 * GIB, &above, true);
        check((8 * GIB, 12 * GIB), 8 * GIB, &Slot { bytes: 3 * GIB, ..above }, false);
        check((8 * GIB, 12 * GIB), 9 * GIB, &above, false);
        check((8 * GIB, 12 * GIB), 8 * GIB, &Slot { hva: 7 * GIB, ..above }, false);
    }
}
