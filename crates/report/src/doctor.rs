//! The text of `vmtax doctor`: what this host is, what can be measured on it, and what to do about the rest.
//!
//! Plain text of 80 columns. Values wrap within their column; only a command is never broken, because it is there to be
//! copied.

mod advice;
mod facts;
mod grid;
mod guests;

use serde::Serialize;
use vmtax_core::{
    availability::{Availability, Reserve},
    host::Host,
};

pub use advice::{Advice, advice};
pub use grid::Status;
pub use guests::{Guests, Part};

/// Columns of the text.
const WIDTH: usize = 80;

/// Columns of the labels.
const LABEL: usize = 14;

/// What `vmtax doctor` prints.
pub fn doctor(host: &Host, availability: &Availability, guests: &Guests) -> String {
    let mut text = String::new();
    for group in facts::groups(host) {
        text.push_str(group.title);
        text.push('\n');
        for (label, value) in &group.rows {
            text.push_str(&row(label, value));
        }
        text.push('\n');
    }
    text.push_str(&advice_text(host));
    text.push_str(&format!("What can be measured with {}\n", demand_text(availability)));
    text.push_str(&grid::text(availability));
    text.push_str(&guests.text());
    text
}

/// What `vmtax doctor --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Doctor<'a> {
    /// Version of this form.
    pub schema: u32,
    /// The facts.
    pub host: &'a Host,
    /// What to know before believing a figure from here.
    pub advice: Vec<Advice>,
    /// One row a setting, in the manner of `vmtax matrix --json`.
    pub cells: Vec<Status<'a>>,
    /// What Linux guests take.
    pub guests: &'a Guests,
}

impl<'a> Doctor<'a> {
    /// From the same two things as the text.
    pub fn new(host: &'a Host, availability: &'a Availability, guests: &'a Guests) -> Doctor<'a> {
        Doctor { schema: 1, host, advice: advice(host), cells: grid::statuses(availability), guests }
    }
}

fn advice_text(host: &Host) -> String {
    let all = advice(host);
    if all.is_empty() {
        return String::new();
    }
    let mut text = "Know before you measure\n".to_owned();
    for Advice { finding, remedy } in &all {
        text.push_str(&wrapped("  ! ", "    ", finding));
        text.push_str(&remedy.as_ref().map(|r| command("    ", r)).unwrap_or_default());
    }
    text + "\n"
}

fn demand_text(availability: &Availability) -> String {
    let demand = availability.demand;
    let vcpus = if demand.vcpus == 1 { "1 vCPU".to_owned() } else { format!("{} vCPUs", demand.vcpus) };
    let reserve = match demand.reserve {
        Reserve::No => "pools as they are",
        Reserve::Yes => "pools borrowed for the run (--reserve)",
    };
    format!("{} of memory, {vcpus}, {reserve}", demand.arena)
}

/// `  label         value`, the value wrapped into its own column.
fn row(label: &str, value: &str) -> String {
    let rest = " ".repeat(LABEL + 4);
    wrapped(&format!("  {label:<LABEL$}  "), &rest, value)
}

/// A command on lines of its own, never broken.
fn command(indent: &str, text: &str) -> String {
    format!("{indent}-> {text}\n")
}

/// Text broken between words so that no line exceeds [`WIDTH`], the first line after `first`, the others after `rest`.
fn wrapped(first: &str, rest: &str, text: &str) -> String {
    let mut lines = vec![first.to_owned()];
    let mut empty = true;
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line: it starts with one and only grows");
        let gap = if empty { "" } else { " " };
        if !empty && columns(line) + 1 + columns(word) > WIDTH {
            lines.push(format!("{rest}{word}"));
        } else {
            line.push_str(gap);
            line.push_str(word);
        }
        empty = false;
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Columns of a text on a terminal: all we print is one column a character.
fn columns(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests;
