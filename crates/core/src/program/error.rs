//! Why a program is not run, or its output not used.

/// Why a program cannot be run with these parameters; says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(pub String);

/// Why an output cannot be used. Each shows the line it stumbled over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A line is there and says something else than expected.
    #[error("{program}: expected {expected} in line {number}, found `{line}`")]
    Line {
        /// Whose output.
        program: &'static str,
        /// What was looked for.
        expected: String,
        /// The line, from 1.
        number: usize,
        /// Its text.
        line: String,
    },
    /// The output ends too early, or is of another program.
    #[error("{program}: no complete line with {expected}; the output ends with `{last}`")]
    Missing {
        /// Whose output.
        program: &'static str,
        /// What was looked for.
        expected: String,
        /// The last line that is not empty.
        last: String,
    },
    /// What can only be said once is said twice: two outputs in one.
    #[error("{program}: a second {expected} in line {number}, `{line}`: this is the output of more than one run")]
    Twice {
        /// Whose output.
        program: &'static str,
        /// What was looked for.
        expected: String,
        /// The second line, from 1.
        number: usize,
        /// Its text.
        line: String,
    },
    /// The program itself says that it failed.
    #[error("{program} failed: `{line}`{}", help.map(|help| format!("; {help}")).unwrap_or_default())]
    Failed {
        /// Whose output.
        program: &'static str,
        /// What it says.
        line: String,
        /// The way out, where one is known.
        help: Option<&'static str>,
    },
    /// It ran, otherwise than asked.
    #[error("{program} ran with another setting: asked for {asked}, it says `{line}`")]
    Otherwise {
        /// Whose output.
        program: &'static str,
        /// What was asked for.
        asked: String,
        /// What it says.
        line: String,
    },
    /// Its figures contradict one another.
    #[error("{program}: {contradiction}")]
    Contradiction {
        /// Whose output.
        program: &'static str,
        /// Both figures, in words.
        contradiction: String,
    },
}
