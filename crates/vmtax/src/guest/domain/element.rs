//! Elements of a description, and what is said of one that cannot be taken.

use std::str::FromStr;

use roxmltree::{Document, Node};
use vmtax_core::units::{Bytes, GIB, MIB};

use super::DomainError;

/// A description, with where it came from.
#[derive(Debug)]
pub struct Source<'a> {
    /// The file, or the command.
    pub file: &'a str,
    /// The description.
    pub document: &'a Document<'a>,
}

impl Source<'_> {
    /// The error of an element.
    pub fn wrong(&self, node: Node, why: impl Into<String>, remedy: &'static str) -> DomainError {
        DomainError::Element {
            file: self.file.to_owned(),
            line: self.document.text_pos_at(node.range().start).row,
            element: node.tag_name().name().to_owned(),
            why: why.into(),
            remedy,
        }
    }

    /// An attribute that has to be there.
    pub fn attribute<'n>(&self, node: Node<'n, '_>, name: &str) -> Result<&'n str, DomainError> {
        let missing = || self.wrong(node, format!("it has no {name}"), "what virsh dumpxml writes");
        node.attribute(name).ok_or_else(missing)
    }

    /// A whole number from 1 on.
    pub fn number(&self, node: Node, text: &str) -> Result<u32, DomainError> {
        let none = || self.wrong(node, format!("\"{}\" is no number from 1 on", text.trim()), "a number, such as 2");
        u32::from_str(text.trim()).ok().filter(|n| *n > 0).ok_or_else(none)
    }

    /// A size, in the unit that the element names; libvirt's own is KiB.
    pub fn bytes(&self, node: Node, text: &str) -> Result<Bytes, DomainError> {
        let unit = match node.attribute("unit").unwrap_or("KiB") {
            "b" | "bytes" => 1,
            "KB" => 1000,
            "k" | "KiB" => 1024,
            "MB" => 1_000_000,
            "M" | "MiB" => MIB,
            "GB" => 1_000_000_000,
            "G" | "GiB" => GIB,
            "TB" => 1_000_000_000_000,
            "T" | "TiB" => 1024 * GIB,
            other => return Err(self.wrong(node, format!("no unit is called {other}"), "unit='MiB'")),
        };
        let bytes = u64::from_str(text.trim()).ok().and_then(|n| n.checked_mul(unit)).filter(|bytes| *bytes > 0);
        let none = || self.wrong(node, format!("\"{}\" is no size", text.trim()), "a number, with its unit");
        bytes.map(Bytes).ok_or_else(none)
    }

    /// A name that becomes a word of QEMU's: with a comma in it, it would be several.
    pub fn word(&self, node: Node, text: &str) -> Result<String, DomainError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let text = text.trim();
        match !text.is_empty() && text.chars().all(is_plain) {
            true => Ok(text.to_owned()),
            false => Err(self.wrong(node, format!("{text:?} is no name"), "letters, digits, -, _ and .")),
        }
    }
}

/// The first element of this name in an element.
pub fn child<'n, 'd>(node: Node<'n, 'd>, name: &str) -> Option<Node<'n, 'd>> {
    node.children().find(|child| child.is_element() && child.tag_name().name() == name)
}

/// The text of the first element of this name in an element.
pub fn text<'n>(node: Node<'n, '_>, name: &str) -> Option<&'n str> {
    child(node, name)?.text().map(str::trim).filter(|text| !text.is_empty())
}
