//! `[[exclude]]` and `[baseline]`: some levels, that tell some settings.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Entry, Reader, entries, meant};
use crate::{
    factor::{Factor, Level},
    plan::{Exclusion, Setting, Varied, Workload},
};

impl<'t> Reader<'t> {
    /// The exclusions, and where their headings stand.
    pub(super) fn exclusions(
        &mut self,
        document: &DeTable<'t>,
        factors: &[Varied],
        workloads: &[Workload],
    ) -> (Vec<Exclusion>, Vec<Range<usize>>) {
        let tables = self.tables(document, "exclude");
        tables.into_iter().map(|(table, heading)| (self.exclusion(table, factors, workloads), heading)).unzip()
    }

    fn exclusion(&mut self, table: &DeTable<'t>, factors: &[Varied], workloads: &[Workload]) -> Exclusion {
        let mut exclusion = Exclusion { workload: None, levels: Vec::new() };
        for entry in entries(table) {
            if entry.key == "workload" {
                exclusion.workload = self.workload_name(&entry, workloads);
            } else if let Some(varied) = self.factor_in(factors, entry.key, entry.span.clone()) {
                let values: Vec<&Spanned<DeValue>> = match entry.value.get_ref() {
                    DeValue::Array(array) => array.iter().collect(),
                    _ => vec![entry.value],
                };
                let levels = values.into_iter().filter_map(|value| self.level_in(varied, value)).collect();
                exclusion.levels.push((varied.factor, levels));
            }
        }
        exclusion
    }

    fn workload_name(&mut self, entry: &Entry<'_, 't>, workloads: &[Workload]) -> Option<String> {
        let written = entry.value.get_ref().as_str().unwrap_or("");
        let names = || workloads.iter().map(|workload| workload.name.as_str());
        if !names().any(|name| name == written) {
            let label = format!("workloads are: {}{}", names().collect::<Vec<_>>().join(", "), meant(written, names()));
            let message = format!("no workload named {}", self.source(entry.value.span()).replace('"', "`"));
            self.report(message, entry.value.span(), label);
        }
        Some(written.to_owned())
    }

    /// The levels that tell the baseline, and where its heading stands.
    pub(super) fn baseline(&mut self, document: &DeTable<'t>, factors: &[Varied]) -> (Option<Setting>, Range<usize>) {
        let Some((table, heading)) = self.table(document, "baseline") else { return (None, 0..0) };
        let levels: Vec<(&'static Factor, Level)> = entries(table)
            .iter()
            .filter_map(|entry| {
                let varied = self.factor_in(factors, entry.key, entry.span.clone())?;
                Some((varied.factor, self.level_in(varied, entry.value)?))
            })
            .collect();
        (Some(Setting::new(levels)), heading)
    }

    /// A level that the plan gives the factor.
    fn level_in(&mut self, varied: &Varied, value: &Spanned<DeValue>) -> Option<Level> {
        let Varied { factor, levels } = varied;
        let level = self.level(factor.levels, factor.name, value)?;
        if !levels.contains(&level) {
            let levels: Vec<String> = levels.iter().map(Level::to_string).collect();
            let message = format!("{level} is no level of `{}` in this plan", factor.name);
            self.report(message, value.span(), format!("its levels are: {}", levels.join(", ")));
            return None;
        }
        Some(level)
    }
}
