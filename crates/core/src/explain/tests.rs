use super::*;
use crate::{
    host::Host,
    probe::Probe,
    request::Request,
    run::Ending,
    schedule,
    setting::Cell,
    trial::{Evidence, Interference, Measurement, Outcome, Trial},
    units::{Bytes, GIB},
};

const NATIVE: Setting = Setting::native(Backing::Small);
const L_ON_S: Setting = Setting::microvm(PageSize::Large, Backing::Small);
const S_ON_L: Setting = Setting::microvm(PageSize::Small, Backing::Huge2m);
const L_ON_L: Setting = Setting::microvm(PageSize::Large, Backing::Huge2m);
const L_ON_THP: Setting = Setting::microvm(PageSize::Large, Backing::Thp);
const G_ON_G: Setting = Setting::microvm(PageSize::Giant, Backing::Huge1g);

/// The cost of filling is three times the steady state in all of these runs.
const FILL: &str = "The first pass in a fresh guest, which fills KVM's page table, costs 450 ns an access with 4 KiB pages, 3.0 times a later one, and 300 ns with 2 MiB pages, 3.0 times a later one.";

/// Blocks of trials around these values, each a little off, no two alike: intervals of about ±1 %.
fn said(blocks: u32, values: &[(Setting, f64)]) -> Vec<String> {
    let wobble = |block: u32, nth: usize| 1.0 + 0.004 * (f64::from((block * 3 + nth as u32 * 5 + 2) % 7) - 3.0);
    let trial = |block: u32, nth: usize, cell: Cell, ns: f64| {
        let ns = ns * wobble(block, nth);
        let measurement = Measurement {
            batches_ns: vec![ns],
            first_pass_ns: 3.0 * ns,
            evidence: Evidence::default(),
            interference: Interference::default(),
            caveats: Vec::new(),
        };
        Trial { block, place: nth as u32, cell, outcome: Outcome::Ok(measurement) }
    };
    let settings: Vec<Setting> = values.iter().map(|(setting, _)| *setting).collect();
    let ns = |setting| values.iter().find(|(known, _)| *known == setting).unwrap().1;
    let cells = schedule::cells(&settings);
    let made = |block: u32| cells.iter().enumerate().map(move |(nth, &cell)| trial(block, nth, cell, ns(cell.setting)));
    let request = Request {
        probe: Probe::Chase,
        size: Bytes(GIB),
        stride: Bytes(4096),
        settings,
        vcpus: 1,
        pin: Vec::new(),
        blocks: Some(blocks),
        budget_seconds: None,
        seed: 1,
        reserve: false,
    };
    let run = Run {
        id: "test".to_owned(),
        started: String::new(),
        request,
        host: Host::default(),
        ending: Some(Ending::Done),
        seconds: None,
        trials: (0..blocks).flat_map(made).collect(),
        unavailable: Vec::new(),
    };
    sentences(&run, &run.summary().unwrap())
}

#[track_caller]
fn check(values: &[(Setting, f64)], expected: &[&str]) {
    assert_eq!(said(7, values), expected);
}

#[test]
fn pages_that_pay_only_on_both_sides_are_said_to() {
    check(
        &[(NATIVE, 100.0), (SMALL, 150.0), (L_ON_S, 150.0), (S_ON_L, 150.0), (L_ON_L, 100.0)],
        &[
            "With 4 KiB pages on both sides an access costs more in a guest than natively: 150 ns against 100 ns, +49 % [+49, +53].",
            "2 MiB pages pay only when guest and host both use them: both −33 % [−34, −33], the guest alone −0.8 % [−0.8, +2.0], the host alone +1.2 % [−1.6, +1.2].",
            FILL,
        ],
    );
    check(
        &[(NATIVE, 100.0), (SMALL, 150.0), (L_ON_S, 135.0), (S_ON_L, 136.0), (L_ON_L, 100.0)],
        &[
            "With 4 KiB pages on both sides an access costs more in a guest than natively: 150 ns against 100 ns, +49 % [+49, +53].",
            "2 MiB pages pay in full only when guest and host both use them: both −33 % [−34, −33], the guest alone −11 % [−11, −8.2], the host alone −8.2 % [−11, −8.2].",
            FILL,
        ],
    );
}

#[test]
fn pages_that_pay_in_the_guest_alone_are_said_to() {
    check(
        &[(NATIVE, 100.0), (SMALL, 150.0), (L_ON_S, 110.0), (S_ON_L, 150.0), (L_ON_L, 100.0)],
        &[
            "With 4 KiB pages on both sides an access costs more in a guest than natively: 150 ns against 100 ns, +49 % [+49, +53].",
            "2 MiB pages pay in the guest alone, and more when the host uses them too: both −33 % [−34, −33], the guest alone −27 % [−27, −25], the host alone +1.2 % [−1.6, +1.2].",
            FILL,
        ],
    );
    check(
        &[(SMALL, 150.0), (L_ON_S, 100.0), (S_ON_L, 150.0), (L_ON_L, 100.0)],
        &[
            "2 MiB pages pay in the guest; on the host they add nothing this run can tell: both −33 % [−34, −33], the guest alone −34 % [−34, −32], the host alone +1.2 % [−1.6, +1.2].",
            FILL,
        ],
    );
}

