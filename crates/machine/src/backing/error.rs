//! Why there is no such memory.

use std::io;

use vmtax_core::units::Bytes;

use super::Foundation;

/// Why memory could not be had.
#[derive(Debug, thiserror::Error)]
pub enum BackingError {
    /// There are not enough free pages.
    #[error("cannot back {bytes} with {foundation} pages: the kernel has not enough of them free")]
    Exhausted {
        /// How much was wanted.
        bytes: Bytes,
        /// On what.
        foundation: Foundation,
    },
    /// Anything else the kernel said.
    #[error("cannot back {bytes} with {foundation} pages: {operation}")]
    Kernel {
        /// How much was wanted.
        bytes: Bytes,
        /// On what.
        foundation: Foundation,
        /// The system call that failed.
        operation: &'static str,
        /// What it said.
        #[source]
        source: io::Error,
    },
}
