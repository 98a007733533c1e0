//! `[factors]`: what is varied, over which levels.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::{Entry, Reader, entries, meant};
use crate::{
    factor::{FACTORS, Factor},
    plan::Varied,
};

impl<'t> Reader<'t> {
    /// The factors in the order of their table, and where their names stand.
    pub(super) fn factors(&mut self, document: &DeTable<'t>) -> (Vec<Varied>, Vec<Range<usize>>) {
        let Some((table, _)) = self.table(document, "factors") else { return Default::default() };
        let mut factors: Vec<(Varied, Range<usize>)> =
            entries(table).iter().filter_map(|entry| Some((self.varied(entry)?, entry.span.clone()))).collect();
        factors.sort_by_key(|(varied, _)| FACTORS.iter().position(|factor| factor.name == varied.factor.name));
        factors.into_iter().unzip()
    }

    fn varied(&mut self, entry: &Entry<'_, 't>) -> Option<Varied> {
        let factor = self.factor(entry.key, entry.span.clone())?;
        let DeValue::Array(array) = entry.value.get_ref() else {
            let list = format!("levels stand in a list: [{}]", self.source(entry.value.span()));
            self.report(format!("`{}` has no list of levels", factor.name), entry.value.span(), list);
            return None;
        };
        if array.is_empty() {
            let message = format!("`{}` has no levels", factor.name);
            self.report(message, entry.value.span(), factor.levels.accepted());
            return None;
        }
        let mut levels = Vec::new();
        for value in array.iter() {
            match self.level(factor.levels, factor.name, value) {
                Some(level) if levels.contains(&level) => {
                    let message = format!("`{}` has the level {level} twice", factor.name);
                    self.report(message, value.span(), "each level is measured in every block: name it once");
                }
                level => levels.extend(level),
            }
        }
        (!levels.is_empty()).then_some(Varied { factor, levels })
    }

    /// The factor of this name; reports that there is none.
    fn factor(&mut self, name: &str, span: Range<usize>) -> Option<&'static Factor> {
        let factor = Factor::named(name);
        if factor.is_none() {
            let names = || FACTORS.iter().map(|factor| factor.name);
            let label = format!("factors are: {}{}", names().collect::<Vec<_>>().join(", "), meant(name, names()));
            self.report(format!("no factor named `{name}`"), span, label);
        }
        factor
    }

    /// The factor of this name among those of the plan; reports that there is none.
    pub(super) fn factor_in<'p>(
        &mut self,
        factors: &'p [Varied],
        name: &str,
        span: Range<usize>,
    ) -> Option<&'p Varied> {
        let varied = factors.iter().find(|varied| varied.factor.name == name);
        if varied.is_none() && self.factor(name, span.clone()).is_some() {
            let names: Vec<&str> = factors.iter().map(|varied| varied.factor.name).collect();
            let label = match names.is_empty() {
                true => "it has none: add [factors]".to_owned(),
                false => format!("its factors are: {}", names.join(", ")),
            };
            self.report(format!("`{name}` is no factor of this plan"), span, label);
        }
        varied
    }
}
