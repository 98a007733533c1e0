//! Effects as people read them.

use std::fmt;

use super::{Balance, Choice, Effect, Effects, Term};
use crate::prose::change_within;

impl fmt::Display for Choice {
    /// `host 2m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} {}", self.factor.name, self.level))
    }
}

impl fmt::Display for Term {
    /// `host 2m`, `host 2m with guest 2m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Main(choice) => f.pad(&choice.to_string()),
            Term::Interaction(one, other) => f.pad(&format!("{one} with {other}")),
        }
    }
}

impl Effect {
    /// `host 2m: −9.6 % [−11, −8.1]`, `host 2m with guest 2m: a further −15 % [−18, −12]`, and what stands in the way
    /// of believing it.
    pub fn sentence(&self) -> String {
        let further = match self.term {
            Term::Main(_) => "",
            Term::Interaction(..) => "a further ",
        };
        let doubt = match (self.distinguishable, self.change.interval) {
            (Some(true), _) => "",
            (Some(false), _) => ", not distinguishable from noise",
            (None, None) => ", from one block: no interval",
            (None, Some(_)) => ", not compared with noise: the baseline's twin is missing",
        };
        format!("{}: {further}{}{doubt}", self.term, change_within(&self.change))
    }
}

impl Effects {
    /// What a reader must know about all of them.
    pub fn notes(&self) -> Vec<String> {
        let references: Vec<String> = self.references.iter().map(Choice::to_string).collect();
        let mut notes = vec![format!(
            "each level against {}, on average over the other factors; \
             \"a further\" is beyond what a level does with those",
            references.join(", ")
        )];
        match self.balance {
            Balance::Balanced => {}
            Balance::LeastSquares => notes.push(
                "the levels do not occur together equally often: effects are by least squares within blocks".to_owned(),
            ),
        }
        if !self.inestimable.is_empty() {
            let terms: Vec<String> = self.inestimable.iter().map(Term::to_string).collect();
            notes.push(format!("cannot be told from other effects in these settings: {}", terms.join(", ")));
        }
        notes
    }
}
