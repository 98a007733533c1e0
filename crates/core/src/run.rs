//! A run as it is kept: all that tables, exports and explanations are derived from.

use serde::{Deserialize, Serialize};

use crate::{
    analysis::{AnalysisError, Summary},
    host::Host,
    request::Request,
    trial::{Trial, Unavailable},
};

/// A run of `vmtax matrix`, as read from a results file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its name.
    pub id: String,
    /// When it began: UTC, ISO 8601.
    pub started: String,
    /// What was asked for.
    pub request: Request,
    /// What the host is.
    pub host: Host,
    /// How it ended; none when it did not live to say.
    pub ending: Option<Ending>,
    /// How long it took.
    pub seconds: Option<f64>,
    /// What was measured, in order of time.
    pub trials: Vec<Trial>,
    /// What could not be.
    pub unavailable: Vec<Unavailable>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// As planned.
    Done,
    /// The user stopped it; what was measured is kept.
    Interrupted,
    /// An error stopped it.
    Failed,
}

impl Ending {
    /// All of them.
    pub const ALL: [Ending; 3] = [Ending::Done, Ending::Interrupted, Ending::Failed];

    /// `done`, `interrupted` or `failed`.
    pub const fn name(self) -> &'static str {
        match self {
            Ending::Done => "done",
            Ending::Interrupted => "interrupted",
            Ending::Failed => "failed",
        }
    }
}

impl Run {
    /// What it says.
    pub fn summary(&self) -> Result<Summary, AnalysisError> {
        Summary::of(&self.request.settings, &self.unavailable, &self.trials)
    }
}
