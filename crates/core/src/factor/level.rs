//! Levels: what a factor can be set to, and the grammar in which a plan writes it.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::units::{Bytes, GIB, KIB, MIB};

/// One value of a factor.
///
/// Written as a plan writes it, in one spelling each: `2m`, `128M`, `64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// One of the factor's words, or a text of the plan's author.
    Word(&'static str),
    /// A number of bytes.
    Size(Bytes),
    /// A number of things.
    Count(u64),
    /// A share of something, in hundredths of a per cent.
    Share(u32),
}

/// How the levels of a factor, or the values of a parameter, are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammar {
    /// One of these words.
    Words(&'static [&'static str]),
    /// `on` or `off`; a plan may also write `true` or `false`.
    Switch,
    /// A size such as `64`, `4K` or `128M`, at least this.
    Size(Bytes),
    /// A whole number, both ends included.
    Count(u64, u64),
    /// A share such as `50%` or `6.25%`, at most this many per cent.
    Share(u32),
    /// A text of the author's own, such as the path of a program.
    Text,
}

/// Characters of a text at most.
const LONGEST: usize = 200;

/// What would have been accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{accepted}")]
pub struct LevelError {
    /// In words.
    pub accepted: String,
    /// Names among which the nearest may be the one that was meant.
    pub names: &'static [&'static str],
}

const SWITCH: &[&str] = &["on", "off"];

impl Grammar {
    /// Reads a level.
    pub fn parse(&self, text: &str) -> Result<Level, LevelError> {
        match self {
            Grammar::Words(_) | Grammar::Switch => {
                self.words().iter().find(|word| **word == text).map(|word| Level::Word(word))
            }
            Grammar::Size(least) => text.parse().ok().filter(|size: &Bytes| size >= least).map(Level::Size),
            Grammar::Count(least, most) => text.parse().ok().filter(|n| (least..=most).contains(&n)).map(Level::Count),
            Grammar::Share(most) => share(text).filter(|share| *share <= most * 100).map(Level::Share),
            // Plans are few and small, and a level that can be copied is worth their texts.
            Grammar::Text => is_text(text).then(|| Level::Word(text.to_owned().leak())),
        }
        .ok_or_else(|| LevelError { accepted: self.accepted(), names: self.words() })
    }

    /// What is accepted, in words.
    pub fn accepted(&self) -> String {
        match self {
            Grammar::Words(_) | Grammar::Switch => format!("levels are: {}", self.words().join(", ")),
            Grammar::Size(least) => format!("a size of at least {least}, such as 64 or 4K"),
            Grammar::Count(least, most) => format!("a whole number from {least} to {most}"),
            Grammar::Share(most) => format!("a share from \"0%\" to \"{most}%\""),
            Grammar::Text => format!("a text of 1 to {LONGEST} characters"),
        }
    }

    /// Whether `level` can be written in this grammar.
    pub fn admits(&self, level: Level) -> bool {
        self.parse(&level.to_string()) == Ok(level)
    }

    fn words(&self) -> &'static [&'static str] {
        match self {
            Grammar::Words(words) => words,
            Grammar::Switch => SWITCH,
            Grammar::Size(_) | Grammar::Count(..) | Grammar::Share(_) | Grammar::Text => &[],
        }
    }
}

impl Level {
    /// The word, if it is one.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Level::Word(word) => Some(word),
            Level::Size(_) | Level::Count(_) | Level::Share(_) => None,
        }
    }

    /// The number of bytes, if it is one.
    pub fn size(self) -> Option<Bytes> {
        match self {
            Level::Size(size) => Some(size),
            Level::Word(_) | Level::Count(_) | Level::Share(_) => None,
        }
    }

    /// The number, if it is one.
    pub fn count(self) -> Option<u64> {
        match self {
            Level::Count(n) => Some(n),
            Level::Word(_) | Level::Size(_) | Level::Share(_) => None,
        }
    }

    /// The share as a fraction, if it is one.
    pub fn share(self) -> Option<f64> {
        match self {
            Level::Share(share) => Some(f64::from(share) / 1e4),
            Level::Word(_) | Level::Size(_) | Level::Count(_) => None,
        }
    }
}

fn is_text(text: &str) -> bool {
    (1..=LONGEST).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// `6.25%`, to the hundredth of a per cent.
fn share(text: &str) -> Option<u32> {
    let percent: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    (0.0..=100.0).contains(&percent).then(|| (percent * 100.0).round() as u32)
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Level::Word(word) => word.to_owned(),
            Level::Count(n) => n.to_string(),
            Level::Share(n) => format!("{}%", f64::from(n) / 100.0),
            Level::Size(Bytes(n)) => match n {
                n if n >= GIB && n % GIB == 0 => format!("{}G", n / GIB),
                n if n >= MIB && n % MIB == 0 => format!("{}M", n / MIB),
                n if n >= KIB && n % KIB == 0 => format!("{}K", n / KIB),
                n => n.to_string(),
            },
        };
        f.pad(&text)
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
