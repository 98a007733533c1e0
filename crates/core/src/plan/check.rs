//! What can be said about a plan only when all of it is known: that every part of it has an effect, and one baseline.

use std::ops::Range;

use super::{Exclusion, Ground, Plan, Workload, diagnostic::Diagnostic, read::Spans};
use crate::{
    factor::{Factor, Scope},
    probe::Probe,
};

/// What is wrong with a plan whose parts are each well written.
pub(super) fn plan(plan: &Plan, spans: &Spans) -> Vec<Diagnostic> {
    [coarse_probes(plan, spans), idle_factors(plan, spans), idle_exclusions(plan, spans), idle_workloads(plan, spans)]
        .into_iter()
        .find(|errors| !errors.is_empty())
        .unwrap_or_else(|| ambiguous_baselines(plan, spans))
}

/// Strides that a probe cannot go.
fn coarse_probes(plan: &Plan, spans: &Spans) -> Vec<Diagnostic> {
    let judge = |(workload, span): (&Workload, &Range<usize>)| {
        let grain = Probe::ALL.into_iter().find(|probe| probe.name() == workload.kind.name)?.grain();
        let settings = plan.settings(workload);
        let strides = settings.iter().filter_map(|setting| workload.parameter("stride", setting)?.size());
        let wrong = strides.into_iter().find(|stride| stride.0 % grain.0 != 0)?;
        let message = format!("`{}` cannot go at a stride of {wrong}", workload.name);
        let label = format!("strides of this probe are multiples of {grain}; `walk` takes any from 4 B on");
        Some(Diagnostic::new(message, span.clone(), label))
    };
    plan.workloads.iter().zip(&spans.workloads).filter_map(judge).collect()
}

fn idle_factors(plan: &Plan, spans: &Spans) -> Vec<Diagnostic> {
    let settings: Vec<_> = plan.workloads.iter().flat_map(|workload| plan.product(workload)).collect();
    let is_idle = |factor: &Factor| settings.iter().all(|setting| setting.named(factor.name).is_none());
    let idle = plan.factors.iter().zip(&spans.factors).filter(|(varied, _)| is_idle(varied.factor));
    idle.map(|(varied, span)| {
        let label = match varied.factor.scope {
            Scope::Host => "settings of every workload have it",
            Scope::Memory => "it means nothing to programs and workloads on the host itself",
            Scope::Virtual if plan.workloads.iter().all(|workload| workload.kind.ground == Ground::System) => {
                "programs have no memory of their own for which it could be told"
            }
            Scope::Virtual => "it means something in a virtual machine only: add venue = [\"microvm\"]",
            Scope::Guest => "it means something in a Linux guest only: add venue = [\"guest\"]",
            Scope::Parameter => "no workload has a parameter that follows it",
        };
        Diagnostic::new(format!("`{}` applies to nothing here", varied.factor.name), span.clone(), label)
    })
    .collect()
}

fn idle_exclusions(plan: &Plan, spans: &Spans) -> Vec<Diagnostic> {
    let excludes_some = |workload: &Workload, exclusion: &Exclusion| {
        plan.product(workload).iter().any(|setting| exclusion.excludes(workload, setting))
    };
    let idle = |exclusion: &Exclusion| !plan.workloads.iter().any(|w| excludes_some(w, exclusion));
    let found = plan.exclusions.iter().zip(&spans.exclusions).filter(|(exclusion, _)| idle(exclusion));
    found
        .map(|(_, span)| {
            let label = "no setting has all of these levels: native ones have no guest, for instance";
            Diagnostic::new("this excludes nothing", span.clone(), label)
        })
        .collect()
}

fn idle_workloads(plan: &Plan, spans: &Spans) -> Vec<Diagnostic> {
    let idle = plan.workloads.iter().zip(&spans.workloads).filter(|(workload, _)| plan.settings(workload).is_empty());
    idle.map(|(workload, span)| {
        let message = format!("every setting of `{}` is excluded", workload.name);
        Diagnostic::new(message, span.clone(), "exclude less, or drop the workload")
    })
    .collect()
}

/// More settings than this are counted, not listed.
const LISTED: usize = 3;

fn ambiguous_baselines(plan: &Plan, spans: &Spans) -> Vec<Diagnostic> {
    if plan.baseline.is_none() {
        return Vec::new();
    }
    let judge = |workload: &Workload| {
        let matching = plan.baselines(workload);
        let label = match matching.len() {
            1 => return None,
            0 if excluded_baseline(plan, workload) => "an exclusion leaves it out".to_owned(),
            0 => "no setting has all of these levels: native ones have no guest, for instance".to_owned(),
            n => {
                let names: Vec<String> = matching.iter().take(LISTED).map(|s| format!("`{s}`")).collect();
                let more = if n > LISTED { format!(" and {} more", n - LISTED) } else { String::new() };
                format!("name the levels that tell {}{more} apart", names.join(", "))
            }
        };
        let n = if matching.is_empty() { "no".to_owned() } else { matching.len().to_string() };
        let noun = if matching.is_empty() { "setting" } else { "settings" };
        let message = format!("the baseline matches {n} {noun} of `{}`; it must match one", workload.name);
        Some(Diagnostic::new(message, spans.baseline.clone(), label))
    };
    plan.workloads.iter().filter_map(judge).collect()
}

fn excluded_baseline(plan: &Plan, workload: &Workload) -> bool {
    let unrestricted = Plan { exclusions: Vec::new(), ..plan.clone() };
    !unrestricted.baselines(workload).is_empty()
}