#[test]
fn pages_that_pay_on_the_host_or_on_either_side_are_said_to() {
    check(
        &[(SMALL, 150.0), (L_ON_S, 150.0), (S_ON_L, 110.0), (L_ON_L, 100.0)],
        &[
            "2 MiB pages pay on the host alone, and more when the guest uses them too: both −33 % [−34, −33], the guest alone −0.8 % [−0.8, +2.0], the host alone −26 % [−28, −26].",
            FILL,
        ],
    );
    check(
        &[(SMALL, 150.0), (L_ON_S, 110.0), (S_ON_L, 110.0), (L_ON_L, 80.0)],
        &[
            "2 MiB pages pay on either side, and more on both: both −46 % [−47, −46], the guest alone −27 % [−27, −25], the host alone −26 % [−28, −26].",
            "The first pass in a fresh guest, which fills KVM's page table, costs 450 ns an access with 4 KiB pages, 3.0 times a later one, and 240 ns with 2 MiB pages, 3.0 times a later one.",
        ],
    );
}

#[test]
fn where_nothing_differs_nothing_is_claimed() {
    check(
        &[
            (NATIVE, 100.0),
            (SMALL, 100.0),
            (L_ON_S, 100.0),
            (S_ON_L, 100.0),
            (L_ON_L, 100.0),
            (L_ON_THP, 100.0),
            (G_ON_G, 100.0),
        ],
        &[
            "With 4 KiB pages on both sides a guest pays nothing this run can tell from noise: 100 ns against 100 ns, −0.8 % [−0.8, +2.0].",
            "2 MiB pages on both sides make no difference this run can tell: both +0.4 % [−0.3, +0.4], the guest alone −0.8 % [−0.8, +2.0], the host alone +1.2 % [−1.6, +1.2].",
            "Transparent huge pages on the host do as well as a hugetlb pool, as far as this run can tell: −0.8 % [−0.8, +2.0].",
            "1 GiB pages on both sides add nothing to 2 MiB pages that this run can tell: +1.2 % [−1.6, +1.2].",
            "The first pass in a fresh guest, which fills KVM's page table, costs 300 ns an access with 4 KiB pages, 3.0 times a later one, and 300 ns with 2 MiB pages, 3.0 times a later one.",
        ],
    );
}

#[test]
fn one_gibibyte_pages_are_compared_with_two_mebibyte_pages() {
    check(
        &[(L_ON_L, 100.0), (G_ON_G, 90.0), (L_ON_THP, 120.0)],
        &[
            "Transparent huge pages on the host are slower than a hugetlb pool: +21 % [+18, +21].",
            "1 GiB pages on both sides are faster still than 2 MiB pages: −11 % [−11, −8.2].",
        ],
    );
}

#[test]
fn without_4k_cells_the_tax_is_that_of_the_next_page_size() {
    let native = Setting::native;
    check(
        &[(native(Backing::Huge2m), 80.0), (S_ON_L, 120.0), (L_ON_L, 88.0)],
        &[
            "With 2 MiB pages on both sides an access costs more in a guest than natively: 88.0 ns against 80.0 ns, +11 % [+8.3, +11].",
        ],
    );
    check(
        &[(native(Backing::Huge2m), 80.0), (S_ON_L, 120.0)],
        &[
            "With 4 KiB pages in the guest and 2 MiB pages on the host an access costs more in a guest than natively: 120 ns against 80.0 ns, +49 % [+49, +53].",
        ],
    );
}

#[test]
fn without_a_guest_native_memory_is_spoken_of() {
    let native = Setting::native;
    check(
        &[(NATIVE, 95.0)],
        &["No guest was measured, so the tax is not known; the figures are those of native memory."],
    );
    check(
        &[(NATIVE, 95.0), (native(Backing::Thp), 76.0)],
        &[
            "No guest was measured, so the tax is not known; the figures are those of native memory.",
            "2 MiB pages make an access cheaper than 4 KiB pages do: 76.0 ns against 95.0 ns, −21 % [−21, −18].",
        ],
    );
    check(
        &[
            (NATIVE, 95.0),
            (native(Backing::Thp), 75.0),
            (native(Backing::Huge2m), 74.0),
            (native(Backing::Huge1g), 70.0),
        ],
        &[
            "No guest was measured, so the tax is not known; the figures are those of native memory.",
            "2 MiB pages make an access cheaper than 4 KiB pages do: 74.0 ns against 95.0 ns, −21 % [−23, −21].",
            "Transparent huge pages do as well as a hugetlb pool, as far as this run can tell: +2.2 % [−0.7, +2.2].",
            "1 GiB pages are faster still than 2 MiB pages: −6.2 % [−6.2, −3.5].",
        ],
    );
}

#[test]
fn less_than_two_blocks_are_said_to_say_nothing() {
    assert_eq!(said(1, &[(NATIVE, 100.0), (SMALL, 150.0)]), [ONE_BLOCK]);
    assert_eq!(said(0, &[(NATIVE, 100.0), (SMALL, 150.0)]), [""; 0]);
}
