//! Each test and each verdict on made-up runs; wrong files with what is said of them.

use super::*;
use crate::{
    experiment::{Better, Finding, Metric, Missing, Outcome, Record, Trial},
    host::Host,
    plan::{Cell, Plan},
    setting::Replica,
};

const PLAN: &str = r#"
[factors]
host = ["4k", "2m"]
stride = ["4K", "16K", "64K", "256K"]
[[workload]]
probe = "walk"
size = "128M"
[replication]
blocks = 7
"#;

const SOURCE: &str = "[source]\ntitle = \"t\"\nplace = \"p\"\nmachine = \"m\"\n";

fn published(statement: &str) -> Published {
    let text = format!("{SOURCE}[[statement]]\nid = \"s\"\nsays = \"So it is.\"\nplace = \"there\"\n{statement}");
    Published::parse("published.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// The cost of a cell in a block, to be noised.
type Cost<'c> = &'c dyn Fn(&str, u64) -> f64;

fn stride(cell: &Cell) -> u64 {
    cell.setting.named("stride").and_then(|level| level.size()).unwrap().0
}

fn record(blocks: u32, noise: f64, cost: Cost) -> Record {
    let plan = Plan::parse("plan.toml", PLAN).unwrap();
    let trial = |block: u32, place: u32, cell: &Cell| {
        let host = cell.setting.named("host").unwrap().word().unwrap();
        let wave = (f64::from(block * 97 + place * 31) * 12.9898).sin();
        let value = cost(host, stride(cell)) * (1.0 + noise * wave);
        let metric =
            |name: &str, value| Metric { name: name.to_owned(), value, unit: "ns".to_owned(), better: Better::Lower };
        let metrics = vec![metric("ns_per_reference", value / 2.0), metric("ns_per_reference_1", value)];
        let evidence = [("granted".to_owned(), "5000".to_owned()), ("way".to_owned(), "EPERM (shmget)".to_owned())];
        let finding = Finding { metrics, evidence: evidence.into(), caveats: Vec::new() };
        Trial { block, place, cell: cell.name(), outcome: Outcome::Ok(finding) }
    };
    let cells = plan.cells();
    let trials = (0..blocks).flat_map(|block| {
        cells.iter().enumerate().map(move |(place, cell)| trial(block, place as u32, cell)).collect::<Vec<_>>()
    });
    Record {
        id: String::new(),
        started: String::new(),
        name: "plan".to_owned(),
        trials: trials.collect(),
        plan,
        seed: 1,
        host: Host::default(),
        ending: None,
        seconds: None,
        missing: Vec::new(),
    }
}

#[track_caller]
fn check(statement: &str, record: &Record, verdict: &str, here: &str) -> Judged {
    let judged = published(statement).judge(record).remove(0);
    assert_eq!((judged.verdict.word(), judged.here.as_str()), (verdict, here), "{judged:?}");
    judged
}

fn reason(judged: &Judged) -> &str {
    judged.verdict.reason().unwrap_or("")
}

const CROSSOVER: &str = r#"
judge = "crossover"
workload = "walk"
metric = "ns_per_reference_1"
where = { size = "128M" }
along = "stride"
incumbent = { host = "2m" }
challenger = { host = "4k" }
names = "small pages"
at = "32K"
within = 2
"#;

/// 4 KiB pages cost so much everywhere, 2 MiB pages in proportion to the stride: they cross at `at`.
fn crossing_at(at: f64) -> impl Fn(&str, u64) -> f64 {
    move |host, stride| if host == "4k" { 100.0 } else { 100.0 * stride as f64 / at }
}

#[test]
fn a_crossover_is_held_against_the_published_place_with_its_interval() {
    let at = |kib: f64| crossing_at(kib * 1024.0);
    check(CROSSOVER, &record(7, 0.0, &at(40.0)), "confirmed", "small pages win from 40.0 KiB on [40.0 KiB, 40.0 KiB]");
    check(
        CROSSOVER,
        &record(7, 0.0, &at(8.0)),
        "contradicted",
        "small pages win from 8.00 KiB on [8.00 KiB, 8.00 KiB]",
    );
    let everywhere = "no crossover: small pages win everywhere, < 4.00 KiB [< 4.00 KiB, < 4.00 KiB]";
    check(CROSSOVER, &record(7, 0.0, &at(1.0)), "contradicted", everywhere);
    let wide = published(CROSSOVER).judge(&record(7, 0.3, &at(13.0))).remove(0);
    assert_eq!(wide.verdict.word(), "undecided", "{wide:?}");
    let one = published(CROSSOVER).judge(&record(1, 0.0, &at(40.0))).remove(0);
    assert_eq!((one.verdict.word(), reason(&one)), ("undecided", "one block has no interval"));
}

#[test]
fn what_was_not_measured_is_not_judged() {
    let full = record(7, 0.0, &crossing_at(40.0 * 1024.0));
    let mut without = full.clone();
    without.trials.retain(|trial| !trial.cell.contains("host=2m"));
    let huge = |trial: &Trial| trial.cell.contains("host=2m");
    for cell in full.trials.iter().filter(|trial| huge(trial)) {
        let missing = |cell: &str| Missing {
            cell: cell.to_owned(),
            reason: "no page in the pool".to_owned(),
            remedy: "--reserve".to_owned(),
        };
        without.missing.push(missing(&cell.cell));
    }
    let judged = check(CROSSOVER, &without, "not tested here", "");
    assert_eq!(reason(&judged), "no page in the pool");
    let other = CROSSOVER.replace("128M", "1G");
    assert_eq!(reason(&check(&other, &full, "not tested here", "")), "it takes size 1G, the plan has 128M");
    let other = CROSSOVER.replace("\"walk\"", "\"touch\"");
    assert_eq!(reason(&check(&other, &full, "not tested here", "")), "the plan has no workload `touch`");
    let other = CROSSOVER.replace("reference_1", "reference_9");
    assert!(reason(&check(&other, &full, "not tested here", "")).ends_with("has no ns_per_reference_9"));
    let emulated = Record { host: Host { emulated: true, ..Host::default() }, ..full };
    let judged = check(CROSSOVER, &emulated, "not tested here", "");
    assert_eq!(reason(&judged), "emulated: the times mean nothing");
}

const VALUE: &str = r#"
judge = "value"
workload = "walk"
metric = "ns_per_reference"
where = { host = "4k", stride = "16K" }
demands = { granted = "5000" }
"#;

#[test]
fn a_value_is_held_against_its_bound_with_all_of_its_interval() {
    let calm = record(7, 0.0, &|_, _| 100.0);
    let with = |bound: &str| format!("{VALUE}{bound}\n");
    check(&with("below = 51"), &calm, "confirmed", "50.0 [50.0, 50.0] ns");
    check(&with("below = 49"), &calm, "contradicted", "50.0 [50.0, 50.0] ns");
    check(&with("above = 49"), &calm, "confirmed", "50.0 [50.0, 50.0] ns");
    check(&with("above = 51"), &calm, "contradicted", "50.0 [50.0, 50.0] ns");
    let noisy = published(&with("below = 50")).judge(&record(7, 0.1, &|_, _| 100.0)).remove(0);
    assert_eq!(noisy.verdict.word(), "undecided", "{noisy:?}");
    let fewer = with("below = 51").replace("5000", "6000");
    assert_eq!(reason(&check(&fewer, &calm, "not tested here", "")), "it takes granted 6000, a trial had 5000");
}

const RATIO: &str = r#"
judge = "ratio"
workload = "walk"
metric = "ns_per_reference_1"
where = { stride = ["64K", "256K", "1M"] }
of = [{ host = "2m" }]
over = [{ host = "4k" }]
measures = "huge over small"
"#;

#[test]
fn a_ratio_averages_over_the_levels_there_are_and_must_clear_the_noise() {
    // 2 and 8 times: 4 on average over the two strides of three that the plan has.
    let steep = record(7, 0.0, &|host, stride| if host == "4k" { 10.0 } else { 20.0 * (stride / 65536) as f64 });
    let with = |bound: &str| format!("{RATIO}{bound}\n");
    check(&with("above = 1.0"), &steep, "confirmed", "huge over small: 4.0 times [4.0, 4.0]");
    check(&with("below = 1.0"), &steep, "contradicted", "huge over small: 4.0 times [4.0, 4.0]");
    let noisy = published(&with("above = 1.0")).judge(&record(7, 0.2, &|_, _| 10.0)).remove(0);
    assert_eq!(noisy.verdict.word(), "undecided", "{noisy:?}");
    let mut shaky = record(7, 0.0, &|host, _| if host == "4k" { 10.0 } else { 10.5 });
    for trial in shaky.trials.iter_mut().filter(|trial| trial.cell.ends_with(Replica::APrime.name())) {
        if let Outcome::Ok(finding) = &mut trial.outcome {
            finding.metrics.iter_mut().for_each(|metric| metric.value *= 1.1);
        }
    }
    let judged = check(&with("above = 1.0"), &shaky, "undecided", "huge over small: +5.0 % [+5.0, +5.0]");
    assert_eq!(reason(&judged), "the baseline differs as much from itself");
}

#[test]
fn several_terms_make_a_ratio_of_ratios() {
    let record = record(7, 0.0, &|host, stride| if host == "4k" { 10.0 } else { 20.0 * (stride / 65536) as f64 });
    let text = RATIO.replace(
        "of = [{ host = \"2m\" }]\nover = [{ host = \"4k\" }]",
        "of = [{ host = \"2m\" }, { host = \"4k\", metric = \"ns_per_reference\" }]\n\
         over = [{ host = \"4k\" }, { host = \"2m\", metric = \"ns_per_reference\" }]",
    );
    // Both sides of the second ratio are halved: it is the same as the first.
    check(&format!("{text}below = 1.5\n"), &record, "confirmed", "huge over small: 0.0 % [0.0, 0.0]");
}

#[test]
fn a_fact_is_what_all_trials_observed() {
    let fact = |evidence: &str, is: &str| {
        format!("judge = \"fact\"\nworkload = \"walk\"\nevidence = \"{evidence}\"\nis = \"{is}\"\n")
    };
    let calm = record(2, 0.0, &|_, _| 1.0);
    check(&fact("way", "EPERM"), &calm, "confirmed", "way: EPERM (shmget)");
    check(&fact("way", "EP"), &calm, "contradicted", "way: EPERM (shmget)");
    check(&fact("way", "granted"), &calm, "contradicted", "way: EPERM (shmget)");
    assert_eq!(reason(&check(&fact("key", "x"), &calm, "not tested here", "")), "no trial tells key");
    let Test::Fact(fact) = published(&fact("way", "granted")).statements.remove(0).test else { panic!() };
    let untried = fact.judge(&["not tested: no page in the pool"]).unwrap_err();
    assert_eq!(untried, "no page in the pool");
    let (here, verdict) = fact.judge(&["granted", "ENOMEM (mmap)", "not tested: x"]).unwrap();
    assert_eq!(
        (here.as_str(), verdict.reason()),
        ("way: granted, but also ENOMEM (mmap)", Some("1 of 2 trials agree"))
    );
}

#[test]
fn references_of_a_nested_walk_are_counted() {
    let text = "judge = \"walk-references\"\nguest = 4\nhost = 4\npublished = 24\n";
    let here = "by arithmetic: (4 + 1) × (4 + 1) − 1 = 24, the data not counted";
    let calm = record(1, 0.0, &|_, _| 1.0);
    check(text, &calm, "confirmed", here);
    check(&text.replace("= 24", "= 20"), &calm, "contradicted", here);
    assert_eq!(
        [(4, 0), (3, 3), (5, 5)].map(|(guest, host)| WalkReferences { guest, host, published: 1 }.count()),
        [4, 15, 35]
    );
}

#[test]
fn a_wrong_file_is_answered_with_the_place_and_what_is_accepted() {
    let check = |text: &str, expected: &[(&str, &str)]| {
        let wrong = Published::parse("published.toml", text).unwrap_err();
        let told: Vec<(&str, &str)> = wrong.list().iter().map(|d| (d.message.as_str(), d.label.as_str())).collect();
        assert_eq!(told, expected, "{wrong}");
    };
    check("", &[("nobody is named as the source", "add [source] with title, place and machine")]);
    let statement = |rest: &str| format!("{SOURCE}[[statement]]\nid = \"s\"\nsays = \"s\"\nplace = \"p\"\n{rest}");
    check(
        &statement("judge = \"ration\"\n"),
        &[(
            "no test named `ration`",
            "tests are: crossover, value, ratio, fact, walk-references; did you mean `ratio`?",
        )],
    );
    check(
        &statement(&VALUE.replace("host", "hots")),
        &[
            ("this statement has no bound", "either below = 1.0 or above = 1.0"),
            (
                "no factor or parameter named `hots`",
                "factors are: venue, host, guest, accel, memory, vhost, qemu, machine, cpu, qemu_args, size, stride, order, passes, vcpus, thp, pool_2m, pool_1g, \
                 nested_paging, nx_huge_pages, ksm; parameters of workloads do as well; did you mean `host`?",
            ),
        ],
    );
    check(
        &statement(&CROSSOVER.replace("\"stride\"", "\"host\"").replace("within = 2", "within = -1")),
        &[
            (
                "no curve goes along this",
                "factors with a scale are: memory, size, stride, passes, vcpus, pool_2m, pool_1g",
            ),
            ("`within` is no positive number", "such as 2 or 1.5"),
        ],
    );
    check(
        &statement("judge = \"fact\"\nworkload = \"rights\"\nis = \"granted\"\nbelow = 1\n"),
        &[
            ("`evidence` is missing here", "add evidence = \"…\""),
            (
                "no key named `below` here",
                "a statement judged by fact has: id, says, place, remark, judge, workload, evidence, is",
            ),
        ],
    );
    let twice = format!("{0}{1}", statement("judge = \"walk-references\"\nguest = 4\nhost = 4\npublished = 20\n"), "");
    let second = twice.split_once(SOURCE).unwrap().1.to_owned();
    check(&(twice + &second), &[("a second statement `s`", "ids differ")]);
}
