//! Why a domain cannot be taken over.

use std::path::PathBuf;

/// What is wrong with a domain, or its description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// libvirt does not know it, or is not here.
    #[error("cannot find the domain {name}: {why}")]
    Missing {
        /// What was asked for.
        name: String,
        /// Where it was looked for, and what came of that.
        why: String,
    },
    /// The description cannot be read.
    #[error("cannot read {}: {why}", .file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// Why not.
        why: String,
    },
    /// An element says what cannot be taken over at all.
    #[error("{file}:{line}: <{element}>: {why}")]
    Element {
        /// The file, or the command that gave the text.
        file: String,
        /// The line of the element, from 1.
        line: u32,
        /// Its name.
        element: String,
        /// What is wrong with it.
        why: String,
        /// The way out.
        remedy: &'static str,
    },
}

impl DomainError {
    /// The way out.
    pub fn remedy(&self) -> Option<String> {
        match self {
            DomainError::Missing { .. } => {
                Some("virsh list --all names them; or a file: virsh dumpxml NAME >domain.xml".to_owned())
            }
            DomainError::File { .. } => Some("as its owner: virsh dumpxml NAME >domain.xml, and name that".to_owned()),
            DomainError::Element { remedy, .. } => Some((*remedy).to_owned()),
        }
    }
}
