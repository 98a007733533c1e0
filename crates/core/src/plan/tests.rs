//! Bad plans with their diagnostics in full; good ones with what they expand to; the laws of the schedule.
//!
//! `VMTAX_UPDATE=1 cargo test -p vmtax-core` writes `testdata/plans/*.err` anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use proptest::prelude::*;

use super::{schedule::WholePlot, *};
use crate::setting::Replica;

const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/plans");

fn parse(text: &str) -> Plan {
    Plan::parse("plan.toml", text).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn cell_names(plan: &Plan) -> Vec<String> {
    plan.cells().iter().map(Cell::name).collect()
}

#[test]
fn a_wrong_plan_is_answered_with_the_place_and_what_is_accepted() {
    let mut wrong: Vec<_> = fs::read_dir(PLANS).unwrap().map(|entry| entry.unwrap().path()).collect();
    wrong.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    wrong.sort();
    assert!(wrong.len() > 20, "{PLANS} holds the wrong plans");
    for path in wrong {
        let name = path.file_name().unwrap().to_str().unwrap();
        let got = match Plan::parse(name, &fs::read_to_string(&path).unwrap()) {
            Ok(_) => panic!("{name} is not wrong"),
            Err(diagnostics) => format!("{diagnostics}\n"),
        };
        compare(&path.with_extension("err"), &got);
    }
}

fn compare(expected: &Path, got: &str) {
    if std::env::var_os("VMTAX_UPDATE").is_some() {
        fs::write(expected, got).unwrap();
    }
    let wanted = fs::read_to_string(expected).unwrap_or_default();
    assert_eq!(got, wanted, "{}; VMTAX_UPDATE=1 accepts the new text", expected.display());
}

const MATRIX: &str = r#"
[factors]
guest = ["4k", "2m"]
venue = ["native", "microvm"]
host = ["4k", "2m"]
[[workload]]
probe = "chase"
size = "512M"
"#;

#[test]
fn a_native_setting_is_measured_once_for_all_guest_leaves() {
    assert_eq!(
        cell_names(&parse(MATRIX)),
        [
            "chase venue=native host=4k",
            "chase venue=native host=2m",
            "chase venue=microvm host=4k guest=4k",
            "chase venue=microvm host=4k guest=2m",
            "chase venue=microvm host=2m guest=4k",
            "chase venue=microvm host=2m guest=2m",
            "chase venue=native host=4k A'",
        ]
    );
}

#[test]
fn parameters_follow_the_factor_of_their_name_or_the_one_they_refer_to() {
    let plan = parse(
        r#"
[factors]
stride = [64, "4K"]
host = ["4k", "2m"]
[[workload]]
probe = "walk"
size = "128M"
passes = 3
[[workload]]
name = "along"
probe = "chase"
size = "1G"
stride = "4K"
[[workload]]
probe = "reserve"
pages = 100
[[exclude]]
workload = "walk"
host = "2m"
stride = [64, 4096]
[replication]
target = "2.5%"
budget = "10m"
seed = 0x2a
"#,
    );
    assert_eq!(
        cell_names(&plan),
        [
            "walk host=4k stride=64",
            "walk host=4k stride=4K",
            "walk host=4k stride=64 A'",
            "along host=4k",
            "along host=2m",
            "along host=4k A'",
            "reserve",
            "reserve A'",
        ]
    );
    let cells = plan.cells();
    let shown = |cell: &Cell| -> String {
        let parameters = plan.parameters(cell);
        parameters.iter().map(|(name, level)| format!("{name}={level}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(&cells[1]), "size=128M stride=4K order=sequential passes=3 references=0");
    assert_eq!(shown(&cells[3]), "size=1G stride=4K vcpus=1");
    assert_eq!(shown(&cells[6]), "page=2m pages=100 rounds=5 compact=off stress=50% kept=6.25%");
    assert_eq!(plan.memory(&cells[1]).to_string(), "host=4k size=128M");
    assert_eq!(plan.memory(&cells[6]).to_string(), "");
    assert_eq!(plan.seed, Some(42));
    let budget = Duration::from_secs(600);
    assert_eq!(plan.replication, Replication::Target { half_width: 0.025, budget });
}

const KNOBS: &str = r#"
[factors]
venue = ["native", "microvm"]
host = ["4k", "thp"]
guest = ["4k", "2m"]
thp = ["always", "never"]
nested_paging = [true, false]
[[workload]]
probe = "chase"
size = "64M"
[[workload]]
probe = "touch"
size = "1G"
[[exclude]]
thp = "never"
host = "thp"
[baseline]
venue = "native"
host = "4k"
thp = "always"
"#;

fn order(plots: &[WholePlot]) -> Vec<String> {
    plots.iter().flat_map(WholePlot::cells).map(Cell::name).collect()
}

#[test]
fn a_stored_seed_repeats_the_order_of_a_plan() {
    let plan = parse(MATRIX);
    let shown: Vec<String> = schedule::block(&plan, 42, 0)
        .iter()
        .flat_map(|whole| &whole.plots)
        .map(|plot| format!("{}: {}", plot.memory, plot.cells.iter().map(Cell::name).collect::<Vec<_>>().join(", ")))
        .collect();
    assert_eq!(
        shown,
        [
            "host=4k size=512M: chase venue=native host=4k, chase venue=native host=4k A', \
             chase venue=microvm host=4k guest=4k, chase venue=microvm host=4k guest=2m",
            "host=2m size=512M: chase venue=microvm host=2m guest=4k, chase venue=native host=2m, \
             chase venue=microvm host=2m guest=2m",
        ]
    );
}

#[test]
fn every_whole_plot_comes_first_about_equally_often() {
    let plan = parse(KNOBS);
    let mut first: BTreeMap<String, u32> = BTreeMap::new();
    for number in 0..600 {
        *first.entry(schedule::block(&plan, 7, number)[0].knobs.to_string()).or_default() += 1;
    }
    // Two levels of thp with each of on, off and none. Binomial(600, 1/6): 100, with a standard deviation of 9.1.
    assert_eq!(first.len(), 6);
    assert!(first.values().all(|n| (63..=137).contains(n)), "{first:?}");
}

#[test]
fn the_order_of_the_text_does_not_matter() {
    let plan = parse(KNOBS);
    let mut turned = plan.clone();
    turned.workloads.reverse();
    for varied in &mut turned.factors {
        varied.levels.reverse();
    }
    assert_eq!(schedule::block(&plan, 5, 3), schedule::block(&turned, 5, 3));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn each_cell_comes_once_and_plots_of_both_kinds_stay_together(seed: u64, number: u32) {
        let plan = parse(KNOBS);
        let whole_plots = schedule::block(&plan, seed, number);
        let mut seen = order(&whole_plots);
        let mut wanted = cell_names(&plan);
        seen.sort_unstable();
        wanted.sort_unstable();
        prop_assert_eq!(seen, wanted);
        let knobs: BTreeSet<String> = whole_plots.iter().map(|whole| whole.knobs.to_string()).collect();
        prop_assert_eq!(knobs.len(), whole_plots.len());
        for whole in &whole_plots {
            let memory: BTreeSet<String> = whole.plots.iter().map(|plot| plot.memory.to_string()).collect();
            prop_assert_eq!(memory.len(), whole.plots.len());
            prop_assert!(whole.cells().all(|cell| whole.knobs.agrees_with(&cell.setting)));
            prop_assert!(whole.plots.iter().all(|plot| plot.cells.iter().all(|c| plan.memory(c) == plot.memory)));
        }
    }
}

#[test]
fn effects_are_sought_of_the_factors_that_tell_a_workloads_settings_apart() {
    let plan = parse(&KNOBS.replace("thp = \"always\"\n", "thp = \"never\"\n"));
    let shown: Vec<String> = plan
        .contrasts(&plan.workloads[0])
        .iter()
        .map(|varied| {
            let levels: Vec<String> = varied.levels.iter().map(Level::to_string).collect();
            format!("{}: {}", varied.factor.name, levels.join(" "))
        })
        .collect();
    assert_eq!(
        shown,
        ["venue: native microvm", "host: 4k thp", "guest: 4k 2m", "thp: never always", "nested_paging: on off"]
    );
    let cell = plan.cell("touch venue=microvm host=thp guest=2m thp=always nested_paging=off").unwrap();
    assert!(plan.cells().contains(&cell));
}

#[test]
fn each_workload_has_one_baseline_and_one_twin_of_it() {
    let plan = parse(KNOBS);
    let twins: Vec<String> =
        plan.cells().iter().filter(|cell| cell.replica == Replica::APrime).map(Cell::name).collect();
    assert_eq!(twins, ["chase venue=native host=4k thp=always A'", "touch venue=native host=4k thp=always A'"]);
}
