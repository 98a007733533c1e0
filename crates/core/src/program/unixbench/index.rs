//! The index: how many times as fast as a machine of 1995, ten times the geometric mean over the tests.

/// A test of the index, with what the baseline system reached in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Baseline {
    /// Its name on UnixBench's command line.
    pub key: &'static str,
    /// Its name in reports.
    pub name: &'static str,
    /// What the baseline system reached: "George", a SPARCstation 20-61 with 128 MB of memory and Solaris 2.3.
    pub rate: f64,
    /// `lps` (loops a second), `lpm` (a minute), `KBps` (KiB a second) or `MWIPS`.
    pub unit: &'static str,
}

/// The tests of the index (`UnixBench/pgms/index.base`, versions 5.1 and 6.0).
pub const BASELINES: [Baseline; 12] = [
    row("dhry2reg", "Dhrystone 2 using register variables", 116_700.0, "lps"),
    row("whetstone-double", "Double-Precision Whetstone", 55.0, "MWIPS"),
    row("execl", "Execl Throughput", 43.0, "lps"),
    row("fstime", "File Copy 1024 bufsize 2000 maxblocks", 3960.0, "KBps"),
    row("fsbuffer", "File Copy 256 bufsize 500 maxblocks", 1655.0, "KBps"),
    row("fsdisk", "File Copy 4096 bufsize 8000 maxblocks", 5800.0, "KBps"),
    row("pipe", "Pipe Throughput", 12_440.0, "lps"),
    row("context1", "Pipe-based Context Switching", 4000.0, "lps"),
    row("spawn", "Process Creation", 126.0, "lps"),
    row("shell1", "Shell Scripts (1 concurrent)", 42.4, "lpm"),
    row("shell8", "Shell Scripts (8 concurrent)", 6.0, "lpm"),
    row("syscall", "System Call Overhead", 15_000.0, "lps"),
];

const fn row(key: &'static str, name: &'static str, rate: f64, unit: &'static str) -> Baseline {
    Baseline { key, name, rate, unit }
}

/// The index of the baseline system.
pub const BASELINE_INDEX: f64 = 10.0;

impl Baseline {
    /// The test of this key.
    pub fn named(key: &str) -> Option<&'static Baseline> {
        BASELINES.iter().find(|baseline| baseline.key == key)
    }

    /// How many times as fast as the baseline system.
    pub fn ratio(&self, rate: f64) -> f64 {
        rate / self.rate
    }
}

/// The geometric mean of ratios; none of no ratios, and where one is no number above 0.
pub fn geometric_mean(ratios: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut logarithms, mut n) = (0.0, 0);
    for ratio in ratios {
        if !(ratio > 0.0 && ratio.is_finite()) {
            return None;
        }
        logarithms += ratio.ln();
        n += 1;
    }
    (n > 0).then(|| (logarithms / f64::from(n)).exp())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_mean_of_ratios_is_geometric_and_takes_no_zero() {
        assert!((geometric_mean([2.0, 8.0]).unwrap() - 4.0).abs() < 1e-12);
        for none in [&[][..], &[1.0, 0.0], &[f64::NAN], &[f64::INFINITY]] {
            assert_eq!(geometric_mean(none.iter().copied()), None);
        }
    }

    proptest! {
        #[test]
        fn a_change_of_unit_changes_the_mean_alike(
            ratios in prop::collection::vec(0.01..1e4f64, 1..13), factor in 0.001..1e3f64,
        ) {
            let mean = geometric_mean(ratios.iter().copied()).unwrap();
            let scaled = geometric_mean(ratios.iter().map(|ratio| ratio * factor)).unwrap();
            prop_assert!((scaled / mean / factor - 1.0).abs() < 1e-9);
        }
    }
}
