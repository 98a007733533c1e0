//! From a plan to what it measures: settings × workloads, less what is excluded, and a twin of each baseline.

use super::{Cell, Exclusion, Ground, Plan, Setting, Task, Value, Varied, Workload};
use crate::{
    factor::{FACTORS, Factor, Hardness, Level, Scope},
    setting::Replica,
};

impl Plan {
    /// Every cell of a block, twins included (of facts alone there is none): by workload, in the order of the plan, the first factor varying slowest.
    pub fn cells(&self) -> Vec<Cell> {
        let of = |workload: &Workload| {
            let cell = |setting, replica| Cell { workload: workload.name.clone(), setting, replica };
            let twin = self.baseline(workload).filter(|_| workload.kind.task != Task::Rights);
            let twin = twin.map(|setting| cell(setting, Replica::APrime));
            self.settings(workload).into_iter().map(|setting| cell(setting, Replica::A)).chain(twin).collect::<Vec<_>>()
        };
        self.workloads.iter().flat_map(of).collect()
    }

    /// The cell of this [name](Cell::name), under which its results are kept.
    pub fn cell(&self, name: &str) -> Option<Cell> {
        self.cells().into_iter().find(|cell| cell.name() == name)
    }

    /// The settings of a workload of this plan that are not excluded.
    pub fn settings(&self, workload: &Workload) -> Vec<Setting> {
        let is_excluded = |setting: &Setting| self.exclusions.iter().any(|e| e.excludes(workload, setting));
        self.product(workload).into_iter().filter(|setting| !is_excluded(setting)).collect()
    }

    /// What the settings of a workload are compared with: the one that agrees with `[baseline]`, or the first where the
    /// plan has none. A parsed plan has one for each of its workloads.
    pub fn baseline(&self, workload: &Workload) -> Option<Setting> {
        self.baselines(workload).into_iter().next()
    }

    /// The settings that `[baseline]` leaves open; all of them without one. A factor that means nothing to the workload
    /// does not tell its settings apart.
    pub(super) fn baselines(&self, workload: &Workload) -> Vec<Setting> {
        let product = self.product(workload);
        let partial = self.baseline.iter().flat_map(Setting::levels);
        let telling = Setting::new(partial.filter(|(f, _)| product.iter().any(|s| s.named(f.name).is_some())));
        self.settings(workload).into_iter().filter(|setting| telling.agrees_with(setting)).collect()
    }

    /// The settings of a workload, excluded or not.
    pub(super) fn product(&self, workload: &Workload) -> Vec<Setting> {
        let mut settings = vec![Setting::default()];
        // `venue` comes before what depends on it, as in the table of factors.
        for varied in &self.factors {
            let with = |setting: Setting| match workload.heeds(varied.factor, &setting)
                && setting.has_room_for(varied.factor)
            {
                true => varied
                    .levels
                    .iter()
                    .map(|&level| Setting::new(setting.levels().chain([(varied.factor, level)])))
                    .collect(),
                false => vec![setting],
            };
            settings = settings.into_iter().flat_map(with).collect();
        }
        settings
    }

    /// The factors that tell the settings of a workload apart, each with the levels that are measured, that of the
    /// baseline first: what [`Effects`](crate::effects::Effects) are effects of.
    pub fn contrasts(&self, workload: &Workload) -> Vec<Varied> {
        let settings = self.settings(workload);
        let baseline = self.baseline(workload).unwrap_or_default();
        let measured = |varied: &Varied| {
            let factor = varied.factor;
            let is_measured = |level: &Level| settings.iter().any(|s| s.named(factor.name) == Some(*level));
            let mut levels: Vec<Level> = varied.levels.iter().copied().filter(is_measured).collect();
            // False sorts first: the sort is stable, and moves the reference alone.
            levels.sort_by_key(|level| baseline.named(factor.name) != Some(*level));
            Varied { factor, levels }
        };
        self.factors.iter().map(measured).filter(|varied| varied.levels.len() > 1).collect()
    }

    /// The values of a cell's parameters, in the order of their kind; empty for a workload of another plan.
    pub fn parameters(&self, cell: &Cell) -> Vec<(&'static str, Level)> {
        let workload = self.workload(&cell.workload);
        let parameters = workload.iter().flat_map(|workload| &workload.parameters);
        parameters.filter_map(|(name, value)| Some((*name, value.in_setting(&cell.setting)?))).collect()
    }

    /// What memory must be laid for a cell: a level for each factor of [`Hardness::Plot`], whether the plan varies it,
    /// a parameter fixes it, or it has its default. Empty for a workload that works on the host itself, and for processes
    /// outside a guest.
    pub fn memory(&self, cell: &Cell) -> Setting {
        let is_laid = |workload: &Workload| match workload.kind.ground {
            Ground::Memory => true,
            Ground::System => cell.setting.is_linux_guest(),
            Ground::Host => false,
        };
        if !self.workload(&cell.workload).is_some_and(is_laid) {
            return Setting::default();
        }
        let parameters = self.parameters(cell);
        let level = |factor: &Factor| match factor.scope {
            Scope::Parameter => parameters.iter().find(|(name, _)| *name == factor.name).map(|(_, level)| *level),
            Scope::Host | Scope::Memory | Scope::Virtual | Scope::Guest => cell.setting.level(factor.name),
        };
        let plots = FACTORS.iter().filter(|factor| factor.hardness == Hardness::Plot);
        Setting::new(plots.filter_map(|factor| Some((factor, level(factor)?))))
    }
}

impl Workload {
    /// The value of a parameter in one of its settings; none where it has no such parameter.
    pub fn parameter(&self, name: &str, setting: &Setting) -> Option<Level> {
        self.parameters.iter().find(|(own, _)| *own == name)?.1.in_setting(setting)
    }

    /// Whether the levels of a factor make a difference to it, in a setting that has room for them.
    fn heeds(&self, factor: &Factor, setting: &Setting) -> bool {
        match factor.scope {
            Scope::Host => true,
            Scope::Memory | Scope::Virtual | Scope::Guest => match self.kind.ground {
                Ground::Memory => true,
                Ground::Host => false,
                // It has no memory of its own that could stand on something.
                Ground::System => match factor.name {
                    "guest" => false,
                    "host" => setting.is_linux_guest(),
                    _ => true,
                },
            },
            Scope::Parameter => {
                self.parameters.iter().any(|(_, value)| matches!(value, Value::Factor(f) if f.name == factor.name))
            }
        }
    }
}

impl Value {
    /// The value in a setting; none where it follows a factor that the setting is without.
    fn in_setting(self, setting: &Setting) -> Option<Level> {
        match self {
            Value::Literal(level) => Some(level),
            Value::Factor(factor) => setting.level(factor.name),
        }
    }
}

impl Exclusion {
    /// Whether it leaves out this setting of this workload.
    pub fn excludes(&self, workload: &Workload, setting: &Setting) -> bool {
        let is_meant = self.workload.as_ref().is_none_or(|name| *name == workload.name);
        let has = |(factor, levels): &(&Factor, Vec<Level>)| {
            setting.named(factor.name).is_some_and(|level| levels.contains(&level))
        };
        is_meant && self.levels.iter().all(has)
    }
}
