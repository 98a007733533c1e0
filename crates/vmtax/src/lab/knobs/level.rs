//! From a factor and its level to the knob and the kernel's word for it: the one place that knows both.

use std::path::PathBuf;

use vmtax_core::{
    factor::{Hardness, Level},
    plan::Setting,
    units::PageSize,
};
use vmtax_machine::knob::{Error, Host, Knob, Position, Switch};

/// Why a level cannot be had, and what would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// Why not.
    pub reason: String,
    /// The way out.
    pub remedy: String,
}

/// The knob of a factor; none where it is no setting of the host.
pub fn knob(factor: &str) -> Option<Knob> {
    let knob = match factor {
        "thp" => Knob::Switch(Switch::Thp),
        "pool_2m" => Knob::Pool(PageSize::Large),
        "pool_1g" => Knob::Pool(PageSize::Giant),
        "nested_paging" => Knob::Switch(Switch::NestedPaging),
        "nx_huge_pages" => Knob::Switch(Switch::NxHugePages),
        "ksm" => Knob::Switch(Switch::Ksm),
        _ => return None,
    };
    Some(knob)
}

/// The knobs that a whole plot names, at its levels.
pub(super) fn positions(host: &Host, whole: &Setting) -> Result<Vec<Position>, Obstacle> {
    let knobs = whole.levels().filter(|(factor, _)| factor.hardness == Hardness::WholePlot);
    knobs.map(|(factor, level)| position(host, factor.name, level)).collect()
}

/// The knob of a factor at one of its levels, as the kernel spells it.
pub(super) fn position(host: &Host, factor: &str, level: Level) -> Result<Position, Obstacle> {
    let knob = knob(factor).ok_or_else(|| Obstacle::new(format!("nothing sets `{factor}` here"), "leave it out"))?;
    let value = match (knob, level) {
        (Knob::Switch(Switch::NestedPaging), Level::Word("on")) => "Y".into(),
        (Knob::Switch(Switch::NestedPaging), Level::Word(_)) => "N".into(),
        (Knob::Switch(Switch::NxHugePages), Level::Word("never")) => return Err(no_way_back()),
        (Knob::Switch(Switch::NxHugePages), Level::Word("force")) => "Y".into(),
        (Knob::Switch(Switch::NxHugePages), Level::Word("auto")) if is_split_by_default(host) => "Y".into(),
        (Knob::Switch(Switch::NxHugePages), Level::Word(_)) => "N".into(),
        (Knob::Switch(Switch::Ksm), Level::Word("run")) => "1".into(),
        (Knob::Switch(Switch::Ksm), Level::Word("unmerge")) => "2".into(),
        (Knob::Switch(Switch::Ksm), Level::Word(_)) => "0".into(),
        (Knob::Switch(_), Level::Word(word)) => word.into(),
        (Knob::Pool(_), Level::Count(pages)) => pages.into(),
        (Knob::Switch(_), Level::Count(_) | Level::Size(_) | Level::Share(_))
        | (Knob::Pool(_), Level::Word(_) | Level::Size(_) | Level::Share(_)) => {
            unreachable!("the grammar of `{factor}` has no {level}")
        }
    };
    Ok(Position { knob, value })
}

/// `never` cannot be undone (`set_nx_huge_pages`, arch/x86/kvm/mmu/mmu.c, 6.18).
fn no_way_back() -> Obstacle {
    Obstacle::new(
        "cannot turn nx_huge_pages to never: the kernel would not take it back",
        "`off` splits nothing either; or boot with kvm.nx_huge_pages=never and leave the factor out",
    )
}

/// What `auto` means here: `get_nx_auto_mode`, arch/x86/kvm/mmu/mmu.c, 6.18. It reads back as what it came to.
fn is_split_by_default(host: &Host) -> bool {
    let read = |path: PathBuf| host.kernel.read(&path).unwrap_or_default();
    let affected = read(host.sys.join("devices/system/cpu/vulnerabilities/itlb_multihit"));
    let is_affected = !affected.is_empty() && affected.trim() != "Not affected";
    is_affected && !read(host.proc.join("cmdline")).split_whitespace().any(|word| word == "mitigations=off")
}

impl Obstacle {
    /// A reason, and the way out.
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Obstacle {
        Obstacle { reason: reason.into(), remedy: remedy.into() }
    }
}

impl From<&Error> for Obstacle {
    fn from(error: &Error) -> Obstacle {
        let remedy = error.remedy().unwrap_or_else(|| "leave this level out of the plan".to_owned());
        Obstacle { reason: crate::lab::host::chain(error), remedy }
    }
}

impl From<Error> for Obstacle {
    fn from(error: Error) -> Obstacle {
        Obstacle::from(&error)
    }
}
