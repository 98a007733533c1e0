//! The end of what a stream said: a guest's console, QEMU's standard error. A thread reads along; at most 64 KiB are kept, however
//! much comes.

use std::{
    collections::VecDeque,
    io::Read,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::error::Tail;

/// Bytes that are kept.
const KEPT: usize = 64 << 10;
/// Lines that are shown, and characters of each.
const LINES: usize = 12;
const WIDTH: usize = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// A stream that is read along.
#[derive(Debug, Clone, Default)]
pub struct Console(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    end: VecDeque<u8>,
    has_ended: bool,
}

impl Console {
    /// Reads `stream` to its end in a thread of its own.
    pub fn follow(mut stream: impl Read + Send + 'static) -> Console {
        let console = Console::default();
        let ours = console.clone();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(got @ 1..) = stream.read(&mut buffer) {
                ours.keep(&buffer[..got]);
            }
            ours.state(|state| state.has_ended = true);
        });
        console
    }

    /// Whether anything came.
    pub fn has_spoken(&self) -> bool {
        self.state(|state| !state.end.is_empty())
    }

    /// Waits until the stream has ended, so that the tail is the tail; not long, for a guest may hold it open.
    pub fn settle(&self) {
        let begun = Instant::now();
        while !self.state(|state| state.has_ended) && begun.elapsed() < Duration::from_secs(1) {
            thread::sleep(PAUSE);
        }
    }

    /// The last lines, printable. What follows a panic of the kernel is its stack, which says less than what led to it.
    pub fn tail(&self) -> Tail {
        let text = self.text();
        let mut lines: Vec<String> = text.lines().map(printable).filter(|line| !line.is_empty()).collect();
        if let Some(panic) = lines.iter().position(|line| line.contains("Kernel panic")) {
            lines.truncate(panic + 1);
        }
        Tail(lines.split_off(lines.len().saturating_sub(LINES)))
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.state(|state| state.end.iter().copied().collect());
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn keep(&self, bytes: &[u8]) {
        self.state(|state| {
            state.end.extend(bytes);
            let surplus = state.end.len().saturating_sub(KEPT);
            state.end.drain(..surplus);
        });
    }

    fn state<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        // Bytes in any order are still bytes.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A line that a guest wrote, without what a terminal would obey, and not endless.
pub fn printable(line: &str) -> String {
    let mut text: String = line.trim_end().chars().take(WIDTH).map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(bytes: Vec<u8>) -> Console {
        let console = Console::follow(std::io::Cursor::new(bytes));
        console.settle();
        console
    }

    #[test]
    fn the_last_lines_are_kept_and_no_more_than_64_kib() {
        let text: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        let console = followed(text.into_bytes());
        let Tail(lines) = console.tail();
        assert_eq!(lines.len(), LINES);
        assert_eq!(lines[LINES - 1], "line 19999");
        assert_eq!(console.text().len(), KEPT);
    }

    #[test]
    fn a_panic_is_the_end() {
        let console = followed(b"reason\nKernel panic - not syncing\nCall Trace:\n panic+0x1\n".to_vec());
        assert_eq!(console.tail(), Tail(vec!["reason".to_owned(), "Kernel panic - not syncing".to_owned()]));
    }

    #[test]
    fn what_a_terminal_would_obey_is_not_shown() {
        let console = followed(b"\x1b[2J\x1b]0;title\x07panic\r\n\n\xff\n".to_vec());
        assert_eq!(console.tail(), Tail(vec![" [2J ]0;title panic".to_owned(), "\u{fffd}".to_owned()]));
        assert!(console.has_spoken());
    }

    #[test]
    fn silence_is_no_sign() {
        assert!(!followed(Vec::new()).has_spoken());
    }
}
