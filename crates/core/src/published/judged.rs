//! What became of a statement.

use serde::Serialize;

/// A statement, beside ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// [`Statement::id`](super::Statement::id).
    pub id: String,
    /// The statement.
    pub says: String,
    /// Our figure with its interval, in words; empty where there is none.
    pub here: String,
    /// What is to be thought of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What a published statement is worth here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Our data agree with it, with all of their interval.
    Confirmed,
    /// They disagree, with all of it.
    Contradicted,
    /// They agree with it and with its opposite.
    Undecided {
        /// What it would take.
        reason: String,
    },
    /// There are none.
    NotTested {
        /// Why.
        reason: String,
    },
}

impl Verdict {
    /// `confirmed`, `contradicted`, `undecided` or `not tested here`.
    pub const fn word(&self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed",
            Verdict::Contradicted => "contradicted",
            Verdict::Undecided { .. } => "undecided",
            Verdict::NotTested { .. } => "not tested here",
        }
    }

    /// Why there is no verdict, where there is none.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Confirmed | Verdict::Contradicted => None,
            Verdict::Undecided { reason } | Verdict::NotTested { reason } => Some(reason),
        }
    }

    pub(super) fn undecided(reason: impl Into<String>) -> Verdict {
        Verdict::Undecided { reason: reason.into() }
    }
}
