//! `vmtax reserve`: the cost of preparing huge pages, after the memory has been fragmented.

use std::process::ExitCode;

use serde::Serialize;
use vmtax_core::{prose::nanos, stats::Estimate, units::PageSize};
use vmtax_machine::{
    knob::{self, Contention, Lease, available_memory},
    reserve::{self, Compaction, Plan, Round},
};
use vmtax_report::listing::{Align, item, table};

use super::Refusal;
use crate::{cli::ReserveArgs, output, signal::Signals};

/// What the published study reports: 5000 pages of 2 MiB in less than a second (`studies/hugepage-walk`).
const PUBLISHED: (u64, f64) = (5000, 1.0);

/// `vmtax reserve --json`.
#[derive(Debug, Serialize)]
struct Document<'r> {
    schema: u32,
    plan: &'r Plan,
    rounds: &'r [Round],
    seconds: Option<Estimate>,
    published: &'static str,
}

/// Measures round by round; the pool is put back after each.
pub fn run(args: &ReserveArgs) -> anyhow::Result<ExitCode> {
    let host = knob::Host::default();
    let plan = plan(args, &host)?;
    let signals = Signals::catch()?;
    let mut lease = Lease::acquire(host, Contention::Refuse)?;
    output::note(format!(
        "Preparing {} pages of {}, {} rounds, after stress on {:.0} % of available memory.",
        plan.pages,
        plan.page.prose(),
        plan.rounds,
        plan.stress * 100.0
    ));
    let rounds = reserve::run(&mut lease, &plan, signals.stop(), |round| {
        output::note(format!("round {}: {} of {} in {:.3} s", round.round, round.granted, round.asked, round.seconds));
    });
    for outcome in lease.release()? {
        output::note(outcome);
    }
    let rounds = rounds?;
    let seconds = Estimate::of_median(&rounds.iter().map(|round| round.seconds).collect::<Vec<_>>());
    let published = verdict(&plan, &rounds, seconds);
    if args.json {
        let document = Document { schema: 1, plan: &plan, rounds: &rounds, seconds, published: published.0 };
        output::print(&(serde_json::to_string(&document)? + "\n"))?;
    } else {
        output::print(&text(&plan, &rounds, seconds, &published.1))?;
    }
    Ok(signals.exit_code().map_or(ExitCode::SUCCESS, ExitCode::from))
}

fn plan(args: &ReserveArgs, host: &knob::Host) -> anyhow::Result<Plan> {
    let page = args.page.page();
    let published = Plan::published(host, page, args.seed)?;
    let pages = args.pages.unwrap_or(published.pages);
    let available = available_memory(host)?;
    let most = available.0 / 2 / page.bytes();
    if pages == 0 || pages > most {
        return Err(Refusal::new(
            format!("cannot prepare {pages} pages of {}: half of the available memory holds {most}", page.prose()),
            match most {
                0 => "free some memory".to_owned(),
                most => format!("--pages {}", most.min(published.pages.max(1))),
            },
        )
        .into());
    }
    let compaction = if args.compact { Compaction::Before } else { Compaction::Off };
    Ok(Plan { pages, rounds: args.rounds, stress: args.stress, kept: args.kept, compaction, ..published })
}

fn text(plan: &Plan, rounds: &[Round], seconds: Option<Estimate>, published: &str) -> String {
    let head = [
        ("round", Align::Right),
        ("asked", Align::Right),
        ("granted", Align::Right),
        ("seconds", Align::Right),
        ("pages/s", Align::Right),
        ("scattered", Align::Right),
        ("then", Align::Right),
        ("compaction", Align::Right),
    ];
    let share = |state: &Option<vmtax_machine::fragmentation::Fragmentation>| {
        state.as_ref().map_or("?".to_owned(), |state| format!("{:.0} %", state.unusable() * 100.0))
    };
    let rows: Vec<Vec<String>> = rounds
        .iter()
        .map(|round| {
            vec![
                round.round.to_string(),
                round.asked.to_string(),
                round.granted.to_string(),
                format!("{:.3}", round.seconds),
                format!("{:.0}", round.pages_per_second()),
                share(&round.before),
                share(&round.after),
                round.compaction_seconds.map_or("none".to_owned(), |s| format!("{s:.3} s")),
            ]
        })
        .collect();
    let mut text = format!(
        "Time to prepare huge pages: {} of {}, {} rounds, seed {}\nafter stress on {:.0} % of available memory, of which {:.0} % stays meanwhile\n\n",
        plan.pages,
        plan.page.prose(),
        rounds.len(),
        plan.seed,
        plan.stress * 100.0,
        plan.kept * 100.0
    );
    text += &table(&head, &rows);
    text += "\nScattered: share of free memory in blocks smaller than such a page, before the\npages are prepared; then: when they are.\n";
    if let Some(Estimate { value, interval, .. }) = seconds {
        let within = interval.map_or(String::new(), |i| format!(" [{}, {}]", nanos(i.lo), nanos(i.hi)));
        text += &item("", &format!("Median over rounds, with its 95 % interval: {}{within} s.", nanos(value)));
    }
    text + &item("", published)
}

/// Whether the published statement holds here: in a word, and in a sentence.
fn verdict(plan: &Plan, rounds: &[Round], seconds: Option<Estimate>) -> (&'static str, String) {
    let (pages, limit) = PUBLISHED;
    let statement = "The study's \"less than 1 second to prepare 5000 huge pages\"";
    let is_same = plan.page == PageSize::Large && rounds.iter().all(|r| r.granted >= pages.min(r.asked));
    match seconds {
        Some(seconds) if is_same && plan.pages >= pages && !rounds.is_empty() => {
            let within = rounds.iter().filter(|round| round.seconds < limit).count();
            let word = if seconds.value < limit { "confirmed" } else { "contradicted" };
            (word, format!("{statement}: {word} here, in {within} of {} rounds.", rounds.len()))
        }
        _ => ("not tested", format!("{statement}: not tested here; it takes 5000 pages of 2 MiB, all granted.")),
    }
}
