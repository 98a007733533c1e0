//! Levels of the factors, and probes, as they are typed.

use std::ffi::OsStr;

use clap::{
    Arg, ValueEnum,
    builder::{EnumValueParser, PossibleValue, TypedValueParser},
    error::{ContextKind, ContextValue},
};
use vmtax_core::{
    probe::Probe,
    setting::Backing,
    units::{Bytes, PageSize},
};

/// Levels of the guest's leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GuestLevel {
    /// No guest: native alone
    None,
    /// 4 KiB pages
    #[value(name = "4k")]
    Small,
    /// 2 MiB pages
    #[value(name = "2m")]
    Large,
    /// 1 GiB pages
    #[value(name = "1g")]
    Giant,
}

impl GuestLevel {
    /// The leaf; none for native.
    pub fn leaf(self) -> Option<PageSize> {
        match self {
            GuestLevel::None => None,
            GuestLevel::Small => Some(PageSize::Small),
            GuestLevel::Large => Some(PageSize::Large),
            GuestLevel::Giant => Some(PageSize::Giant),
        }
    }
}

/// Levels of the host's backing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HostLevel {
    /// Anonymous memory in 4 KiB pages
    #[value(name = "4k")]
    Small,
    /// Transparent 2 MiB pages
    #[value(name = "thp")]
    Thp,
    /// 2 MiB pages from the hugetlb pool
    #[value(name = "2m")]
    Huge2m,
    /// 1 GiB pages from the hugetlb pool
    #[value(name = "1g")]
    Huge1g,
}

impl HostLevel {
    pub fn backing(self) -> Backing {
        match self {
            HostLevel::Small => Backing::Small,
            HostLevel::Thp => Backing::Thp,
            HostLevel::Huge2m => Backing::Huge2m,
            HostLevel::Huge1g => Backing::Huge1g,
        }
    }
}

/// A probe, by the name and description the core gives it.
#[derive(Debug, Clone, Copy)]
pub struct ProbeName(pub Probe);

impl ValueEnum for ProbeName {
    fn value_variants<'a>() -> &'a [Self] {
        const NAMES: [ProbeName; Probe::ALL.len()] = {
            let mut names = [ProbeName(Probe::Chase); Probe::ALL.len()];
            let mut i = 0;
            while i < names.len() {
                names[i] = ProbeName(Probe::ALL[i]);
                i += 1;
            }
            names
        };
        &NAMES
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()).help(self.0.about()))
    }
}

/// Reads the level of a factor. Of names that are nearly right clap tells the nearest; of page sizes that do not exist, this.
#[derive(Debug, Clone)]
pub struct Level<L: ValueEnum + Clone + Send + Sync + 'static>(EnumValueParser<L>);

impl<L: ValueEnum + Clone + Send + Sync + 'static> Level<L> {
    pub(crate) fn parser() -> Self {
        Level(EnumValueParser::new())
    }

    /// The page size nearest to a size that is none, by ratio: `2m` for `3m`.
    fn nearest(&self, value: &OsStr) -> Option<String> {
        let size = |text: &str| text.parse::<Bytes>().ok().filter(|size| size.0 > 0).map(|size| (size.0 as f64).ln());
        let asked = size(value.to_str()?)?;
        let names = L::value_variants().iter().filter_map(L::to_possible_value);
        let sizes = names.filter_map(|name| Some((name.get_name().to_owned(), (size(name.get_name())? - asked).abs())));
        sizes.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(name, _)| name)
    }
}

impl<L: ValueEnum + Clone + Send + Sync + 'static> TypedValueParser for Level<L> {
    type Value = L;

    fn parse_ref(&self, command: &clap::Command, arg: Option<&Arg>, value: &OsStr) -> Result<L, clap::Error> {
        self.0.parse_ref(command, arg, value).map_err(|mut error| {
            if error.get(ContextKind::SuggestedValue).is_none()
                && let Some(nearest) = self.nearest(value)
            {
                error.insert(ContextKind::SuggestedValue, ContextValue::String(nearest));
            }
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_page_size_is_answered_with_the_nearest() {
        let check = |text: &str, expected: Option<&str>| {
            let nearest = Level::<GuestLevel>::parser().nearest(OsStr::new(text));
            assert_eq!(nearest.as_deref(), expected, "{text}");
        };
        check("3m", Some("2m"));
        check("64k", Some("4k"));
        check("4194304", Some("2m"));
        check("512m", Some("1g"));
        check("huge", None);
        check("0", None);
    }
}
