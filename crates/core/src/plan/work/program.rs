//! The kinds of workload that run other people's programs: one for each of [`PROGRAMS`], and one for the plan's own.

use std::sync::LazyLock;

use super::{Ground, Kind, Parameter, Task};
use crate::{
    factor::Grammar,
    program::{PROGRAMS, Program},
};

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| PROGRAMS.iter().map(|program| of(program)).collect());

static COMMAND: Kind = Kind {
    name: "command",
    about: "a program of the plan's author",
    task: Task::Command,
    ground: Ground::System,
    factors: &[],
    // Seconds after which it is killed.
    own: &[Parameter { name: "timeout", values: Grammar::Count(1, 604_800), default: "3600" }],
};

fn of(program: &'static Program) -> Kind {
    let Program { name, about, parameters, .. } = *program;
    Kind { name, about, task: Task::Program(program), ground: Ground::System, factors: &[], own: parameters }
}

impl Kind {
    /// That of the benchmark program of this name.
    pub fn of_program(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// That of a plan's own commands.
    pub fn of_command() -> &'static Kind {
        &COMMAND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_a_kind_under_a_name_of_its_own() {
        for program in PROGRAMS {
            let kind = Kind::of_program(program.name).unwrap();
            assert_eq!((kind.task, kind.own), (Task::Program(program), program.parameters));
            assert!(Kind::named(program.name).is_none(), "{} is a probe as well", program.name);
        }
    }
}
