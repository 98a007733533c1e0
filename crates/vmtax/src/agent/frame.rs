//! Frames: a length in four bytes, little-endian, and so many bytes.
//!
//! Nothing that arrives is trusted. A length beyond [`LIMIT`] is refused before anything is read for it, and a length that
//! is a lie takes no more memory than twice what really arrived (and 64 KiB): the buffer grows with it. Deadlines are the
//! stream's business: a read that times out is an error of that read.

use std::io::{self, ErrorKind, Read, Write};

/// Bytes in a frame at most. Findings and facts take some KiB.
pub const LIMIT: usize = 16 << 20;
/// The least by which the buffer grows.
const STEP: usize = 64 << 10;

/// Why there is no frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// It says to be larger than any frame.
    #[error("a frame of {0} bytes was announced, and no frame has more than {LIMIT}")]
    TooLong(usize),
    /// The stream ended within it.
    #[error("the stream ended {got} bytes into a frame of {announced}")]
    Cut {
        /// Bytes that came.
        got: usize,
        /// Bytes that were announced; 4 for the length itself.
        announced: usize,
    },
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The next frame; none where the stream ends before it begins.
pub fn read(stream: &mut impl Read) -> Result<Option<Vec<u8>>, FrameError> {
    let mut length = [0; 4];
    match fill(stream, &mut length)? {
        0 => return Ok(None),
        4 => {}
        got => return Err(FrameError::Cut { got, announced: 4 }),
    }
    let announced = u32::from_le_bytes(length) as usize;
    if announced > LIMIT {
        return Err(FrameError::TooLong(announced));
    }
    let mut body = Vec::new();
    while body.len() < announced {
        let have = body.len();
        let want = announced.min(have + have.max(STEP));
        body.reserve_exact(want - have);
        body.resize(want, 0);
        let got = fill(stream, &mut body[have..])?;
        if have + got < want {
            return Err(FrameError::Cut { got: have + got, announced });
        }
    }
    Ok(Some(body))
}

/// Writes a frame, in one piece.
pub fn write(stream: &mut impl Write, body: &[u8]) -> io::Result<()> {
    if body.len() > LIMIT {
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("{} bytes are no frame", body.len())));
    }
    let mut frame = Vec::with_capacity(4 + body.len());
    frame.extend((body.len() as u32).to_le_bytes());
    frame.extend(body);
    stream.write_all(&frame)?;
    stream.flush()
}

/// As many bytes as there are, until `buffer` is full.
fn fill(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match stream.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests;
