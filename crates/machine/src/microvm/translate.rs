//! Following an address of a micro-VM through both stages.

use vm_memory::{GuestMemoryBackend as _, GuestMemoryRegion as _};
use vmtax_core::translation::{Slot, Translation};

use super::{Microvm, MicrovmError, table};
use crate::folio;

impl Microvm<'_> {
    /// Follows `gva` through page table, slot and `/proc/self/pagemap`; none where the guest maps nothing there.
    ///
    /// # Errors
    /// The page table lies outside the guest's memory, or the host's page cannot be read.
    pub fn translate(&self, gva: u64) -> Result<Option<Translation>, MicrovmError> {
        let Some(walk) = table::walk(&self.memory, gva)? else { return Ok(None) };
        let slot = self.slots().find_map(|slot| Some((slot, slot.hva_of(walk.gpa)?)));
        let (slot, hva) = slot.ok_or_else(|| MicrovmError::Memory(format!("no slot holds {:#x}", walk.gpa)))?;
        let frame = folio::frame(hva).map_err(|e| MicrovmError::Memory(format!("the host's page of {hva:#x}: {e}")))?;
        // KVM walks the same table by its own code: a second opinion.
        let told = self.vcpus.first().and_then(|vcpu| vcpu.fd.translate_gva(gva).ok());
        let kvm_gpa = told.filter(|told| told.valid != 0).map(|told| told.physical_address);
        Ok(Some(Translation { gva, walk, slot, hva, frame, kvm_gpa }))
    }

    /// Its memory slots, as KVM was told of them.
    fn slots(&self) -> impl Iterator<Item = Slot> {
        (0..).zip(self.memory.iter()).map(|(number, region)| Slot {
            number: Some(number),
            gpa: region.start_addr().0,
            hva: region.as_ptr() as u64,
            bytes: region.len(),
        })
    }
}
