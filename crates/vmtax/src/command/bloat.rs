//! `vmtax bloat`: memory really used after touching a few bytes of a large mapping, on each backing.

use std::process::ExitCode;

use serde::Serialize;
use vmtax_core::{
    setting::Backing,
    units::{Bytes, KIB, MIB},
};
use vmtax_machine::{
    bloat::{self, Pattern, Touch},
    knob::{self, Contention, Error, Lease, Want},
};
use vmtax_report::listing::{Align, item, table};

use super::Refusal;
use crate::{cli::BloatArgs, output};

/// One measurement.
#[derive(Debug, Serialize)]
struct Row {
    host: &'static str,
    gap_bytes: u64,
    touched_bytes: Option<u64>,
    used_bytes: Option<u64>,
    pool_pages: Option<u64>,
    status: &'static str,
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct Document<'r> {
    schema: u32,
    size_bytes: u64,
    rows: &'r [Row],
}

/// Maps, touches, reads back, unmaps; once each, as nothing here is left to chance.
pub fn run(args: &BloatArgs) -> anyhow::Result<ExitCode> {
    let backings =
        args.host.as_ref().map_or(Backing::ALL.to_vec(), |named| named.iter().map(|l| l.backing()).collect());
    for backing in args.host.iter().flatten().map(|level| level.backing()) {
        if args.size.0 == 0 || !args.size.0.is_multiple_of(backing.page().bytes()) {
            let message = format!("--size {} is no multiple of {}", args.size, backing.page().prose());
            return Err(Refusal::new(message, "--size 1G").into());
        }
    }
    let host = knob::Host::default();
    let mut lease = args.reserve.then(|| Lease::acquire(host.clone(), Contention::Refuse)).transpose()?;
    let mut rows = Vec::new();
    for backing in backings {
        let ready = lend(&mut lease, backing, args.size);
        for gap in &args.gap {
            rows.push(match &ready {
                Ok(()) => measure(&host, backing, args.size, *gap),
                Err(error) => Row::unavailable(backing, *gap, error.to_string()),
            });
        }
    }
    if let Some(lease) = lease {
        for outcome in lease.release()? {
            output::note(outcome);
        }
    }
    if args.json {
        let document = Document { schema: 1, size_bytes: args.size.0, rows: &rows };
        output::print(&(serde_json::to_string(&document)? + "\n"))?;
    } else {
        output::print(&text(args.size, &rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn lend(lease: &mut Option<Lease>, backing: Backing, size: Bytes) -> Result<(), Error> {
    match (backing.pool(), lease) {
        (Some(page), Some(lease)) => lease.borrow_pool(Want { page, pages: size.0.div_ceil(page.bytes()) }).map(drop),
        (None, _) | (_, None) => Ok(()),
    }
}

fn measure(host: &knob::Host, backing: Backing, bytes: Bytes, gap: Bytes) -> Row {
    if !bytes.0.is_multiple_of(backing.page().bytes()) {
        return Row::unavailable(
            backing,
            gap,
            format!("{bytes} is not a whole number of {} pages", backing.page().prose()),
        );
    }
    match bloat::measure(host, backing, Touch { bytes, pattern: Pattern::Every(gap) }) {
        Ok(found) => Row {
            touched_bytes: Some(found.touched.0),
            used_bytes: Some(found.used().0),
            pool_pages: found.pool_pages,
            status: "ok",
            reason: None,
            ..Row::unavailable(backing, gap, String::new())
        },
        Err(error) => Row::unavailable(backing, gap, error.to_string()),
    }
}

impl Row {
    fn unavailable(backing: Backing, gap: Bytes, reason: String) -> Row {
        Row {
            host: backing.name(),
            gap_bytes: gap.0,
            touched_bytes: None,
            used_bytes: None,
            pool_pages: None,
            status: "unavailable",
            reason: Some(reason),
        }
    }
}

fn text(size: Bytes, rows: &[Row]) -> String {
    let head = [
        ("host", Align::Left),
        ("one byte in", Align::Right),
        ("touched", Align::Right),
        ("used", Align::Right),
        ("of the mapping", Align::Right),
    ];
    let listed: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let gap = Bytes(row.gap_bytes).to_string();
            match (row.touched_bytes, row.used_bytes) {
                (Some(touched), Some(used)) => vec![
                    row.host.to_owned(),
                    gap,
                    Bytes(touched).to_string(),
                    rounded(used),
                    format!("{:.1} %", used as f64 / size.0 as f64 * 100.0),
                ],
                _ => vec![row.host.to_owned(), gap, "not here".to_owned(), String::new(), String::new()],
            }
        })
        .collect();
    let mut text =
        format!("Memory used after touching a few bytes of a mapping of {size}\n\n") + &table(&head, &listed);
    let mut reasons: Vec<&str> = rows.iter().filter_map(|row| row.reason.as_deref()).collect();
    reasons.dedup();
    if !reasons.is_empty() {
        text += "\nWhat could not be measured\n";
        text += &reasons.iter().map(|reason| item("- ", reason)).collect::<String>();
        text += "  -> add --reserve (as root), or fill the pool\n";
    }
    text
}

fn rounded(bytes: u64) -> String {
    match bytes {
        b if b >= MIB => format!("{:.0} MiB", b as f64 / MIB as f64),
        b => format!("{} KiB", b / KIB),
    }
}
