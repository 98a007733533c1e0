//! From TSC ticks to nanoseconds, and how fast the core runs meanwhile.

use core::arch::{asm, x86_64::_rdtsc};
use std::time::{Duration, Instant};

/// The rate of the time-stamp counter against the monotonic clock, known better the longer it runs.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: (Instant, u64),
}

impl Default for Clock {
    fn default() -> Self {
        Clock { started: paired_reading() }
    }
}

impl Clock {
    /// Nanoseconds a tick. Waits until at least 20 ms lie between the readings: a reading is good to well under a
    /// microsecond, so the rate is to 1 in 20,000.
    pub fn ns_per_tick(&self) -> f64 {
        let baseline = Duration::from_millis(20);
        if let Some(wait) = baseline.checked_sub(self.started.0.elapsed()) {
            std::thread::sleep(wait);
        }
        let (now, tsc) = paired_reading();
        (now - self.started.0).as_nanos() as f64 / (tsc - self.started.1) as f64
    }
}

/// Both clocks at one moment: of several readings the one that took least time, as the others were interrupted.
fn paired_reading() -> (Instant, u64) {
    (0..16)
        .map(|_| {
            // SAFETY: RDTSC reads a counter; Linux leaves it open to user programs unless asked not to.
            let before = unsafe { _rdtsc() };
            let now = Instant::now();
            // SAFETY: as above.
            let after = unsafe { _rdtsc() };
            (after - before, (now, before + (after - before) / 2))
        })
        .min_by_key(|(width, _)| *width)
        .expect("sixteen readings")
        .1
}

/// The clock frequency of the core this thread runs on, in cycles a TSC tick: a chain of dependent additions takes one
/// cycle each on every x86-64 processor. The best of several, as interruptions only ever make it slower. About 0.2 ms.
pub fn cycles_per_tick() -> f64 {
    const ADDITIONS: u64 = 32 * 1024;
    (0..8)
        .map(|_| {
            // SAFETY: as above.
            let before = unsafe { _rdtsc() };
            // SAFETY: additions in registers.
            unsafe {
                asm!(
                    "2:", ".rept 16", "add {x}, {y}", ".endr", "dec {n}", "jnz 2b",
                    x = inout(reg) 0u64 => _,
                    y = in(reg) 1u64,
                    n = inout(reg) ADDITIONS / 16 => _,
                    options(nomem, nostack),
                );
            }
            // SAFETY: as above.
            let after = unsafe { _rdtsc() };
            ADDITIONS as f64 / (after - before) as f64
        })
        .fold(0.0, f64::max)
}
