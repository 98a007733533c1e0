//! The parameters of a program, each with its value.

use super::Program;
use crate::{factor::Level, units::Bytes};

/// A value for every parameter of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values(Vec<(&'static str, Level)>);

impl Values {
    /// The defaults of `program`, with those in `given` set. Names that are none of its parameters and levels that a
    /// parameter does not admit are answered with the accepted form.
    pub fn new(program: &Program, given: &[(&str, Level)]) -> Result<Values, super::Unfit> {
        let unknown = given.iter().find(|(name, _)| !program.parameters.iter().any(|known| known.name == *name));
        if let Some((name, _)) = unknown {
            let names: Vec<&str> = program.parameters.iter().map(|parameter| parameter.name).collect();
            return Err(super::Unfit(format!("{} has no `{name}`, but: {}", program.name, names.join(", "))));
        }
        let value = |parameter: &crate::plan::Parameter| {
            let level = given.iter().find(|(name, _)| *name == parameter.name).map(|(_, level)| *level);
            match level {
                None => Ok((parameter.name, parameter.default_value())),
                Some(level) if parameter.values.admits(level) => Ok((parameter.name, level)),
                Some(level) => {
                    let accepted = parameter.values.accepted();
                    Err(super::Unfit(format!("`{}` cannot be {level}: {accepted}", parameter.name)))
                }
            }
        };
        program.parameters.iter().map(value).collect::<Result<_, _>>().map(Values)
    }

    /// Those written as `name = value`, each as a plan writes it.
    #[cfg(test)]
    pub(super) fn written(program: &Program, given: &[(&str, &str)]) -> Values {
        let level = |(name, text): &(&'static str, &str)| {
            let parameter = program.parameters.iter().find(|parameter| parameter.name == *name).unwrap();
            (*name, parameter.values.parse(text).unwrap())
        };
        let given: Vec<(&'static str, &str)> = given
            .iter()
            .map(|(name, text)| {
                let known = program.parameters.iter().find(|parameter| parameter.name == *name);
                (known.unwrap_or_else(|| panic!("{} has no {name}", program.name)).name, *text)
            })
            .collect();
        Values::new(program, &given.iter().map(level).collect::<Vec<_>>()).unwrap()
    }

    /// Each with its name, in the program's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Level)> {
        self.0.iter().copied()
    }

    pub(super) fn count(&self, name: &str) -> u64 {
        self.level(name).count().expect("the row of the program gives it a count")
    }

    pub(super) fn size(&self, name: &str) -> Bytes {
        self.level(name).size().expect("the row of the program gives it a size")
    }

    pub(super) fn word(&self, name: &str) -> &'static str {
        self.level(name).word().expect("the row of the program gives it words")
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        self.word(name) == "on"
    }

    fn level(&self, name: &str) -> Level {
        let own = self.0.iter().find(|(own, _)| *own == name);
        own.map(|(_, level)| *level).expect("a test runs every script with every parameter of its row")
    }
}
