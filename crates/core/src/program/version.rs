//! Versions are not mixed: sysbench 0.4, 1.0 and 1.1 count differently, and so do old and new hackbench.

use super::Program;
use crate::experiment::Finding;

/// Two versions of one program where there should be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{program} is {first} for `{first_at}` and {other} for `{other_at}`: versions are not comparable; \
     install the same one on both sides"
)]
pub struct Mixed {
    /// The program.
    pub program: String,
    /// A version.
    pub first: String,
    /// Where it was found.
    pub first_at: String,
    /// The other.
    pub other: String,
    /// Where that was found.
    pub other_at: String,
}

/// Refuses a comparison of several versions of `program`. `found` are places, such as cells or runs, with the version
/// each had.
pub fn same_version<'a>(
    program: &str,
    found: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Option<String>, Mixed> {
    let mut found = found.into_iter();
    let Some((first_at, first)) = found.next() else { return Ok(None) };
    match found.find(|(_, version)| *version != first) {
        None => Ok(Some(first.to_owned())),
        Some((other_at, other)) => Err(Mixed {
            program: program.to_owned(),
            first: first.to_owned(),
            first_at: first_at.to_owned(),
            other: other.to_owned(),
            other_at: other_at.to_owned(),
        }),
    }
}

/// The same, of findings of one program. Findings that do not tell a version cannot be refused.
pub fn same_version_in<'a>(
    program: &Program,
    found: impl IntoIterator<Item = (&'a str, &'a Finding)>,
) -> Result<Option<String>, Mixed> {
    let name = program.needs.version_evidence();
    let version = |(place, finding): (&'a str, &'a Finding)| Some((place, finding.evidence.get(&name)?.as_str()));
    same_version(program.name, found.into_iter().filter_map(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_findings() {
        let sysbench = Program::named("sysbench-cpu").unwrap();
        let of = |version: &str| Finding {
            evidence: [("sysbench.version".to_owned(), version.to_owned())].into(),
            ..Finding::default()
        };
        let (old, new) = (of("1.0.11"), of("1.0.20"));
        assert_eq!(same_version_in(sysbench, [("a", &new), ("b", &new)]), Ok(Some("1.0.20".into())));
        assert!(same_version_in(sysbench, [("a", &new), ("b", &Finding::default()), ("c", &old)]).is_err());
    }

    #[test]
    fn versions_are_never_mixed() {
        assert_eq!(same_version("sysbench", []), Ok(None));
        assert_eq!(same_version("sysbench", [("native", "1.0.20"), ("guest", "1.0.20")]), Ok(Some("1.0.20".into())));
        let mixed = same_version("sysbench", [("native", "1.0.20"), ("guest", "1.0.11")]).unwrap_err();
        assert_eq!(
            mixed.to_string(),
            "sysbench is 1.0.20 for `native` and 1.0.11 for `guest`: versions are not comparable; install the same \
             one on both sides"
        );
    }
}
