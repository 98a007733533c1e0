//! What holds for every program and every output.

use proptest::prelude::*;

use super::{super::*, successes};
use crate::units::{Bytes, MIB, PageSize};

#[test]
fn an_output_cut_anywhere_gives_the_same_figures_or_none() {
    for recorded in successes() {
        let whole = recorded.read().unwrap();
        for end in (0..recorded.stdout.len()).filter(|end| recorded.stdout.is_char_boundary(*end)) {
            if let Ok(cut) = recorded.read_as(&recorded.stdout[..end]) {
                assert_eq!(cut.metrics, whole.metrics, "{} cut at {end}", recorded.program.name);
            }
        }
    }
}

#[test]
fn two_outputs_in_one_are_refused() {
    for recorded in successes() {
        let twice = recorded.stdout.repeat(2);
        assert!(recorded.read_as(&twice).is_err(), "{}", recorded.program.name);
    }
}

#[test]
fn nothing_is_read_from_nothing() {
    for program in PROGRAMS {
        let values = Values::new(program, &[]).unwrap();
        assert!((program.read)(&values, &Outputs::default()).is_err(), "{}", program.name);
    }
}

#[test]
fn every_metric_is_a_number_above_0_with_a_unit_and_a_name_of_its_own() {
    for recorded in successes() {
        let finding = recorded.read().unwrap();
        assert!(!finding.metrics.is_empty());
        for (at, metric) in finding.metrics.iter().enumerate() {
            assert!(metric.value > 0.0 && metric.value.is_finite() && !metric.unit.is_empty(), "{metric:?}");
            assert!(finding.metrics[..at].iter().all(|other| other.name != metric.name), "{metric:?}");
        }
    }
}

/// Ways to spoil a line.
fn spoilt() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,40}",
        "[0-9.,eE+-]{0,12}",
        Just(String::new()),
        "(inf|nan|-0|1e999|0x1p3)",
        "(\\PC|\n|\r|\x1b){0,40}"
    ]
}

proptest! {
    #[test]
    fn no_reader_panics_on_anything(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        for program in PROGRAMS {
            let values = Values::new(program, &[]).unwrap();
            let _ = (program.read)(&values, &Outputs::printed(&text));
        }
        let _ = kernbench::log::read(&text);
    }

    #[test]
    fn a_spoilt_line_gives_figures_above_0_or_an_error(at in any::<prop::sample::Index>(), line in spoilt()) {
        for recorded in successes() {
            let mut lines: Vec<&str> = recorded.stdout.lines().collect();
            let at = at.index(lines.len());
            lines[at] = &line;
            if let Ok(finding) = recorded.read_as(&(lines.join("\n") + "\n")) {
                prop_assert!(finding.metrics.iter().all(|metric| metric.value > 0.0 && metric.value.is_finite()));
            }
        }
    }

    #[test]
    fn the_huge_pages_of_sysbench_hold_its_block(exponent in 3..40u32, threads in 1..64u64) {
        let block = 1u64 << exponent;
        let huge = Huge { buffers: threads, bytes: sysbench::memory::asked(Bytes(block)) };
        for page in [PageSize::Large, PageSize::Giant] {
            let pages = huge.pages(page);
            prop_assert!(pages * page.bytes() >= threads * block);
            // At most 4 MiB and a page more for each: the odd rounding.
            prop_assert!(pages * page.bytes() <= threads * (block + 4 * MIB + page.bytes()));
        }
    }

    #[test]
    fn rates_in_bits_are_millions_of_bits(rate in 1.0..1e12f64) {
        let text = include_str!("../../../testdata/programs/iperf3/stream.txt");
        let text = text.replace("21192436738.141533", &format!("{rate:.3}"));
        let values = super::values("iperf3", &[("seconds", "1")]);
        let read = (iperf3::PROGRAM.read)(&values, &Outputs::printed(&text)).unwrap().metrics[0].value;
        prop_assert!((read * 1e6 / rate - 1.0).abs() < 1e-3);
    }
}
