//! What is wrong with a plan: where, and what would be accepted.

use std::{fmt, ops::Range};

/// Everything that was found wrong with a plan, in the order of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    file: String,
    text: String,
    list: Vec<Diagnostic>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong, in a line.
    pub message: String,
    /// The culprit, in bytes of the text.
    pub span: Range<usize>,
    /// What is accepted; said under the culprit. May be empty.
    pub label: String,
}

impl Diagnostic {
    pub(crate) fn new(message: impl Into<String>, span: Range<usize>, label: impl Into<String>) -> Diagnostic {
        Diagnostic { message: message.into(), span, label: label.into() }
    }
}

impl Diagnostics {
    pub(crate) fn new(file: &str, text: &str, mut list: Vec<Diagnostic>) -> Diagnostics {
        list.sort_by_key(|diagnostic| diagnostic.span.start);
        Diagnostics { file: file.to_owned(), text: text.to_owned(), list }
    }

    /// One by one.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }
}

impl std::error::Error for Diagnostics {}

impl fmt::Display for Diagnostics {
    /// As compilers do:
    /// ```text
    /// error: no factor named `hots`
    ///   --> plan.toml:7:1
    ///    |
    ///  7 | hots = ["4k", "2m"]
    ///    | ^^^^ factors are: venue, host, guest, ...; did you mean `host`?
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, diagnostic) in self.list.iter().enumerate() {
            if nth > 0 {
                f.write_str("\n\n")?;
            }
            self.excerpt(f, diagnostic)?;
        }
        Ok(())
    }
}

impl Diagnostics {
    fn excerpt(&self, f: &mut fmt::Formatter<'_>, Diagnostic { message, span, label }: &Diagnostic) -> fmt::Result {
        let place = Place::of(&self.text, span);
        let width = place.line.to_string().len().max(2);
        writeln!(f, "error: {message}")?;
        writeln!(f, "{:width$}--> {}:{}:{}", "", self.file, place.line, place.column)?;
        writeln!(f, "{:width$} |", "")?;
        writeln!(f, "{:>width$} | {}", place.line, place.content)?;
        let carets = format!("{}{} {label}", place.indent, "^".repeat(place.length));
        write!(f, "{:width$} | {}", "", carets.trim_end())
    }
}

/// Where a span stands, as an editor counts: from 1, in characters.
struct Place<'t> {
    line: usize,
    column: usize,
    content: &'t str,
    /// What leads up to the culprit: tabs are kept, so that the caret stands under it however wide they are shown.
    indent: String,
    /// At least one; a culprit of several lines is marked on the first.
    length: usize,
}

impl Place<'_> {
    fn of<'t>(text: &'t str, span: &Range<usize>) -> Place<'t> {
        let start = floor_char(text, span.start);
        let from = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let content = text[from..].lines().next().unwrap_or("");
        let before = &text[from..start];
        let end = floor_char(text, span.end).clamp(start, (from + content.len()).max(start));
        Place {
            line: text[..from].matches('\n').count() + 1,
            column: before.chars().count() + 1,
            content,
            indent: before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect(),
            length: text[start..end].chars().count().max(1),
        }
    }
}

fn floor_char(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

/// `; did you mean `host`?`, when one of `names` is near enough to have been meant; empty otherwise.
pub(crate) fn meant<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    /// Jaro-Winkler similarity from which a name counts as near: `hots` and `host` have 0.94, `4m` and `4k` 0.70.
    const NEAR: f64 = 0.8;
    let near = names.into_iter().map(|name| (strsim::jaro_winkler(&written.to_lowercase(), name), name));
    match near.filter(|(similarity, _)| *similarity >= NEAR).max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((_, name)) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_under_its_culprit_whatever_stands_before_it() {
        let check = |text: &str, span: Range<usize>, expected: &str| {
            let diagnostics = Diagnostics::new("p", text, vec![Diagnostic::new("wrong", span, "label")]);
            assert_eq!(diagnostics.to_string().split_once('\n').unwrap().1, expected);
        };
        check("a = 1\nbb = 2\n", 6..8, "  --> p:2:1\n   |\n 2 | bb = 2\n   | ^^ label");
        check("\té = 1", 1..3, "  --> p:1:2\n   |\n 1 | \té = 1\n   | \t^ label");
        check("a = [\n1]", 4..8, "  --> p:1:5\n   |\n 1 | a = [\n   |     ^ label");
        check("a =", 3..3, "  --> p:1:4\n   |\n 1 | a =\n   |    ^ label");
        check("", 0..9, "  --> p:1:1\n   |\n 1 | \n   | ^ label");
        let far = format!("{}x", "\n".repeat(122));
        check(&far, 122..123, "   --> p:123:1\n    |\n123 | x\n    | ^ label");
    }

    #[test]
    fn only_a_near_name_is_offered() {
        let names = ["venue", "host", "guest"];
        assert_eq!(meant("hots", names), "; did you mean `host`?");
        assert_eq!(meant("HOST", names), "; did you mean `host`?");
        assert_eq!(meant("zebra", names), "");
    }
}
