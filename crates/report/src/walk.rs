//! Walks: curves over the strides, where small pages begin to win, and how that moves with the passes.

mod export;
mod table;

use vmtax_core::{
    experiment::Record,
    plan::{Task, Walk},
    setting::Backing,
    units::{Bytes, KIB, MIB},
    walk::{Panel, metric, pass_counts, walks},
};

pub use export::{csv, json};

use crate::{
    plot::{self, Curve},
    row::workloads,
    wrap::wrapped,
};

/// A curve over fewer strides is no curve: the table has its figures.
const FEWEST_PLACES: usize = 4;

/// The walks of one panel, and what they have in common.
struct View<'r> {
    record: &'r Record,
    /// By name.
    walks: &'r [(String, Walk)],
    panel: Panel,
    /// Distances, ascending.
    strides: Vec<Bytes>,
    /// Backings with at least one figure, in the order of the plan.
    hosts: Vec<Backing>,
}

impl View<'_> {
    /// The views of a workload, in the order of the plan.
    fn all<'r>(record: &'r Record, walks: &'r [(String, Walk)]) -> Vec<View<'r>> {
        let mut panels: Vec<Panel> = Vec::new();
        for panel in walks.iter().map(|(_, walk)| Panel::of(walk)) {
            if !panels.contains(&panel) {
                panels.push(panel);
            }
        }
        let view = |panel| {
            let own = || walks.iter().filter(move |(_, walk)| Panel::of(walk) == panel);
            let mut strides: Vec<Bytes> = own().map(|(_, walk)| walk.stride).collect();
            strides.sort_unstable();
            strides.dedup();
            let mut hosts: Vec<Backing> = Vec::new();
            for (cell, walk) in own() {
                if !hosts.contains(&walk.setting.host) && record.findings(cell).next().is_some() {
                    hosts.push(walk.setting.host);
                }
            }
            View { record, walks, panel, strides, hosts }
        };
        panels.into_iter().map(view).collect()
    }

    fn cell(&self, host: Backing, stride: Bytes) -> Option<&str> {
        let is_meant =
            |walk: &Walk| Panel::of(walk) == self.panel && (walk.setting.host, walk.stride) == (host, stride);
        self.walks.iter().find(|(_, walk)| is_meant(walk)).map(|(cell, _)| cell.as_str())
    }

    /// The numbers of passes after which some trial tells its average.
    fn pass_counts(&self) -> Vec<u32> {
        pass_counts(self.panel.passes)
    }

    /// `sequential`, and what else tells this panel from others.
    fn name(&self) -> String {
        let guest = self.panel.guest.map_or(String::new(), |leaf| format!(" in a guest of {} pages", leaf.name()));
        format!("{}{guest}, {}", self.panel.order.name(), self.panel.size)
    }

    fn curves(&self, passes: u32) -> String {
        let metric = metric(passes);
        let value = |host, stride| Some(self.record.estimate(self.cell(host, stride)?, &metric)?.value);
        let curve = |&host: &Backing| Curve {
            letter: letter(host),
            values: self.strides.iter().map(|&stride| value(host, stride)).collect(),
        };
        let places: Vec<String> = self.strides.iter().map(|stride| short(*stride)).collect();
        if !(FEWEST_PLACES..=plot::MOST_PLACES).contains(&places.len()) {
            return String::new();
        }
        let plot = plot::text(&places, &self.hosts.iter().map(curve).collect::<Vec<_>>());
        if plot.is_empty() {
            return plot;
        }
        let key: Vec<String> = self.hosts.iter().map(|host| format!("{} {host}", letter(*host))).collect();
        let after = if passes == 1 { "1 pass".to_owned() } else { format!("{passes} passes") };
        let title = format!("ns a reference after {after}, {} ({}, * several)", self.name(), key.join(", "));
        format!(
            "{}{plot}{:10}stride in bytes (K: KiB, M: MiB), both scales logarithmic\n",
            wrapped("", "  ", &title),
            ""
        )
    }
}

/// Curves and crossovers, of every workload of this kind.
pub(crate) fn body(record: &Record) -> String {
    let of = |workload: &str| {
        let walks = walks(record, workload);
        let mut parts: Vec<String> = Vec::new();
        for view in View::all(record, &walks) {
            // A limit of references may leave no stride all passes.
            let told = |passes: &u32| {
                let metric = metric(*passes);
                view.walks.iter().any(|(cell, walk)| {
                    Panel::of(walk) == view.panel
                        && record.findings(cell).any(|(_, found)| found.value(&metric).is_some())
                })
            };
            let counts: Vec<u32> = view.pass_counts().into_iter().filter(told).collect();
            let mut drawn: Vec<u32> = counts.first().into_iter().chain(counts.last()).copied().collect();
            drawn.dedup();
            parts.extend(drawn.into_iter().map(|passes| view.curves(passes)));
            parts.push(table::figures(&view));
            parts.push(table::crossovers(&view, &counts));
        }
        parts.push(limit(&walks));
        parts
    };
    let parts: Vec<String> = workloads(record, Task::Walk).into_iter().flat_map(of).collect();
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// That not every walk made all of its passes.
fn limit(walks: &[(String, Walk)]) -> String {
    let limited = walks.iter().find(|(_, walk)| walk.passes_made() < walk.passes);
    let most = limited.and_then(|(_, walk)| walk.references);
    most.map_or(String::new(), |most| {
        let text = format!(
            "A trial makes at most {:.0} million references: the smallest strides have fewer passes.",
            most as f64 / 1e6
        );
        wrapped("", "", &text)
    })
}

fn letter(host: Backing) -> char {
    match host {
        Backing::Small => '4',
        Backing::Thp => 't',
        Backing::Huge2m => '2',
        Backing::Huge1g => '1',
    }
}

/// `128`, `32K`, `2M`.
fn short(stride: Bytes) -> String {
    match stride.0 {
        n if n >= MIB => format!("{}M", n / MIB),
        n if n >= KIB => format!("{}K", n / KIB),
        n => n.to_string(),
    }
}

#[cfg(test)]
mod tests;
