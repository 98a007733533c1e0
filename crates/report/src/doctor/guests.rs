//! What Linux guests take of a host: QEMU, and a kernel.

use serde::Serialize;

use super::{command, row};

/// What guests take, each here or with the way to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Guests {
    /// The program.
    pub qemu: Part,
    /// The kernel, by its release.
    pub kernel: Part,
}

/// One thing that guests take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Part {
    /// It is here.
    Ok {
        /// Which.
        found: String,
    },
    /// It is not.
    Missing {
        /// Why not.
        reason: String,
        /// What would bring it.
        remedy: Option<String>,
    },
}

impl Guests {
    /// A group of the doctor's text, with an empty line before it.
    pub fn text(&self) -> String {
        let part = |label, part: &Part| match part {
            Part::Ok { found } => row(label, found),
            Part::Missing { reason, remedy } => {
                let way_out = remedy.iter().map(|remedy| command("    ", remedy)).collect::<String>();
                row(label, &format!("not here: {reason}")) + &way_out
            }
        };
        format!(
            "\nLinux guests (venue = [\"guest\"] in plans)\n{}{}",
            part("QEMU", &self.qemu),
            part("kernel", &self.kernel)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_has_its_reason_and_the_way_to_it() {
        let qemu = Part::Ok { found: "/usr/bin/qemu-system-x86_64".to_owned() };
        let kernel =
            Part::Missing { reason: "none was found".to_owned(), remedy: Some("vmtax image kernel".to_owned()) };
        let expected = "\nLinux guests (venue = [\"guest\"] in plans)\n  QEMU            /usr/bin/qemu-system-x86_64\n  \
                        kernel          not here: none was found\n    -> vmtax image kernel\n";
        assert_eq!(Guests { qemu, kernel }.text(), expected);
    }
}
