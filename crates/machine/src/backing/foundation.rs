//! What memory is asked to stand on: a backing, or transparent pages of one size.

use std::{fmt, str::FromStr};

use vmtax_core::setting::Backing;

use crate::mthp::Mthp;

/// A backing of the matrix, or one size of transparent huge page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Foundation {
    /// `4k`, `thp`, `2m` or `1g`.
    Backing(Backing),
    /// `thp-64k` and the like. The kernel takes the largest size that is switched on: see [`crate::mthp::isolate`].
    Mthp(Mthp),
}

impl Foundation {
    /// The backing it counts as.
    pub const fn backing(self) -> Backing {
        match self {
            Foundation::Backing(backing) => backing,
            Foundation::Mthp(_) => Backing::Thp,
        }
    }

    /// Bytes of one page, when it is what it says.
    pub const fn page_bytes(self) -> u64 {
        match self {
            Foundation::Backing(backing) => backing.page().bytes(),
            Foundation::Mthp(size) => size.bytes().0,
        }
    }
}

impl From<Backing> for Foundation {
    fn from(backing: Backing) -> Self {
        Foundation::Backing(backing)
    }
}

impl From<Mthp> for Foundation {
    fn from(size: Mthp) -> Self {
        Foundation::Mthp(size)
    }
}

impl fmt::Display for Foundation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Foundation::Backing(backing) => backing.fmt(f),
            Foundation::Mthp(size) => f.pad(&size.to_string()),
        }
    }
}

impl FromStr for Foundation {
    type Err = String;

    fn from_str(text: &str) -> Result<Foundation, String> {
        match Backing::ALL.into_iter().find(|backing| backing.name() == text) {
            Some(backing) => Ok(Foundation::Backing(backing)),
            None => text.parse().map(Foundation::Mthp),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_foundation_is_spelled_as_it_is_read() {
        for text in ["4k", "thp", "2m", "1g", "thp-16k", "thp-1m"] {
            assert_eq!(text.parse::<Foundation>().unwrap().to_string(), text);
        }
    }
}
