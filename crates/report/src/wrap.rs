//! Text broken into lines of 80 columns, between words only and never within a figure.

/// The width of a terminal that nobody has widened.
pub(crate) const WIDTH: usize = 80;

/// A space that no line is broken at.
const GLUE: char = '\u{a0}';

/// A paragraph, the first line after `first`, the others after `rest`.
pub(crate) fn wrapped(first: &str, rest: &str, text: &str) -> String {
    let options = textwrap::Options::new(WIDTH).initial_indent(first).subsequent_indent(rest).break_words(false);
    textwrap::fill(&glued(text), options).replace(GLUE, " ") + "\n"
}

/// The lines of a cell of a table, this wide.
pub(crate) fn cell(text: &str, width: usize) -> String {
    let options = textwrap::Options::new(width).break_words(false);
    textwrap::fill(&glued(text), options).replace(GLUE, " ")
}

/// A paragraph of a list, indented below its mark.
pub fn item(mark: &str, text: &str) -> String {
    wrapped(mark, &" ".repeat(mark.chars().count()), text)
}

/// `−22 % [−23, −21]`, `95.7 ns` and `32 KiB` stay in one piece.
fn glued(text: &str) -> String {
    let mut depth = 0;
    let mut glued = String::new();
    for (at, c) in text.char_indices() {
        let after = &text[at + c.len_utf8()..];
        depth += i32::from(c == '[') - i32::from(c == ']');
        let is_inside = depth > 0
            || ["%", "[", "ns ", "ns,", "times [", "KiB", "MiB", "GiB"].iter().any(|unit| after.starts_with(unit));
        glued.push(if c == ' ' && is_inside { GLUE } else { c });
    }
    glued
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_not_in_figures() {
        let text = "word ".repeat(12) + "and then −22 % [−23, −21], and the rest 95.7 ns, of it.";
        let lines = item("- ", &text);
        let expected = format!("- {}and then\n  −22 % [−23, −21], and the rest 95.7 ns, of it.\n", "word ".repeat(12));
        assert_eq!(lines, expected);
    }
}
