//! Signals that end a run: the first is noted and the run ends in good order, a second SIGINT ends it at once (the guardian
//! then puts the host back).

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator, low_level,
};
use vmtax_machine::kick;

/// How often vCPUs are called out of their guests once a signal has arrived: a single call may come just before one enters.
const AGAIN: Duration = Duration::from_millis(50);

/// What has arrived.
#[derive(Debug, Clone)]
pub struct Signals {
    stop: Arc<AtomicBool>,
    number: Arc<AtomicUsize>,
}

impl Signals {
    /// Takes over SIGINT, SIGTERM and SIGHUP (the terminal closed) of this process. A thread of its own sleeps until one comes.
    pub fn catch() -> io::Result<Self> {
        let signals = Signals { stop: Arc::default(), number: Arc::default() };
        let mut arriving = iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let noted = signals.clone();
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in arriving.forever() {
                match noted.note(signal) {
                    Arrival::First => drop(thread::spawn(call_out)),
                    Arrival::Another if signal == SIGINT => low_level::exit(128 + signal),
                    Arrival::Another => {}
                }
            }
        })?;
        Ok(signals)
    }

    fn note(&self, signal: i32) -> Arrival {
        if self.stop.load(Ordering::Relaxed) {
            return Arrival::Another;
        }
        // The number first: who sees the stop sees the number.
        self.number.store(signal as usize, Ordering::Relaxed);
        self.stop.store(true, Ordering::Release);
        Arrival::First
    }

    /// True once one has arrived.
    pub fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// The exit code it asks for: 128 and its number.
    pub fn exit_code(&self) -> Option<u8> {
        match self.number.load(Ordering::Relaxed) {
            0 => None,
            number => Some(128 + number as u8),
        }
    }
}

enum Arrival {
    First,
    Another,
}

/// Calls vCPUs out of their guests until the process ends.
fn call_out() {
    loop {
        kick::all();
        thread::sleep(AGAIN);
    }
}
