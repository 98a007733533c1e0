//! Lines from a socket, of bounded length: QMP and the keeper speak in lines of JSON.

use std::io::{self, Read};

/// Bytes in a line at most. The longest here are the counters of many vCPUs, 3 KiB each.
const LONGEST: usize = 4 << 20;

/// What came and is not yet a line.
#[derive(Debug, Default)]
pub struct Lines {
    pending: Vec<u8>,
}

impl Lines {
    /// The next line from `stream`, without its end; none where the stream ends.
    pub fn next(&mut self, stream: &mut impl Read) -> io::Result<Option<String>> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.pending[searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=searched + end).collect();
                return Ok(Some(String::from_utf8_lossy(line.trim_ascii()).into_owned()));
            }
            searched = self.pending.len();
            if searched > LONGEST {
                return Err(io::Error::other(format!("a line of more than {LONGEST} bytes")));
            }
            let mut buffer = [0; 8192];
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(got) => self.pending.extend(&buffer[..got]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one() {
        let mut stream = &b"one\r\ntwo\n\nrest"[..];
        let mut lines = Lines::default();
        let read: Vec<String> = std::iter::from_fn(|| lines.next(&mut stream).unwrap()).collect();
        assert_eq!(read, ["one", "two", ""]);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let error = Lines::default().next(&mut io::repeat(b'x')).unwrap_err();
        assert!(error.to_string().starts_with("a line of more than"));
    }
}
