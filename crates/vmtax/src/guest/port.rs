//! Meeting the agent at one of two ports: virtio-serial, or the serial port of a guest that has no virtio.
//!
//! Nobody knows before which it will be. By virtio-serial the first question waits until the agent reads it; by the serial
//! port it would be lost, so there the agent greets.

use std::{
    io::{ErrorKind, Read},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use super::{GuestError, command::is_ready, console::Console, talk::Talk};
use crate::agent::{
    message::{Ask, Say},
    port::{GREETING, Way},
};

/// How often the serial port is looked at.
const GLANCE: Duration = Duration::from_millis(20);
/// What an agent that is not met was asked.
const ASKED: &str = "while it booted";

/// The conversation by the port at which the agent is, and its answer to the first question.
pub fn meet(
    virtio: UnixStream,
    serial: UnixStream,
    console: Console,
    patience: Duration,
) -> Result<(Talk, Say), GuestError> {
    let begun = Instant::now();
    let left = || patience.saturating_sub(begun.elapsed());
    let mut talk = Talk::new(virtio, Way::VirtioSerial, console.clone());
    let id = talk.say(Ask::Hello, ASKED, patience)?;
    let mut greeting = Greeting::default();
    while !talk.is_ready(GLANCE)? {
        if greeting.is_heard(&serial).map_err(|e| GuestError::host("hear the guest", e))? {
            let mut talk = Talk::new(serial, Way::Serial, console);
            let said = talk.ask(Ask::Hello, ASKED, left())?;
            return Ok((talk, said));
        }
        if left().is_zero() {
            return Err(GuestError::Silent { asked: ASKED, after: patience, console: console.tail() });
        }
    }
    let said = talk.hear(id, ASKED, left())?;
    Ok((talk, said))
}

/// The end of what came by the serial port: before the greeting may stand whatever firmware and kernel wrote.
#[derive(Debug, Default)]
struct Greeting(Vec<u8>);

impl Greeting {
    fn is_heard(&mut self, mut serial: &UnixStream) -> std::io::Result<bool> {
        if !is_ready(serial, Duration::from_millis(1))? {
            return Ok(false);
        }
        let mut buffer = [0; 256];
        match serial.read(&mut buffer) {
            // QEMU is gone; the other port tells it.
            Ok(0) => return Ok(false),
            Ok(got) => self.0.extend(&buffer[..got]),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return Ok(false),
            Err(e) => return Err(e),
        }
        let surplus = self.0.len().saturating_sub(GREETING.len());
        self.0.drain(..surplus);
        Ok(self.0 == GREETING)
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, thread};

    use super::*;
    use crate::agent::{
        frame,
        message::{Answer, Request},
    };

    const PATIENCE: Duration = Duration::from_secs(20);

    /// An agent at this end, after it wrote this.
    fn agent(mut port: UnixStream, first: &'static [u8]) -> thread::JoinHandle<()> {
        thread::spawn(move || {
            for byte in first {
                port.write_all(&[*byte]).unwrap();
            }
            let request: Request = serde_json::from_slice(&frame::read(&mut port).unwrap().unwrap()).unwrap();
            let answer = Answer { id: request.id, say: Say::Bye };
            frame::write(&mut port, &serde_json::to_vec(&answer).unwrap()).unwrap();
        })
    }

    fn met(virtio: UnixStream, serial: UnixStream) -> Way {
        let (talk, said) = meet(virtio, serial, Console::default(), PATIENCE).unwrap();
        assert_eq!(said, Say::Bye);
        talk.way()
    }

    #[test]
    fn the_agent_is_met_where_it_is() {
        let (virtio, theirs) = UnixStream::pair().unwrap();
        let (serial, _silent) = UnixStream::pair().unwrap();
        let answering = agent(theirs, b"");
        assert_eq!(met(virtio, serial), Way::VirtioSerial);
        answering.join().unwrap();

        let (virtio, _silent) = UnixStream::pair().unwrap();
        let (serial, theirs) = UnixStream::pair().unwrap();
        let answering = agent(theirs, b"noise of firmware\r\n\0vmtax\0vmtax.agent\n");
        assert_eq!(met(virtio, serial), Way::Serial);
        answering.join().unwrap();
    }

    #[test]
    fn an_agent_at_neither_port_is_silent_and_one_that_is_gone_has_died() {
        let (virtio, _silent) = UnixStream::pair().unwrap();
        let (serial, mut noisy) = UnixStream::pair().unwrap();
        noisy.write_all(b"no greeting").unwrap();
        let error = meet(virtio, serial, Console::default(), Duration::from_millis(200)).unwrap_err();
        assert!(matches!(error, GuestError::Silent { .. }), "{error}");

        let (virtio, gone) = UnixStream::pair().unwrap();
        let (serial, gone_too) = UnixStream::pair().unwrap();
        drop((gone, gone_too));
        let error = meet(virtio, serial, Console::default(), PATIENCE).unwrap_err();
        assert!(matches!(error, GuestError::Died { .. }), "{error}");
    }

    #[test]
    fn a_serial_port_takes_no_more_at_once_than_its_buffer_holds() {
        let (serial, _theirs) = UnixStream::pair().unwrap();
        let mut talk = Talk::new(serial, Way::Serial, Console::default());
        let contents = crate::agent::blob::Blob(vec![0; 64 << 10]);
        let error = talk.say(Ask::Write { path: "/a".to_owned(), contents }, "to write a file", PATIENCE).unwrap_err();
        assert!(error.to_string().starts_with("cannot send 87"), "{error}");
    }
}
