//! Whether what was observed agrees with what was set. A trial whose evidence contradicts its setting is a failed trial.

use crate::{
    setting::{Backing, Setting},
    trial::Evidence,
    units::{Bytes, PageSize},
};

/// The contradiction between a setting and its evidence, in words; none when they agree.
///
/// `touched` is how much of the arena the probe has certainly touched: KVM must have mapped at least that. Transparent huge
/// pages that do not cover everything are a caveat, not a contradiction: the kernel promised nothing.
pub fn contradiction(setting: Setting, evidence: &Evidence, touched: Bytes) -> Option<String> {
    let expected_kb = match setting.host {
        Backing::Small | Backing::Thp => PageSize::Small.bytes() / 1024,
        Backing::Huge2m | Backing::Huge1g => setting.host.page().bytes() / 1024,
    };
    if evidence.kernel_page_kb != expected_kb {
        return Some(format!(
            "asked for {} backing, but smaps says KernelPageSize {} kB",
            setting.host, evidence.kernel_page_kb
        ));
    }
    if setting.host == Backing::Small && evidence.thp_coverage > 0.0 {
        return Some(format!(
            "asked for 4 KiB pages, but {:.1} % of the memory is in transparent huge pages",
            evidence.thp_coverage * 100.0
        ));
    }
    let kvm = evidence.kvm?;
    let counted = [(PageSize::Small, kvm.pages_4k), (PageSize::Large, kvm.pages_2m), (PageSize::Giant, kvm.pages_1g)];
    if let Some((page, n)) = counted.iter().find(|(page, n)| *page > setting.host.page() && *n > 0) {
        return Some(format!("KVM maps {n} pages of {}, larger than any of the host's", page.prose()));
    }
    let mapped: u64 = counted.iter().map(|(page, n)| page.bytes() * n).sum();
    if mapped < touched.0 {
        return Some(format!("the guest touched {touched}, but KVM has mapped {}", Bytes(mapped)));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        trial::KvmCounts,
        units::{GIB, MIB},
    };

    #[test]
    fn evidence_that_contradicts_its_setting_is_named() {
        let check = |setting, evidence, touched, expected: Option<&str>| {
            assert_eq!(contradiction(setting, &evidence, Bytes(touched)).as_deref(), expected, "{setting}");
        };
        let smaps = |kernel_page_kb, thp_coverage| Evidence { kernel_page_kb, thp_coverage, kvm: None };
        let kvm = |kernel_page_kb, pages_4k, pages_2m, pages_1g| Evidence {
            kernel_page_kb,
            thp_coverage: 0.0,
            kvm: Some(KvmCounts { pages_4k, pages_2m, pages_1g, ..KvmCounts::default() }),
        };
        check(Setting::native(Backing::Small), smaps(4, 0.0), 0, None);
        check(Setting::native(Backing::Thp), smaps(4, 0.3), 0, None);
        check(Setting::native(Backing::Huge1g), smaps(1 << 20, 0.0), 0, None);
        check(
            Setting::native(Backing::Huge2m),
            smaps(4, 0.0),
            0,
            Some("asked for 2m backing, but smaps says KernelPageSize 4 kB"),
        );
        check(
            Setting::native(Backing::Small),
            smaps(4, 0.25),
            0,
            Some("asked for 4 KiB pages, but 25.0 % of the memory is in transparent huge pages"),
        );
        let small_on_small = Setting::microvm(PageSize::Small, Backing::Small);
        check(small_on_small, kvm(4, 262_146, 0, 0), GIB, None);
        check(
            small_on_small,
            kvm(4, 0, 512, 0),
            GIB,
            Some("KVM maps 512 pages of 2 MiB, larger than any of the host's"),
        );
        let large_on_large = Setting::microvm(PageSize::Large, Backing::Huge2m);
        check(large_on_large, kvm(2048, 2, 512, 0), GIB, None);
        check(
            large_on_large,
            kvm(2048, 0, 511, 0),
            512 * 2 * MIB,
            Some("the guest touched 1 GiB, but KVM has mapped 1022 MiB"),
        );
    }
}
