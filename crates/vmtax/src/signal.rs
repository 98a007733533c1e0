//! Signals that end a run: the first is noted and the run ends in good order, a second SIGINT ends it at once (the guardian
//! then puts the host back).

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};

/// What has arrived.
#[derive(Debug, Clone)]
pub struct Signals {
    stop: Arc<AtomicBool>,
    number: Arc<AtomicUsize>,
}

impl Signals {
    /// Takes over SIGINT, SIGTERM and SIGHUP (the terminal closed) of this process.
    pub fn catch() -> io::Result<Self> {
        let signals = Signals { stop: Arc::default(), number: Arc::default() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal == SIGINT {
                flag::register_conditional_shutdown(signal, 128 + signal, signals.stop.clone())?;
            }
            flag::register(signal, signals.stop.clone())?;
            flag::register_usize(signal, signals.number.clone(), signal as usize)?;
        }
        Ok(signals)
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
