//! What else happened on the machine during a trial: time stolen from it, and a change of its clock frequency.

use std::{fs, time::Instant};

use crate::clock::cycles_per_tick;

/// A reading before a trial, to be closed after it.
#[derive(Debug)]
pub struct Watch {
    cycles_per_tick: f64,
    stolen: Option<u64>,
    started: Instant,
}

/// What was seen between.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Share of the time of the busy CPUs that the hypervisor below gave to others, 0 to 1.
    pub steal: f64,
    /// What one tick of the kernel's account is as such a share: steal is known to within it.
    pub steal_resolution: f64,
    /// Clock frequency after over before, minus one.
    pub frequency_change: f64,
}

impl Watch {
    /// Begins to watch.
    pub fn start() -> Self {
        Watch { cycles_per_tick: cycles_per_tick(), stolen: stolen_ticks(), started: Instant::now() }
    }

    /// Ends it. `lanes` is the number of CPUs the trial kept busy.
    pub fn end(self, lanes: usize) -> Seen {
        let busy = self.started.elapsed().as_secs_f64() * lanes as f64;
        let stolen = match (self.stolen, stolen_ticks()) {
            (Some(before), Some(after)) => after.saturating_sub(before) as f64 / clock_ticks_per_second(),
            _ => 0.0,
        };
        let frequency_change = cycles_per_tick() / self.cycles_per_tick - 1.0;
        let steal_resolution = 1.0 / clock_ticks_per_second() / busy;
        Seen { steal: (stolen / busy).min(1.0), steal_resolution, frequency_change }
    }
}

/// `steal` of all CPUs in `/proc/stat`, in clock ticks; none where there is no such file.
fn stolen_ticks() -> Option<u64> {
    steal_of(&fs::read_to_string("/proc/stat").ok()?)
}

/// The eighth figure of the first line (`Documentation/filesystems/proc.rst`, 1.7).
fn steal_of(stat: &str) -> Option<u64> {
    stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().nth(7)?.parse().ok()
}

fn clock_ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_figure_of_the_first_line() {
        assert_eq!(steal_of("cpu  2371 0 2164 56056 402 0 146 879 0 0\ncpu0 1 2 3"), Some(879));
        assert_eq!(steal_of("cpu  2371 0 2164 56056"), None);
        assert_eq!(steal_of(""), None);
    }
}
