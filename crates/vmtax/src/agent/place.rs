//! Where an address of a process in the guest lies, by the guest's own account.

use anyhow::{Context, bail, ensure};
use vmtax_core::units::PageSize;
use vmtax_machine::{
    backing::{Memory, Standing},
    folio,
};

use super::message::Placed;

/// The address `at` bytes into this memory. The memory comes back: only while it is held is the answer true.
pub fn tell(memory: Memory, at: u64) -> anyhow::Result<(Memory, Placed)> {
    ensure!(at < memory.bytes(), "{at} is not within {} bytes of memory", memory.bytes());
    memory.touch(at);
    let page = page(memory.standing()?)?;
    let gva = memory.address() + at;
    let frame = folio::frame(gva).context("cannot read /proc/self/pagemap")?;
    let gpa = frame.hpa.context("the kernel does not show where its pages are, which takes CAP_SYS_ADMIN")?;
    Ok((memory, Placed { gva, gpa, page }))
}

/// The page in which all of a memory is mapped.
fn page(standing: Standing) -> anyhow::Result<PageSize> {
    let Standing { kernel_page_kb, thp_coverage, .. } = standing;
    match PageSize::ALL.into_iter().find(|page| page.bytes() / 1024 == kernel_page_kb) {
        Some(PageSize::Small) if thp_coverage == 0.0 => Ok(PageSize::Small),
        Some(PageSize::Small) if thp_coverage >= 1.0 => Ok(PageSize::Large),
        Some(PageSize::Small) => bail!("only {:.0} % of it is in transparent huge pages", 100.0 * thp_coverage),
        Some(page @ (PageSize::Large | PageSize::Giant)) => Ok(page),
        None => bail!("it is mapped in pages of {kernel_page_kb} kB"),
    }
}

#[cfg(test)]
mod tests {
    use vmtax_core::{
        setting::Backing,
        units::{Bytes, MIB},
    };

    use super::*;

    #[test]
    fn memory_that_is_partly_huge_has_no_one_page() {
        let check = |kernel_page_kb, thp_coverage, expected| {
            let standing = Standing { kernel_page_kb, thp_coverage, thp_ruled_out: false };
            assert_eq!(page(standing).ok(), expected);
        };
        check(4, 0.0, Some(PageSize::Small));
        check(4, 1.0, Some(PageSize::Large));
        check(4, 0.5, None);
        check(2048, 0.0, Some(PageSize::Large));
        check(1 << 20, 0.0, Some(PageSize::Giant));
        check(64, 0.0, None);
    }

    #[test]
    fn an_address_keeps_its_place_in_its_page() {
        let memory = Memory::allocate(Backing::Small, Bytes(2 * MIB)).unwrap();
        match tell(memory, MIB + 5) {
            Ok((memory, placed)) => {
                assert_eq!(placed.gva, memory.address() + MIB + 5);
                assert_eq!((placed.gpa % 4096, placed.page), (5, PageSize::Small));
            }
            Err(e) => assert!(e.to_string().contains("CAP_SYS_ADMIN"), "{e}"),
        }
        let memory = Memory::allocate(Backing::Small, Bytes(2 * MIB)).unwrap();
        assert!(tell(memory, 2 * MIB).is_err());
    }
}
