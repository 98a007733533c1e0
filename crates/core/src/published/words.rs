//! How a statement is judged, in words.

use std::fmt;

use super::{Bound, Crossing, Fact, Ratio, Test, Value, WalkReferences};
use crate::factor::Level;

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Test::Crossover(crossing) => crossing.fmt(f),
            Test::Value(value) => value.fmt(f),
            Test::Ratio(ratio) => ratio.fmt(f),
            Test::Fact(fact) => fact.fmt(f),
            Test::WalkReferences(references) => references.fmt(f),
        }
    }
}

impl fmt::Display for Crossing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Crossing { workload, metric, along, incumbent, challenger, at, within, .. } = self;
        let of = |place: f64| match along.levels {
            crate::factor::Grammar::Size(_) => Level::Size(crate::units::Bytes(place as u64)),
            _ => Level::Count(place as u64),
        };
        let (near, far) = (of(at / within), of(at * within));
        write!(f, "a crossover: {metric} of {workload} along {}, {challenger} against {incumbent}; ", along.name)?;
        write!(f, "{near} to {far} agree with {}", of(*at))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Value { workload, metric, of, demands, bound } = self;
        write!(f, "a value: {metric} of {workload} {of} {bound}")?;
        demands.iter().try_for_each(|(key, value)| write!(f, ", where trials had {key} {value}"))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ratio { workload, measures, bound, .. } = self;
        write!(f, "a ratio of {workload}, paired in blocks: {measures}; {bound}")
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fact { workload, evidence, is } = self;
        write!(f, "a fact: {workload} finds {evidence} to be {is}")
    }
}

impl fmt::Display for WalkReferences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WalkReferences { guest, host, published } = self;
        write!(f, "arithmetic: {published} references through {guest} levels in the guest and {host} in the host")
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Below(bound) => write!(f, "below {bound}"),
            Bound::Above(bound) => write!(f, "above {bound}"),
        }
    }
}
