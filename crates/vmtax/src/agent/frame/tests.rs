use proptest::{collection::vec, prelude::*};

use super::*;

/// Gives its bytes in pieces of any size, as a stream may.
struct Pieces<'a> {
    bytes: &'a [u8],
    sizes: std::iter::Cycle<std::slice::Iter<'a, usize>>,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes.next().copied().unwrap_or(1).min(buffer.len()).min(self.bytes.len());
        buffer[..size].copy_from_slice(&self.bytes[..size]);
        self.bytes = &self.bytes[size..];
        Ok(size)
    }
}

fn any_length() -> impl Strategy<Value = u32> {
    prop_oneof![0..64_u32, Just(LIMIT as u32), Just(LIMIT as u32 + 1), any::<u32>()]
}

proptest! {
    #[test]
    fn what_was_written_is_read(bodies in vec(vec(any::<u8>(), 0..300), 0..5), sizes in vec(1..90_usize, 1..9)) {
        let mut bytes = Vec::new();
        for body in &bodies {
            write(&mut bytes, body).unwrap();
        }
        let mut stream = Pieces { bytes: &bytes, sizes: sizes.iter().cycle() };
        for body in bodies {
            prop_assert_eq!(read(&mut stream).unwrap(), Some(body));
        }
        prop_assert!(read(&mut stream).unwrap().is_none());
    }

    #[test]
    fn any_bytes_end_and_take_no_more_memory_than_came(length in any_length(), rest in vec(any::<u8>(), 0..70_000)) {
        let bytes = [&length.to_le_bytes()[..], &rest].concat();
        let mut stream = bytes.as_slice();
        match read(&mut stream) {
            Ok(body) => {
                let body = body.unwrap();
                prop_assert_eq!(&body[..], &rest[..length as usize]);
                prop_assert!(body.capacity() <= 2 * rest.len() + STEP);
            }
            Err(FrameError::TooLong(n)) => prop_assert!(n == length as usize && n > LIMIT),
            Err(FrameError::Cut { got, announced }) => {
                prop_assert_eq!((got, announced), (rest.len(), length as usize));
            }
            Err(FrameError::Io(e)) => panic!("{e}"),
        }
    }

    #[test]
    fn a_stream_of_any_bytes_ends(bytes in vec(any::<u8>(), 0..500), sizes in vec(1..9_usize, 1..4)) {
        let mut stream = Pieces { bytes: &bytes, sizes: sizes.iter().cycle() };
        let frames = std::iter::from_fn(|| read(&mut stream).ok().flatten()).count();
        prop_assert!(frames <= bytes.len() / 4);
    }
}

#[test]
fn a_cut_length_is_told_from_an_end() {
    assert!(read(&mut &b""[..]).unwrap().is_none());
    let error = read(&mut &b"\x01\0"[..]).unwrap_err();
    assert_eq!(error.to_string(), "the stream ended 2 bytes into a frame of 4");
}

#[test]
fn a_frame_too_long_is_not_written() {
    let mut bytes = Vec::new();
    assert!(write(&mut bytes, &vec![0; LIMIT + 1]).is_err());
    assert!(bytes.is_empty());
}
