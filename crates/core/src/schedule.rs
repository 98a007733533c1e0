//! Which cell is measured when: every block holds every cell once, in a random order of its own.
//!
//! Backings are hard to change (pools are reserved, memory is faulted in), so they are whole plots: within a block
//! their order is random, and within each of them the order of its cells. It follows from the seed, the block's number
//! and the cells alone, so a run that was killed goes on where it stopped, and a stored seed repeats the run.
//!
//! [`crate::plan::schedule`] does the same for plans, with knobs of the host as one more stratum.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_pcg::Pcg64;

use crate::setting::{Backing, Cell, Replica, Setting};

/// The cells that stand on one backing, in the order in which they are measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// What is prepared once for all of them.
    pub host: Backing,
    /// At least one, all with `setting.host == host`.
    pub cells: Vec<Cell>,
}

/// What every setting is compared with: native on the first of [`Backing::ALL`] that is among the native settings; on
/// 4 KiB pages, that is, unless they were left out. None when nothing is native.
pub fn baseline(settings: &[Setting]) -> Option<Setting> {
    Backing::ALL.into_iter().map(Setting::native).find(|native| settings.contains(native))
}

/// The cells of one block: each setting once, and the baseline's twin.
pub fn cells(settings: &[Setting]) -> Vec<Cell> {
    let twin = baseline(settings).map(|setting| Cell { setting, replica: Replica::APrime });
    settings.iter().map(|&setting| Cell { setting, replica: Replica::A }).chain(twin).collect()
}

/// The random order of block number `block` (from 0) of the run with this `seed`.
///
/// The order of `cells` does not matter; a cell given twice is measured twice.
pub fn block(seed: u64, block: u32, cells: &[Cell]) -> Vec<Plot> {
    let mut dice = dice(seed, block);
    let mut cells = cells.to_vec();
    cells.sort_unstable();
    let plots = plots(cells, |cell| cell.setting.host, &mut dice);
    let shuffled = |(host, mut cells): (Backing, Vec<Cell>)| {
        cells.shuffle(&mut dice);
        Plot { host, cells }
    };
    plots.into_iter().map(shuffled).collect()
}

/// The items gathered by `key`, each key once, the keys in random order; items keep theirs.
pub(crate) fn plots<K: Ord, T>(
    items: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
    dice: &mut Pcg64,
) -> Vec<(K, Vec<T>)> {
    let mut plots: BTreeMap<K, Vec<T>> = BTreeMap::new();
    for item in items {
        plots.entry(key(&item)).or_default().push(item);
    }
    let mut plots: Vec<_> = plots.into_iter().collect();
    plots.shuffle(dice);
    plots
}

/// A generator for one block: its seed is the block's number in the sequence of the run's generator.
///
/// Not a stream or a long jump of one generator, which are correlated for PCG (the documentation of `Pcg64::new`).
pub(crate) fn dice(seed: u64, block: u32) -> Pcg64 {
    let mut run = Pcg64::seed_from_u64(seed);
    run.advance(u128::from(block));
    Pcg64::seed_from_u64(run.next_u64())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::{prelude::*, sample::subsequence};

    use super::*;
    use crate::units::PageSize;

    fn all_settings() -> Vec<Setting> {
        let guests = [None, Some(PageSize::Small), Some(PageSize::Large), Some(PageSize::Giant)];
        guests.into_iter().flat_map(|guest| Backing::ALL.map(|host| Setting { guest, host })).collect()
    }

    fn in_order(plots: &[Plot]) -> Vec<Cell> {
        plots.iter().flat_map(|plot| plot.cells.clone()).collect()
    }

    #[test]
    fn the_baseline_is_native_on_the_smallest_pages_asked_for_and_measured_twice() {
        let check = |settings: &[Setting], expected: Option<Setting>| {
            assert_eq!(baseline(settings), expected);
            let twins: Vec<Cell> = cells(settings).into_iter().filter(|c| c.replica == Replica::APrime).collect();
            assert_eq!(
                twins,
                expected.map(|setting| Cell { setting, replica: Replica::APrime }).into_iter().collect::<Vec<_>>()
            );
        };
        check(&all_settings(), Some(Setting::native(Backing::Small)));
        check(&[Setting::native(Backing::Huge1g), Setting::native(Backing::Thp)], Some(Setting::native(Backing::Thp)));
        check(&[Setting::microvm(PageSize::Small, Backing::Small)], None);
        check(&[], None);
    }

    #[test]
    fn a_stored_seed_repeats_the_order_also_with_another_version_of_rand() {
        let settings = [
            Setting::native(Backing::Small),
            Setting::native(Backing::Huge2m),
            Setting::microvm(PageSize::Small, Backing::Small),
            Setting::microvm(PageSize::Large, Backing::Huge2m),
        ];
        let order = |number| -> Vec<String> {
            in_order(&block(42, number, &cells(&settings)))
                .iter()
                .map(|cell| format!("{} {}", cell.setting, cell.replica.name()))
                .collect()
        };
        assert_eq!(
            order(0),
            ["guest 2m on 2m A", "native on 2m A", "native on 4k A'", "guest 4k on 4k A", "native on 4k A"]
        );
        assert_eq!(
            order(1),
            ["guest 4k on 4k A", "native on 4k A'", "native on 4k A", "native on 2m A", "guest 2m on 2m A"]
        );
    }

    #[test]
    fn every_backing_comes_first_about_equally_often() {
        let cells = cells(&all_settings());
        for host in Backing::ALL {
            let first = (0..4000).filter(|&number| block(7, number, &cells)[0].host == host).count();
            // Binomial(4000, 1/4): 1000, with a standard deviation of 27.4; four of them.
            assert!((890..=1110).contains(&first), "{host}: {first}");
        }
    }

    #[test]
    fn blocks_and_seeds_differ() {
        let cells = cells(&all_settings());
        let orders: BTreeSet<Vec<Cell>> =
            (0..50).flat_map(|number| [1, 2].map(|seed| in_order(&block(seed, number, &cells)))).collect();
        assert_eq!(orders.len(), 100);
    }

    proptest! {
        #[test]
        fn each_cell_comes_once_and_whole_plots_stay_together(
            settings in subsequence(all_settings(), 0..=16), seed: u64, number: u32,
        ) {
            let cells = cells(&settings);
            let plots = block(seed, number, &cells);
            let hosts: BTreeSet<Backing> = plots.iter().map(|plot| plot.host).collect();
            prop_assert_eq!(hosts.len(), plots.len());
            prop_assert!(plots.iter().all(|plot| plot.cells.iter().all(|cell| cell.setting.host == plot.host)));
            let mut seen = in_order(&plots);
            let mut wanted = cells.clone();
            seen.sort_unstable();
            wanted.sort_unstable();
            prop_assert_eq!(seen, wanted);
        }

        #[test]
        fn the_order_of_the_request_does_not_matter(seed: u64, number: u32) {
            let cells = cells(&all_settings());
            let turned: Vec<Cell> = cells.iter().rev().copied().collect();
            prop_assert_eq!(block(seed, number, &cells), block(seed, number, &turned));
        }
    }
}
