//! QMP, QEMU's protocol for those who manage it (docs/interop/qmp-spec): a line of JSON each way, events in between.
//!
//! A crate of generated types for all of QMP costs more build time than the four questions asked here.

use std::{
    io::{self, ErrorKind, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use serde_json::{Value, json};

use super::{GuestError, line::Lines, stream::Until};

/// How long QEMU may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A conversation with QEMU.
#[derive(Debug)]
pub struct Qmp {
    stream: UnixStream,
    lines: Lines,
}

impl Qmp {
    /// Waits for the greeting, which comes when the machine is made, and ends the negotiation. None where QEMU hangs up first.
    pub fn greet(stream: UnixStream, patience: Duration) -> Result<Option<Qmp>, GuestError> {
        let mut qmp = Qmp { stream, lines: Lines::default() };
        let Some(greeting) = qmp.hear(patience)? else { return Ok(None) };
        if greeting.get("QMP").is_none() {
            return Err(broken(&greeting));
        }
        let negotiated = qmp.say("qmp_capabilities", json!({}))?;
        Ok(negotiated.map(|_| qmp))
    }

    /// What a command without arguments returns.
    pub fn ask(&mut self, command: &str) -> Result<Value, GuestError> {
        self.ask_with(command, json!({}))
    }

    /// What a command returns.
    pub fn ask_with(&mut self, command: &str, arguments: Value) -> Result<Value, GuestError> {
        let gone = || GuestError::host(format!("ask QEMU ({command})"), ErrorKind::UnexpectedEof.into());
        self.say(command, arguments)?.ok_or_else(gone)
    }

    /// As [`Qmp::ask_with`]; none where QEMU hangs up.
    fn say(&mut self, command: &str, arguments: Value) -> Result<Option<Value>, GuestError> {
        let failed = |e| GuestError::host(format!("ask QEMU ({command})"), e);
        let line = format!("{}\n", json!({ "execute": command, "arguments": arguments }));
        match Until::new(&self.stream, PATIENCE).write_all(line.as_bytes()) {
            Err(e) if e.kind() == ErrorKind::BrokenPipe => return Ok(None),
            written => written.map_err(failed)?,
        }
        loop {
            let Some(mut said) = self.hear(PATIENCE)? else { return Ok(None) };
            if let Some(answer) = said.get_mut("return") {
                return Ok(Some(answer.take()));
            }
            if let Some(error) = said.pointer("/error/desc").and_then(Value::as_str) {
                return Err(failed(io::Error::other(error.to_owned())));
            }
            if said.get("event").is_none() {
                return Err(broken(&said));
            }
        }
    }

    fn hear(&mut self, patience: Duration) -> Result<Option<Value>, GuestError> {
        let failed = |e| GuestError::host("hear from QEMU", e);
        let line = match self.lines.next(&mut Until::new(&self.stream, patience)) {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(None),
            // So ends a QEMU that dies with a question unread.
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(e) => return Err(failed(e)),
        };
        serde_json::from_str(&line).map(Some).map_err(|e| failed(e.into()))
    }
}

fn broken(said: &Value) -> GuestError {
    let said: String = said.to_string().chars().take(100).collect();
    GuestError::host("talk to QEMU", io::Error::other(format!("it said {said}")))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        thread,
    };

    use super::*;

    /// A QEMU that greets, and answers line by line.
    fn scripted(lines: &'static [&'static str]) -> UnixStream {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        thread::spawn(move || {
            let mut asked = BufReader::new(theirs.try_clone().unwrap()).lines();
            for line in lines {
                writeln!(theirs, "{line}").unwrap();
                asked.next();
            }
        });
        ours
    }

    #[test]
    fn events_are_passed_over() {
        let stream = scripted(&[
            r#"{"QMP": {"version": {}}}"#,
            r#"{"return": {}}"#,
            "{\"event\": \"RESUME\"}\n{\"return\": {\"enabled\": false}}",
        ]);
        let mut qmp = Qmp::greet(stream, PATIENCE).unwrap().unwrap();
        assert_eq!(qmp.ask("query-kvm").unwrap()["enabled"], false);
    }

    #[test]
    fn what_qemu_refuses_is_told_in_its_words() {
        let stream = scripted(&[
            r#"{"QMP": {}}"#,
            r#"{"return": {}}"#,
            r#"{"error": {"class": "CommandNotFound", "desc": "The command query-stats has not been found"}}"#,
        ]);
        let error = Qmp::greet(stream, PATIENCE).unwrap().unwrap().ask("query-stats").unwrap_err();
        assert_eq!(error.to_string(), "cannot ask QEMU (query-stats)");
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(source, "The command query-stats has not been found");
    }

    #[test]
    fn a_qemu_that_hangs_up_has_no_greeting() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        assert!(Qmp::greet(ours, PATIENCE).unwrap().is_none());
    }
}
