//! The figures of one pass, and where small pages begin to win, by number of passes.

use vmtax_core::{
    crossover::{Crossover, ReachInterval},
    prose::nanos_within,
    setting::Backing,
    units::Bytes,
    walk::{crossover_in, metric},
};

use super::View;
use crate::{
    listing::{Align, table},
    wrap::wrapped,
};

/// Columns side by side: more do not fit 80.
const ABREAST: usize = 2;

/// Figures of one pass, with their intervals.
pub(super) fn figures(view: &View<'_>) -> String {
    let metric = metric(1);
    let figure = |host, stride| {
        let estimate = view.cell(host, stride).and_then(|cell| view.record.estimate(cell, &metric));
        estimate.map_or("-".to_owned(), |estimate| nanos_within(&estimate))
    };
    let side_by_side = |hosts: &[Backing]| {
        let head = ["stride".to_owned()].into_iter().chain(hosts.iter().map(|host| format!("on {host}"))).collect();
        let row = |&stride: &Bytes| {
            [stride.to_string()].into_iter().chain(hosts.iter().map(|&host| figure(host, stride))).collect()
        };
        numbers(head, &view.strides.iter().map(row).collect::<Vec<_>>())
    };
    let tables: Vec<String> = view.hosts.chunks(ABREAST).map(side_by_side).collect();
    match tables.is_empty() {
        true => String::new(),
        false => {
            wrapped("", "  ", &format!("One pass, {}: medians with 95 % intervals, ns", view.name()))
                + &tables.join("\n")
        }
    }
}

/// The stride from which 4 KiB pages win against each larger backing, after each of these numbers of passes.
pub(super) fn crossovers(view: &View<'_>, counts: &[u32]) -> String {
    let found = |host, passes| crossover_in(view.record, view.walks, view.panel, host, passes);
    let has_one = |host: &Backing| counts.iter().any(|&passes| found(*host, passes).is_some());
    let larger: Vec<Backing> =
        view.hosts.iter().copied().filter(|host| *host != Backing::Small && has_one(host)).collect();
    let side_by_side = |hosts: &[Backing]| {
        let head =
            ["passes".to_owned()].into_iter().chain(hosts.iter().map(|host| format!("against {host}"))).collect();
        let told = |host, passes| found(host, passes).map_or("-".to_owned(), |crossover| words(&crossover));
        let row = |&passes: &u32| {
            [passes.to_string()].into_iter().chain(hosts.iter().map(|&host| told(host, passes))).collect()
        };
        numbers(head, &counts.iter().map(row).collect::<Vec<_>>())
    };
    let tables: Vec<String> = larger.chunks(ABREAST).map(side_by_side).collect();
    if tables.is_empty() {
        return String::new();
    }
    let title = format!("Stride from which 4 KiB pages win, {}: with 95 % intervals", view.name());
    let legend = "< the smallest stride: they win at all of them; > the largest: at none.";
    wrapped("", "  ", &title) + &tables.join("\n") + &wrapped("", "", legend)
}

/// `31.2 KiB [28.0 KiB, 36.1 KiB]`
fn words(crossover: &Crossover) -> String {
    let within =
        crossover.interval.map(|ReachInterval { lo, hi, .. }| format!(" [{}, {}]", lo.in_bytes(), hi.in_bytes()));
    crossover.value.in_bytes() + &within.unwrap_or_default()
}

fn numbers(head: Vec<String>, rows: &[Vec<String>]) -> String {
    let head: Vec<(&str, Align)> = head
        .iter()
        .enumerate()
        .map(|(nth, name)| (name.as_str(), if nth == 0 { Align::Left } else { Align::Right }))
        .collect();
    table(&head, rows)
}
