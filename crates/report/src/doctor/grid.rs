//! Guest leaves down, host backings across: a mark for each setting, and below it the numbered reasons.

use serde::Serialize;
use vmtax_core::{
    availability::Availability,
    setting::{Backing, Setting},
    trial::Unavailable,
    units::PageSize,
};

use super::{command, wrapped};

/// One setting, in the manner of a cell of `vmtax matrix --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status<'a> {
    /// `native` or `microvm`.
    pub venue: &'static str,
    /// The guest's leaf; none is native.
    pub guest: Option<PageSize>,
    /// The backing.
    pub host: Backing,
    /// `ok` or `unavailable`.
    pub status: &'static str,
    /// Why not.
    pub reason: Option<&'a str>,
    /// What would enable it.
    pub remedy: Option<&'a str>,
}

/// All settings that were asked for.
pub(super) fn statuses(availability: &Availability) -> Vec<Status<'_>> {
    availability.settings.iter().map(status).collect()
}

fn status(answer: &Result<Setting, Unavailable>) -> Status<'_> {
    let (setting, obstacle) = match answer {
        Ok(setting) => (*setting, None),
        Err(unavailable) => (unavailable.setting, Some(unavailable)),
    };
    Status {
        venue: setting.venue().name(),
        guest: setting.guest,
        host: setting.host,
        status: if obstacle.is_some() { "unavailable" } else { "ok" },
        reason: obstacle.map(|u| u.reason.as_str()),
        remedy: obstacle.map(|u| u.remedy.as_str()),
    }
}

/// The grid and its footnotes.
pub(super) fn text(availability: &Availability) -> String {
    let notes = notes(availability);
    let cell = |setting| match availability.of(setting) {
        None => String::new(),
        Some(Ok(())) => "ok".to_owned(),
        Some(Err(u)) => format!("- [{}]", number(&notes, u)),
    };
    let mut text = format!("  {:<16}", "");
    text.extend(Backing::ALL.map(|host| format!("{:>12}", format!("host {host}"))));
    text.push('\n');
    for guest in [None].into_iter().chain(PageSize::ALL.map(Some)) {
        let cells = Backing::ALL.map(|host| format!("{:>12}", cell(Setting { guest, host })));
        let label = guest.map_or("native".to_owned(), |leaf| format!("guest {leaf}"));
        text.push_str(format!("  {label:<16}{}", cells.concat()).trim_end());
        text.push('\n');
    }
    for (n, (reason, remedy)) in notes.iter().enumerate() {
        let mark = format!("  [{}] ", n + 1);
        text.push_str(if n == 0 { "\n" } else { "" });
        text.push_str(&wrapped(&mark, "      ", reason));
        text.push_str(&command("      ", remedy));
    }
    text
}

/// Distinct reasons with their remedies, in order of first appearance.
fn notes(availability: &Availability) -> Vec<(&str, &str)> {
    let mut notes = Vec::new();
    for u in availability.unavailable() {
        let note = (u.reason.as_str(), u.remedy.as_str());
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

fn number(notes: &[(&str, &str)], unavailable: &Unavailable) -> usize {
    let note = (unavailable.reason.as_str(), unavailable.remedy.as_str());
    1 + notes.iter().position(|n| *n == note).expect("every reason was noted above")
}
