//! Transparent huge pages of other sizes than 2 MiB (mTHP, Linux 6.8), written `thp-64k`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use vmtax_core::units::{Bytes, KIB, MIB};

/// One size of transparent huge page: a power of two from 8 KiB to 2 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mthp(Bytes);

impl Mthp {
    /// Transparent huge pages of `bytes`, if there are such.
    pub const fn new(bytes: Bytes) -> Option<Mthp> {
        let is_size = bytes.0.is_power_of_two() && bytes.0 >= 8 * KIB && bytes.0 <= 2 * MIB;
        if is_size { Some(Mthp(bytes)) } else { None }
    }

    /// Its size.
    pub const fn bytes(self) -> Bytes {
        self.0
    }
}

impl fmt::Display for Mthp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.0 {
            bytes if bytes >= MIB => write!(f, "thp-{}m", bytes / MIB),
            bytes => write!(f, "thp-{}k", bytes / KIB),
        }
    }
}

impl FromStr for Mthp {
    type Err = String;

    fn from_str(text: &str) -> Result<Mthp, String> {
        let size = text.strip_prefix("thp-").and_then(|size| size.parse().ok()).and_then(Mthp::new);
        size.ok_or_else(|| {
            format!("`{text}` is no size of transparent huge page, such as thp-64k: 8k to 2m, a power of two")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_spelled_as_it_is_read() {
        for text in ["thp-8k", "thp-64k", "thp-1m", "thp-2m"] {
            assert_eq!(text.parse::<Mthp>().unwrap().to_string(), text);
        }
        for text in ["thp", "64k", "thp-4k", "thp-48k", "thp-4m", "thp-"] {
            assert!(text.parse::<Mthp>().is_err(), "{text}");
        }
    }
}
