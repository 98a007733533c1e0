//! Agents that are not what they should be.

use std::{
    io::{Read, Write},
    thread,
    time::Instant,
};

use proptest::{collection::vec, prelude::*};
use vmtax_core::experiment::{Better, Metric};

use super::*;

const PATIENCE: Duration = Duration::from_millis(300);

/// Our end of a conversation with an agent that does as `act` says.
fn with(act: impl FnOnce(UnixStream) + Send + 'static) -> Talk {
    let (ours, theirs) = UnixStream::pair().unwrap();
    thread::spawn(move || act(theirs));
    let console = Console::follow(std::io::Cursor::new(b"its last words\n".to_vec()));
    console.settle();
    Talk::new(ours, Way::VirtioSerial, console)
}

/// What comes of a question to an agent that answers with these bytes, and stays.
fn answered(bytes: Vec<u8>) -> Result<Say, String> {
    let mut talk = with(move |mut stream| {
        let _ = frame::read(&mut stream);
        let _ = stream.write_all(&bytes);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    talk.ask(Ask::Hello, "for its name", PATIENCE).map_err(|error| error.to_string())
}

fn framed(json: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, json.as_bytes()).unwrap();
    bytes
}

#[test]
fn an_answer_in_order_is_heard() {
    assert_eq!(answered(framed(r#"{"id": 1, "say": "bye"}"#)), Ok(Say::Bye));
}

#[test]
fn whatever_else_comes_ends_it_with_a_message() {
    let check = |bytes: Vec<u8>, expected: &str| {
        let error = answered(bytes).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    };
    check(
        framed(r#"{"id": 2, "say": "bye"}"#),
        "the guest broke the protocol: it answered question 2 when asked question 1",
    );
    check(framed("{"), "the guest broke the protocol: an answer of 1 bytes cannot be read: EOF");
    check(
        framed(r#"{"id": 1, "say": "what"}"#),
        "the guest broke the protocol: an answer of 24 bytes cannot be read: ",
    );
    check(framed(&"[".repeat(100_000)), "the guest broke the protocol: an answer of 100000 bytes cannot be read: ");
    check(vec![0xff; 64], "the guest broke the protocol: a frame of 4294967295 bytes was announced");
    check(framed(r#"{"id": 1, "say": {"failed": "no\u001b[2J"}}"#), "in the guest: no [2J");
    // An announced length that does not come, and nothing at all.
    let silence = "the guest did not answer for its name within 0.3 s; the end of its console:\n  | its last words";
    check(1000_u32.to_le_bytes().to_vec(), silence);
    check(Vec::new(), silence);
}

#[test]
fn an_agent_that_hangs_up_has_died() {
    let mut talk = with(|mut stream| drop(frame::read(&mut stream)));
    let error = talk.ask(Ask::Hello, "while it booted", PATIENCE).unwrap_err().to_string();
    assert_eq!(error, "the guest ended while it booted; the end of its console:\n  | its last words");
}

#[test]
fn a_flood_ends_at_the_first_wrong_frame_or_the_deadline() {
    let begun = Instant::now();
    let mut talk = with(|mut stream| while stream.write_all(&[0; 4096]).is_ok() {});
    let error = talk.ask(Ask::Hello, "for its name", PATIENCE).unwrap_err().to_string();
    assert_eq!(
        error,
        "the guest broke the protocol: an answer of 0 bytes cannot be read: EOF while parsing a value at line 1 column 0"
    );
    let mut talk = with(|mut stream| {
        let _ = stream.write_all(&((frame::LIMIT as u32).to_le_bytes()));
        while stream.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(5));
        }
    });
    let error = talk.ask(Ask::Hello, "for its name", PATIENCE).unwrap_err();
    assert!(matches!(error, GuestError::Silent { .. }), "{error}");
    assert!(begun.elapsed() > PATIENCE);
}

fn finding(value: f64, name: &str) -> Finding {
    let metric = Metric { name: name.to_owned(), value, unit: "ns".to_owned(), better: Better::Lower };
    Finding { metrics: vec![metric], ..Finding::default() }
}

#[test]
fn a_finding_that_tables_cannot_hold_is_refused() {
    assert!(checked(finding(1.5, "ns_per_access")).is_ok());
    for bad in [
        finding(0.0, "ns_per_access"),
        finding(-1.0, "ns_per_access"),
        finding(f64::INFINITY, "ns_per_access"),
        finding(1.0, ""),
        finding(1.0, "\u{1b}[2J"),
        finding(1.0, &"x".repeat(65)),
        Finding::default(),
        Finding { caveats: vec!["a\nb".to_owned()], ..finding(1.0, "x") },
    ] {
        assert!(checked(bad.clone()).is_err(), "{bad:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_bytes_end_in_a_message(body in vec(any::<u8>(), 0..200)) {
        let mut bytes = Vec::new();
        frame::write(&mut bytes, &body).unwrap();
        prop_assert!(answered(bytes).is_err());
    }
}
