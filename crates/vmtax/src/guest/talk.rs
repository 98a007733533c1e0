//! The conversation with an agent: one question, one answer, each in its frame and its time.
//!
//! Whatever breaks this order ends it. An answer is checked here, so that what leaves this file can be stored and printed.

use std::{
    io::{self, ErrorKind},
    os::unix::net::UnixStream,
    time::Duration,
};

use vmtax_core::experiment::Finding;

use super::{
    GuestError,
    command::is_ready,
    console::{Console, printable},
    stream::Until,
};
use crate::agent::{
    frame::{self, FrameError},
    message::{Answer, Ask, Request, Say},
    port::{SERIAL_LIMIT, Way},
};

/// Our end of the conversation.
#[derive(Debug)]
pub struct Talk {
    agent: UnixStream,
    way: Way,
    console: Console,
    asked: u64,
}

impl Talk {
    /// With the agent behind this socket; the console is for messages.
    pub fn new(agent: UnixStream, way: Way, console: Console) -> Talk {
        Talk { agent, way, console, asked: 0 }
    }

    /// By what the agent is reached.
    pub fn way(&self) -> Way {
        self.way
    }

    /// The guest's console.
    pub fn console(&self) -> &Console {
        &self.console
    }

    /// Asks, and hears the answer within `patience`. After an error other than [`GuestError::Refused`] the conversation is
    /// out of step, and the guest of no more use.
    pub fn ask(&mut self, ask: Ask, asked: &'static str, patience: Duration) -> Result<Say, GuestError> {
        let id = self.say(ask, asked, patience)?;
        self.hear(id, asked, patience)
    }

    /// Asks, and waits for no answer; the number of the question.
    pub fn say(&mut self, ask: Ask, asked: &'static str, patience: Duration) -> Result<u64, GuestError> {
        self.asked += 1;
        let request = serde_json::to_vec(&Request { id: self.asked, ask }).expect("requests are JSON");
        if self.way == Way::Serial && request.len() > SERIAL_LIMIT {
            let why = format!("its kernel has no virtio-serial, and its serial port takes {SERIAL_LIMIT} at once");
            return Err(GuestError::host(format!("send {} bytes to the guest", request.len()), io::Error::other(why)));
        }
        let mut stream = Until::new(&self.agent, patience);
        let written = frame::write(&mut stream, &request);
        written.map_err(|error| self.broken(error.into(), asked, patience)).map(|()| self.asked)
    }

    /// Whether something was said within `patience`.
    pub fn is_ready(&self, patience: Duration) -> Result<bool, GuestError> {
        is_ready(&self.agent, patience).map_err(|error| GuestError::host("hear the guest", error))
    }

    /// Hears the next answer, which must be one to question `id`.
    pub fn hear(&mut self, id: u64, asked: &'static str, patience: Duration) -> Result<Say, GuestError> {
        let body = match frame::read(&mut Until::new(&self.agent, patience)) {
            Ok(Some(body)) => body,
            Ok(None) => return Err(self.died(asked)),
            Err(error) => return Err(self.broken(error, asked, patience)),
        };
        let answer: Answer = serde_json::from_slice(&body).map_err(|e| {
            GuestError::Protocol(format!("an answer of {} bytes cannot be read: {}", body.len(), shown(&e)))
        })?;
        if answer.id != id {
            return Err(GuestError::Protocol(format!("it answered question {} when asked question {id}", answer.id)));
        }
        match answer.say {
            Say::Failed(why) => Err(GuestError::Refused(printable(&why))),
            say => Ok(say),
        }
    }

    fn broken(&self, error: FrameError, asked: &'static str, after: Duration) -> GuestError {
        match error {
            FrameError::Io(e) if e.kind() == ErrorKind::TimedOut => {
                GuestError::Silent { asked, after, console: self.console.tail() }
            }
            FrameError::Io(_) | FrameError::Cut { .. } => self.died(asked),
            FrameError::TooLong(_) => error.into(),
        }
    }

    fn died(&self, during: &'static str) -> GuestError {
        self.console.settle();
        GuestError::Died { during, console: self.console.tail() }
    }
}

/// An answer to another question.
pub fn unexpected(said: &Say) -> GuestError {
    GuestError::Protocol(format!("it answered another question, with `{}`", said.name()))
}

fn shown(error: &serde_json::Error) -> String {
    printable(&error.to_string())
}

/// A finding that tables can hold: few numbers, all of them numbers, under names that can be printed.
pub fn checked(finding: Finding) -> Result<Finding, GuestError> {
    const FEW: usize = 256;
    let Finding { metrics, evidence, caveats } = &finding;
    let is_name = |name: &String| !name.is_empty() && name.len() <= 64 && *name == printable(name);
    let is_text = |text: &String| *text == printable(text);
    let is_sound = (1..=FEW).contains(&metrics.len())
        && evidence.len() <= FEW
        && caveats.len() <= FEW
        && metrics.iter().all(|m| is_name(&m.name) && is_name(&m.unit) && m.value.is_finite() && m.value > 0.0)
        && evidence.iter().all(|(name, value)| is_name(name) && is_text(value))
        && caveats.iter().all(is_text);
    if is_sound { Ok(finding) } else { Err(GuestError::Protocol("its finding is none".to_owned())) }
}

#[cfg(test)]
mod tests;
