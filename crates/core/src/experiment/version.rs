//! Versions of benchmark programs in runs: what was measured by two of them is not compared.

use super::{Finding, Record};
use crate::{
    plan::Task,
    program::{Mixed, Program, same_version_in},
};

impl Record {
    /// Two versions of the program of a workload among its good trials: the program was changed between two sessions.
    pub fn mixed(&self, workload: &str) -> Option<Mixed> {
        same(self.program(workload)?, &self.versions(workload, ""))
    }

    /// Two versions of one program, in an earlier run and in this one.
    pub fn mixed_with(&self, earlier: &Record) -> Option<Mixed> {
        self.plan.workloads.iter().find_map(|workload| {
            let program = self.program(&workload.name)?;
            let mut found = earlier.versions(&workload.name, &format!("run {}, ", earlier.id));
            found.extend(self.versions(&workload.name, &format!("run {}, ", self.id)));
            same(program, &found)
        })
    }

    fn program(&self, workload: &str) -> Option<&'static Program> {
        match self.plan.workload(workload)?.kind.task {
            Task::Program(program) => Some(program),
            Task::Probe(_) | Task::Touch | Task::Walk | Task::Reserve | Task::Rights | Task::Bloat => None,
            Task::Os | Task::Command => None,
        }
    }

    /// What good trials of a workload found, each with its place.
    fn versions(&self, workload: &str, run: &str) -> Vec<(String, &Finding)> {
        let cells = self.plan.cells().into_iter().filter(|cell| cell.workload == workload).map(|cell| cell.name());
        let of = |cell: String| {
            let good = self.trials.iter().filter_map(|trial| Some((trial, trial.outcome.finding()?)));
            let own = good.filter(|(trial, _)| trial.cell == cell);
            own.map(|(trial, finding)| (format!("{run}{cell}, block {}", trial.block + 1), finding)).collect::<Vec<_>>()
        };
        cells.flat_map(of).collect()
    }
}

fn same(program: &Program, found: &[(String, &Finding)]) -> Option<Mixed> {
    same_version_in(program, found.iter().map(|(place, finding)| (place.as_str(), *finding))).err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        experiment::{Better, Metric, Outcome, Trial},
        host::Host,
        plan::Plan,
    };

    fn record(id: &str, versions: &[&str]) -> Record {
        let text = "[factors]\nthp = [\"never\", \"always\"]\n[[workload]]\nprogram = \"sysbench-cpu\"\n";
        let plan = Plan::parse("plan.toml", text).unwrap();
        let cells = plan.cells();
        let trial = |(block, version): (usize, &&str)| {
            let found = |value: f64| {
                let rate = Metric { name: "rate".into(), value, unit: "events/s".into(), better: Better::Higher };
                let evidence = [("sysbench.version".to_owned(), (*version).to_owned())].into();
                Outcome::Ok(Finding { metrics: vec![rate], evidence, caveats: Vec::new() })
            };
            let of = |place: usize| Trial {
                block: block as u32,
                place: place as u32,
                cell: cells[place].name(),
                outcome: found(1.0 + place as f64),
            };
            [0, 1].map(of)
        };
        Record {
            id: id.to_owned(),
            started: String::new(),
            name: String::new(),
            seed: 0,
            host: Host::default(),
            ending: None,
            seconds: None,
            trials: versions.iter().enumerate().flat_map(trial).collect(),
            missing: Vec::new(),
            plan,
        }
    }

    #[test]
    fn ratios_and_effects_are_those_of_one_version() {
        let [same, mixed] = [["1.0.20", "1.0.20"], ["1.0.20", "1.1.0"]].map(|versions| record("a", &versions));
        assert!(same.mixed("sysbench-cpu").is_none() && same.sheets()[0].rows[1].ratio.is_some());
        let said = mixed.mixed("sysbench-cpu").unwrap().to_string();
        assert!(
            said.starts_with("sysbench-cpu is 1.0.20 for `sysbench-cpu thp=never, block 1` and 1.1.0 for "),
            "{said}"
        );
        let sheet = &mixed.sheets()[0];
        assert!(sheet.rows.iter().all(|row| row.ratio.is_none()) && sheet.effects.effects.is_empty());
        assert!(mixed.by(crate::factor::Factor::named("thp").unwrap()).is_empty());
    }

    #[test]
    fn runs_are_of_one_version() {
        let [old, new] = ["1.0.20", "1.1.0"].map(|version| record(version, &[version]));
        assert_eq!(new.mixed_with(&new), None);
        assert!(new.mixed_with(&old).unwrap().to_string().contains("`run 1.0.20, sysbench-cpu thp=never, block 1`"));
    }
}
