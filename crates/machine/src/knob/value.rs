//! What a knob is set to: a count of pages, or a word.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A knob's value, in the journal as the kernel spells it: `16`, or `"madvise"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Pages of a pool.
    Count(u64),
    /// One of the words of a switch; for nested paging the module's parameters, as on a kernel's command line.
    Word(String),
}

impl Value {
    /// Whether a knob at this value does what `want` asked: the same, or all of the parameters asked for among others.
    pub(super) fn fulfils(&self, want: &Value) -> bool {
        match (self, want) {
            (Value::Word(now), Value::Word(want)) => {
                want.split_whitespace().all(|wanted| now.split_whitespace().any(|word| word == wanted))
            }
            (Value::Count(_), _) | (_, Value::Count(_)) => self == want,
        }
    }

    /// Its first word: all that a reader wants to see of a module's parameters.
    pub(super) fn brief(&self) -> String {
        match self {
            Value::Count(count) => count.to_string(),
            Value::Word(words) => words.split_whitespace().next().unwrap_or("nothing").to_owned(),
        }
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Value::Count(count)
    }
}

impl From<&str> for Value {
    fn from(word: &str) -> Self {
        Value::Word(word.to_owned())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(count) => write!(f, "{count}"),
            Value::Word(word) => f.write_str(word),
        }
    }
}
