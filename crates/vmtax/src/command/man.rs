//! `vmtax man`: one manual page for vmtax and its subcommands, from the same definitions as the command line.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};

use crate::{cli::Cli, output};

/// What the definitions do not say.
const EXIT_STATUS: [(&str, &str); 4] = [
    ("0", "Success."),
    ("1", "Something measured failed; the rest is printed."),
    ("2", "Wrong usage, or a host that cannot do what was asked. Nothing was measured."),
    ("128+n", "Signal n ended it. What was measured is kept, and printed where that is still possible."),
];
const FILES: [(&str, &str); 3] = [
    ("$XDG_STATE_HOME/vmtax/results.db, ~/.local/state/vmtax/results.db", "Results: one SQLite file."),
    ("/run/vmtax/lock", "Held while a run has borrowed huge pages."),
    ("/run/vmtax/journal", "What was changed and is not yet put back."),
];
const EXAMPLES: [(&str, &str); 6] = [
    ("vmtax matrix", "All cells that this host can give without being changed, in a minute."),
    ("sudo vmtax matrix --reserve", "The same with hugetlb pages, borrowed for the run."),
    ("vmtax matrix --guest 4k,2m --host 4k,thp --size 512M --blocks 9 --json", "Four cells and native, for a program."),
    ("vmtax touch --guest 4k --host 4k,thp", "What the first access to a page costs, natively and in a guest."),
    (
        "sudo vmtax walk --reserve --host 4k,2m",
        "From which stride on small pages beat huge ones, as the huge-page study asks.",
    ),
    ("vmtax show --csv", "The latest run again, as a table for a spreadsheet."),
];

/// Prints the page.
pub fn run() -> anyhow::Result<ExitCode> {
    output::print(&page()?)?;
    Ok(ExitCode::SUCCESS)
}

fn page() -> anyhow::Result<String> {
    let mut command = Cli::command();
    command.build();
    let man = Man::new(command.clone()).manual("User Commands");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    section("COMMANDS").to_writer(&mut page)?;
    for sub in leaves(&command) {
        page.extend(subsection(sub)?.bytes());
    }
    for (title, entries) in [("EXIT STATUS", &EXIT_STATUS[..]), ("FILES", &FILES), ("EXAMPLES", &EXAMPLES)] {
        listed(title, entries).to_writer(&mut page)?;
    }
    Ok(String::from_utf8(page)?)
}

/// The commands that do something: those that have subcommands only lead there.
fn leaves(command: &clap::Command) -> Vec<&clap::Command> {
    let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
    subs.flat_map(|sub| if sub.has_subcommands() { leaves(sub) } else { vec![sub] }).collect()
}

/// A subcommand with its options, which `clap_mangen` can only render as a section of a page of their own.
fn subsection(command: &clap::Command) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut head = Roff::new();
    let usage = command.clone().render_usage().to_string();
    head.control("SS", [usage.trim_start_matches("Usage: ")]);
    head.text([roman(command.get_about().map(|about| format!("{about}.")).unwrap_or_default())]);
    text.push_str(&head.to_roff());
    let mut options = Vec::new();
    let without_help = command.clone().mut_args(|arg| if arg.get_id() == "help" { arg.hide(true) } else { arg });
    Man::new(without_help).render_options_section(&mut options)?;
    let options = String::from_utf8(options)?;
    text.extend(
        options
            .split_inclusive('\n')
            .filter(|line| !line.starts_with(".SH") && !line.starts_with(".ie") && !line.starts_with(".el")),
    );
    Ok(text)
}

fn section(title: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    roff
}

fn listed(title: &str, entries: &[(&str, &str)]) -> Roff {
    let mut roff = section(title);
    for (term, meaning) in entries {
        roff.control("TP", []);
        roff.text([bold(*term)]);
        roff.text([roman(*meaning)]);
    }
    roff
}
