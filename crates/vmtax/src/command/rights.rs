//! `vmtax rights`: which ways to huge pages are open to an ordinary user, and what would open the others.

use std::process::ExitCode;

use serde::Serialize;
use vmtax_core::units::PageSize;
use vmtax_machine::{
    knob::{self, Contention, Lease},
    rights::{Attempt, Outcome, Person, Way, survey},
};
use vmtax_report::listing::{Align, item, table};

use crate::{cli::RightsArgs, output};

/// `vmtax rights --json`.
#[derive(Debug, Serialize)]
struct Document<'r> {
    schema: u32,
    attempts: &'r [Attempt],
    published: &'static str,
}

/// Tries every way for real, as who runs it and as user 65534 without capabilities.
pub fn run(args: &RightsArgs) -> anyhow::Result<ExitCode> {
    let host = knob::Host::default();
    let mut lease = args.reserve.then(|| Lease::acquire(host.clone(), Contention::Refuse)).transpose()?;
    let attempts = survey(&host, lease.as_mut());
    if let Some(lease) = lease {
        for outcome in lease.release()? {
            output::note(outcome);
        }
    }
    let (word, sentence) = verdict(&attempts);
    if args.json {
        let document = Document { schema: 1, attempts: &attempts, published: word };
        output::print(&(serde_json::to_string(&document)? + "\n"))?;
    } else {
        output::print(&text(&attempts, &sentence))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn find(attempts: &[Attempt], way: Way, page: PageSize, person: Person) -> Option<&Attempt> {
    attempts.iter().find(|a| (a.way, a.page, a.person) == (way, page, person))
}

fn text(attempts: &[Attempt], published: &str) -> String {
    let head =
        [("way", Align::Left), ("page", Align::Left), ("present user", Align::Left), ("ordinary user", Align::Left)];
    let mut rows = Vec::new();
    for page in [PageSize::Large, PageSize::Giant] {
        for way in Way::ALL {
            let said = |person| find(attempts, way, page, person).map_or(String::new(), |a| short(&a.outcome));
            rows.push(vec![way.name().to_owned(), page.to_string(), said(Person::Present), said(Person::Ordinary)]);
        }
    }
    let mut text = "Ways to huge pages, each tried for real\n\n".to_owned() + &table(&head, &rows);
    let refused: Vec<&Attempt> = attempts.iter().filter(|attempt| attempt.remedy.is_some()).collect();
    if !refused.is_empty() {
        text += "\nWhat would grant the others\n";
    }
    let mut told: Vec<(String, &str)> = Vec::new();
    for attempt in refused {
        let what = format!("{attempt}");
        let remedy = attempt.remedy.as_deref().unwrap_or_default();
        if told.iter().any(|(_, known)| *known == remedy) {
            continue;
        }
        text += &item("- ", &what);
        text += &item("  -> ", remedy);
        told.push((what, remedy));
    }
    text + "\n" + &item("", published)
}

fn short(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Granted => "granted".to_owned(),
        Outcome::Refused { operation, errno } => {
            let error = std::io::Error::from_raw_os_error(*errno).to_string();
            format!("{operation}: {}", error.split(" (os").next().unwrap_or(&error))
        }
        Outcome::Killed { signal } => format!("killed by signal {signal}"),
        Outcome::NotTested { .. } => "not tested".to_owned(),
    }
}

/// The published statement: an ordinary user gets huge pages by mmap, and not by shmget.
fn verdict(attempts: &[Attempt]) -> (&'static str, String) {
    let statement = "The study's \"normal users can get huge pages through mmap, not through shmget\"";
    let of = |way| find(attempts, way, PageSize::Large, Person::Ordinary).map(|attempt| &attempt.outcome);
    match (of(Way::Mmap), of(Way::Shmget)) {
        (Some(Outcome::Granted), Some(Outcome::Refused { .. })) => {
            ("confirmed", format!("{statement}: confirmed here."))
        }
        (None | Some(Outcome::NotTested { .. }), _) | (_, None | Some(Outcome::NotTested { .. })) => (
            "not tested",
            format!("{statement}: not tested here, for want of a page in the pool; --reserve borrows one."),
        ),
        (Some(_), Some(_)) => ("contradicted", format!("{statement}: contradicted here.")),
    }
}
