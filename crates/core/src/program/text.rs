//! Output read line by line.
//!
//! Only whole lines count, those that end with a newline: a figure cut off in its middle is a wrong figure.

use super::Unreadable;

/// The output of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'t> {
    program: &'static str,
    text: &'t str,
}

/// A line of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'t> {
    program: &'static str,
    /// From 1.
    number: usize,
    /// Without the blanks around it.
    pub text: &'t str,
    /// What follows the label by which it was found.
    pub rest: &'t str,
}

impl<'t> Text<'t> {
    pub fn of(program: &'static str, text: &'t str) -> Text<'t> {
        Text { program, text }
    }

    pub fn lines(self) -> impl Iterator<Item = Line<'t>> {
        let whole = self.text.rfind('\n').map_or("", |end| &self.text[..end]);
        whole.lines().enumerate().map(move |(at, line)| {
            let text = line.trim();
            Line { program: self.program, number: at + 1, text, rest: text }
        })
    }

    /// The lines that begin with `label`.
    pub fn labelled(self, label: &str) -> impl Iterator<Item = Line<'t>> {
        self.lines()
            .filter_map(move |line| line.text.strip_prefix(label).map(|rest| Line { rest: rest.trim(), ..line }))
    }

    /// The first of them.
    pub fn first(self, label: &str) -> Option<Line<'t>> {
        self.labelled(label).next()
    }

    /// The only one.
    pub fn only(self, label: &str) -> Result<Line<'t>, Unreadable> {
        let mut lines = self.labelled(label);
        let line = lines.next().ok_or_else(|| self.missing(&format!("`{label}`")))?;
        match lines.next() {
            None => Ok(line),
            Some(second) => Err(Unreadable::Twice {
                program: self.program,
                expected: format!("`{label}`"),
                number: second.number,
                line: shown(second.text),
            }),
        }
    }

    /// The number, above 0, that follows the only `label`.
    pub fn number(self, label: &str, unit: &str) -> Result<f64, Unreadable> {
        self.only(label)?.positive(0, unit)
    }

    pub fn missing(self, expected: &str) -> Unreadable {
        let last = self.text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
        Unreadable::Missing { program: self.program, expected: expected.to_owned(), last: shown(last) }
    }
}

impl<'t> Line<'t> {
    /// A word after the label, from 0.
    pub fn word(&self, index: usize) -> Option<&'t str> {
        self.rest.split_whitespace().nth(index)
    }

    /// A word that is a number above 0, with `unit` right behind it.
    pub fn positive(&self, index: usize, unit: &str) -> Result<f64, Unreadable> {
        let number = self.not_negative(index, unit)?;
        if number > 0.0 { Ok(number) } else { Err(self.otherwise(format!("a number above 0{}", of(unit)))) }
    }

    /// A word that is a number, 0 included.
    pub fn not_negative(&self, index: usize, unit: &str) -> Result<f64, Unreadable> {
        let number = self.word(index).and_then(|word| word.strip_suffix(unit)).and_then(number);
        number.ok_or_else(|| self.otherwise(format!("a number{}", of(unit))))
    }

    pub fn otherwise(&self, expected: impl Into<String>) -> Unreadable {
        Unreadable::Line {
            program: self.program,
            expected: expected.into(),
            number: self.number,
            line: shown(self.text),
        }
    }

    /// The program says that it failed.
    pub fn failure(&self, help: Option<&'static str>) -> Unreadable {
        Unreadable::Failed { program: self.program, line: shown(self.text), help }
    }

    /// It ran otherwise than asked.
    pub fn not_as_asked(&self, asked: impl Into<String>) -> Unreadable {
        Unreadable::Otherwise { program: self.program, asked: asked.into(), line: shown(self.text) }
    }
}

fn of(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(" with `{unit}`") }
}

/// A plain decimal number, 0 or more: no sign, no `inf`, no comma.
pub(super) fn number(word: &str) -> Option<f64> {
    let is_plain = word.starts_with(|c: char| c.is_ascii_digit()) && word.ends_with(|c: char| c.is_ascii_digit());
    let value: f64 = if is_plain { word.parse().ok()? } else { return None };
    value.is_finite().then_some(value)
}

/// A line that cannot disturb a terminal or fill it.
pub(super) fn shown(line: &str) -> String {
    const MOST: usize = 100;
    let text: String = line.trim().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    match text.char_indices().nth(MOST) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_says_otherwise_is_shown_with_its_place() {
        let text = Text::of("prog", "head\n  rate:  3,5 MB/s\nrate: 2\n\x1b[2J long \nrate: 4");
        let line = text.first("rate:").unwrap();
        assert_eq!(
            line.positive(0, "").unwrap_err().to_string(),
            "prog: expected a number in line 2, found `rate:  3,5 MB/s`"
        );
        assert_eq!(
            text.only("rate:").unwrap_err().to_string(),
            "prog: a second `rate:` in line 3, `rate: 2`: this is the output of more than one run"
        );
        assert_eq!(text.labelled("rate:").count(), 2, "the cut line does not count");
        assert_eq!(
            text.only("speed").unwrap_err().to_string(),
            "prog: no complete line with `speed`; the output ends with `rate: 4`"
        );
        assert_eq!(shown("\x1b[2J long"), "?[2J long");
        assert_eq!(shown(&"é".repeat(200)).chars().count(), 101);
    }

    #[test]
    fn numbers_are_plain_decimals() {
        for (word, expected) in
            [("3.5", Some(3.5)), ("2.2166e+06", Some(2.2166e6)), ("0.00", Some(0.0)), ("7", Some(7.0))]
        {
            assert_eq!(number(word), expected, "{word}");
        }
        for word in ["", "-1", "+1", "inf", "nan", "1,5", "1.", ".5", "1e999", "0x10", "1_000"] {
            assert_eq!(number(word), None, "{word}");
        }
    }
}
