//! Sizes with their units: [`Bytes`] and [`PageSize`], spelled as the command line and the results file spell them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Bytes in a kibibyte.
pub const KIB: u64 = 1 << 10;
/// Bytes in a mebibyte.
pub const MIB: u64 = 1 << 20;
/// Bytes in a gibibyte.
pub const GIB: u64 = 1 << 30;

/// A cache line: the unit in which caches hold memory on every x86-64 processor so far.
pub const LINE: u64 = 64;

/// A number of bytes. Written `512M`, `1G`, `64K` or plain; read back as `512 MiB`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            n if n >= GIB && n % GIB == 0 => (GIB, "GiB"),
            n if n >= MIB && n % MIB == 0 => (MIB, "MiB"),
            n if n >= KIB && n % KIB == 0 => (KIB, "KiB"),
            _ => (1, "B"),
        };
        f.pad(&format!("{} {name}", self.0 / unit))
    }
}

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Not `<number>[K|M|G|T]`.
    #[error("`{0}` is not a size; write a whole number with K, M, G or T, such as 512M")]
    Malformed(String),
    /// More than 2^64 - 1 bytes.
    #[error("`{0}` is more than 16 EiB")]
    TooLarge(String),
}

impl FromStr for Bytes {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let malformed = || SizeError::Malformed(text.to_owned());
        let trimmed = text.trim();
        let digits = trimmed.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = match trimmed[digits.len()..].trim_start().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => KIB,
            "m" | "mib" => MIB,
            "g" | "gib" => GIB,
            "t" | "tib" => 1024 * GIB,
            _ => return Err(malformed()),
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(malformed());
        }
        let too_large = || SizeError::TooLarge(text.to_owned());
        let number: u64 = digits.parse().map_err(|_| too_large())?;
        number.checked_mul(unit).map(Bytes).ok_or_else(too_large)
    }
}

/// The page sizes of x86-64 long mode (Intel SDM vol. 3, 4.5; AMD APM vol. 2, 5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PageSize {
    /// 4 KiB, mapped by a page-table entry.
    #[serde(rename = "4k")]
    Small,
    /// 2 MiB, mapped by a page-directory entry.
    #[serde(rename = "2m")]
    Large,
    /// 1 GiB, mapped by a page-directory-pointer-table entry.
    #[serde(rename = "1g")]
    Giant,
}

impl PageSize {
    /// All of them, smallest first.
    pub const ALL: [PageSize; 3] = [PageSize::Small, PageSize::Large, PageSize::Giant];

    /// The size in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            PageSize::Small => 4 * KIB,
            PageSize::Large => 2 * MIB,
            PageSize::Giant => GIB,
        }
    }

    /// `4k`, `2m` or `1g`: the spelling of the command line and the results file.
    pub const fn name(self) -> &'static str {
        match self {
            PageSize::Small => "4k",
            PageSize::Large => "2m",
            PageSize::Giant => "1g",
        }
    }

    /// The spelling of prose: `4 KiB`, `2 MiB`, `1 GiB`.
    pub const fn prose(self) -> &'static str {
        match self {
            PageSize::Small => "4 KiB",
            PageSize::Large => "2 MiB",
            PageSize::Giant => "1 GiB",
        }
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_unit_and_refused_with_the_reason() {
        let check = |text: &str, expected: Result<u64, &str>| {
            let got = text.parse::<Bytes>().map(|b| b.0).map_err(|e| e.to_string());
            assert_eq!(got, expected.map_err(str::to_owned), "{text}");
        };
        check("1G", Ok(GIB));
        check("512m", Ok(512 * MIB));
        check("64 KiB", Ok(64 * KIB));
        check("4096", Ok(4096));
        check("0", Ok(0));
        check("", Err("`` is not a size; write a whole number with K, M, G or T, such as 512M"));
        check("1.5G", Err("`1.5G` is not a size; write a whole number with K, M, G or T, such as 512M"));
        check("-1M", Err("`-1M` is not a size; write a whole number with K, M, G or T, such as 512M"));
        check("1Q", Err("`1Q` is not a size; write a whole number with K, M, G or T, such as 512M"));
        check("99999999999999G", Err("`99999999999999G` is more than 16 EiB"));
    }

    #[test]
    fn sizes_are_written_in_the_largest_whole_unit() {
        for (bytes, text) in [(GIB, "1 GiB"), (1536 * MIB, "1536 MiB"), (4096, "4 KiB"), (100, "100 B"), (0, "0 B")] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}
