//! Plans on a made-up bench: run, interrupted, resumed and shown, with exact numbers.

use tempfile::TempDir;
use vmtax_core::{
    experiment::{Better, Metric, Missing, Record, Verdict},
    factor::{Factor, Level},
    host::Host,
};
use vmtax_report::experiment;

use super::*;
use crate::store::{Beginning, Store};

const PLAN: &str = "\
[factors]
venue = [\"native\", \"microvm\"]
host = [\"4k\", \"thp\"]
[[workload]]
probe = \"chase\"
[baseline]
venue = \"native\"
host = \"4k\"
[replication]
blocks = 7
";

/// A trial takes a second. Guests take half as long again, transparent pages 20 % off; a block doubles everything.
#[derive(Default)]
struct Mock {
    now: Duration,
    /// Trials until somebody interrupts.
    patience: usize,
    /// Added to every value of guests.
    slower: f64,
    laid: Vec<(String, u64)>,
    alive: i32,
    /// Whole plots as they were set.
    turns: Vec<String>,
    knobs: String,
    /// Levels that cannot be had.
    refused: Option<&'static str>,
    /// Trials after which somebody else turns a knob.
    meddled_after: Option<usize>,
    trials: usize,
}

impl Mock {
    fn new(patience: usize) -> Mock {
        Mock { now: Duration::ZERO, patience, slower: 1.0, laid: Vec::new(), alive: 0, ..Mock::default() }
    }
}

impl Bench for Mock {
    type Ground = ();

    fn turn(&mut self, knobs: &Setting) -> Result<(), TrialError> {
        if self.refused.is_some_and(|level| knobs.to_string() == level) {
            return Err(TrialError::Failed("it does not turn; turn it harder".to_owned()));
        }
        self.turns.push(knobs.to_string());
        self.knobs = knobs.to_string();
        Ok(())
    }

    fn witness(&self) -> Result<BTreeMap<String, String>, TrialError> {
        if self.meddled_after.is_some_and(|trials| self.trials > trials) {
            return Err(TrialError::Failed("somebody else has turned it".to_owned()));
        }
        if self.knobs.is_empty() {
            return Ok(BTreeMap::new());
        }
        let shared = ("shared".to_owned(), self.trials.to_string());
        Ok(BTreeMap::from([("knob".to_owned(), self.knobs.clone()), shared]))
    }

    fn lay(&mut self, memory: &Setting, seed: u64) -> Result<(), TrialError> {
        self.laid.push((memory.to_string(), seed));
        self.alive += 1;
        Ok(())
    }

    fn clear(&mut self, (): ()) {
        self.alive -= 1;
    }

    fn trial(&mut self, (): &mut (), _plan: &Plan, cell: &Cell) -> Result<Finding, TrialError> {
        if self.patience == 0 {
            return Err(TrialError::Interrupted);
        }
        self.patience -= 1;
        self.now += Duration::from_secs(1);
        self.trials += 1;
        if cell.workload == "rights" {
            return Ok(Finding::default());
        }
        let has = |factor, word| cell.setting.level(factor) == Some(Level::Word(word));
        let venue = if has("venue", "microvm") { 1.5 * self.slower } else { 1.0 };
        let host = if has("host", "thp") { 0.8 } else { 1.0 };
        let value = 100.0 * venue * host;
        let metric = Metric { name: "ns_per_access".to_owned(), value, unit: "ns".to_owned(), better: Better::Lower };
        Ok(Finding { metrics: vec![metric], ..Finding::default() })
    }

    fn elapsed(&self) -> Duration {
        self.now
    }
}

struct Keeper<'s>(&'s Store, &'s str);

impl Watcher for Keeper<'_> {
    fn before(&mut self, _stand: &Stand) {}

    fn after(&mut self, trial: &Trial, elapsed: Duration) -> anyhow::Result<()> {
        self.0.keep_experiment(self.1, trial, elapsed.as_secs_f64())
    }
}

fn begun(text: &str, missing: &[Missing]) -> (TempDir, Store, String) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("results.db")).unwrap();
    let beginning = Beginning { name: "plan.toml", text, seed: u64::MAX - 6, host: &Host::default(), missing };
    let id = store.begin_experiment(&beginning).unwrap();
    (directory, store, id)
}

/// Goes on with the run until it ends or the bench loses patience.
fn session(store: &Store, id: &str, bench: &mut Mock) -> Record {
    let record = store.load_experiment(id).unwrap();
    let missing = record.missing.iter().map(|missing| missing.cell.clone()).collect();
    let session = Session { plan: &record.plan, seed: record.seed, missing, kept: record.trials.clone() };
    let ending = run(bench, session, &mut Keeper(store, id)).unwrap();
    store.end_experiment(id, Some(ending), bench.elapsed().as_secs_f64()).unwrap();
    store.load_experiment(id).unwrap()
}

fn whole(text: &str) -> Record {
    let (_directory, store, id) = begun(text, &[]);
    session(&store, &id, &mut Mock::new(usize::MAX))
}

#[test]
fn a_guest_half_as_slow_again_is_half_as_slow_again_on_every_page() {
    let record = whole(PLAN);
    assert_eq!((record.trials.len(), record.blocks(), record.ending), (35, 7, Some(Ending::Done)));
    assert_eq!((record.seed, record.seconds), (u64::MAX - 6, Some(35.0)));
    let text = experiment::text(&record, &[]);
    for line in [
        "native   4k    100 [100, 100]     (baseline)",
        "microvm  4k    150 [150, 150]     +50 % [+50, +50]",
        "microvm  thp   120 [120, 120]     +20 % [+20, +20]",
        "Noise floor: the baseline against itself, A′/A: 0.0 % [0.0, 0.0].",
        "- venue microvm: +50 % [+50, +50]",
        "- host thp: −20 % [−20, −20]",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&experiment::json(&record, &[]).unwrap()).unwrap();
    assert_eq!(json["sheets"][0]["rows"][2]["ratio"]["value"], 1.5);
    let csv = experiment::csv(&record).unwrap();
    let row = "chase,chase venue=microvm host=4k,ns_per_access,ns,150.0,150.0,150.0,1.5,1.5,1.5,7,0,";
    assert!(csv.lines().any(|line| line.ends_with(row)), "{csv}");
}

#[test]
fn a_run_interrupted_anywhere_ends_with_the_same_schedule_and_layouts() {
    let (_directory, store, id) = begun(PLAN, &[]);
    let mut uninterrupted = Mock::new(usize::MAX);
    let expected = session(&store, &id, &mut uninterrupted).trials;
    for patience in [0, 1, 2, 5, 6, 17, 34] {
        let (_directory, store, id) = begun(PLAN, &[]);
        let record = session(&store, &id, &mut Mock::new(patience));
        assert_eq!((record.trials.len(), record.ending), (patience, Some(Ending::Interrupted)));
        let mut resumed = Mock::new(usize::MAX);
        let record = session(&store, &id, &mut resumed);
        assert_eq!((&record.trials, record.ending), (&expected, Some(Ending::Done)), "after {patience}");
        assert!(uninterrupted.laid.ends_with(&resumed.laid) && resumed.alive == 0, "after {patience}");
    }
}

const KNOBS: &str = "\
[factors]
thp = [\"always\", \"never\"]
host = [\"4k\", \"thp\"]
[[workload]]
probe = \"chase\"
[replication]
blocks = 3
";

#[test]
fn knobs_are_turned_once_for_a_whole_plot_and_read_back_around_every_trial() {
    let (_directory, store, id) = begun(KNOBS, &[]);
    let mut mock = Mock::new(usize::MAX);
    let record = session(&store, &id, &mut mock);
    assert_eq!(mock.turns.len(), 6, "two whole plots in three blocks: {:?}", mock.turns);
    for trial in &record.trials {
        let Outcome::Ok(finding) = &trial.outcome else { panic!("{trial:?}") };
        assert!(trial.cell.contains(&finding.evidence["knob"]), "{trial:?}");
        let count = |name: &str| finding.evidence[name].parse::<usize>().unwrap();
        assert_eq!(count("shared"), count("shared.before") + 1, "what changed is told before and after");
        assert!(!finding.evidence.contains_key("knob.before"));
    }
}

#[test]
fn a_knob_that_cannot_be_had_fails_its_whole_plot_and_the_run_goes_on_with_the_rest() {
    let (_directory, store, id) = begun(KNOBS, &[]);
    let record = session(&store, &id, &mut Mock { refused: Some("thp=never"), ..Mock::new(usize::MAX) });
    assert_eq!((record.trials.len(), record.ending), (15, Some(Ending::Done)));
    for trial in &record.trials {
        assert_eq!(trial.outcome.is_failed(), trial.cell.contains("thp=never"), "{trial:?}");
    }
    assert!(record.failures().all(|(_, reason)| reason == "it does not turn; turn it harder"));
}

#[test]
fn a_knob_that_somebody_else_turns_in_a_trial_fails_it() {
    let (_directory, store, id) = begun(KNOBS, &[]);
    let record = session(&store, &id, &mut Mock { meddled_after: Some(4), ..Mock::new(usize::MAX) });
    let failed: Vec<bool> = record.trials.iter().map(|trial| trial.outcome.is_failed()).collect();
    assert_eq!(failed, (0..15).map(|nth| nth >= 4).collect::<Vec<_>>());
}

#[test]
fn a_resumed_run_turns_only_what_is_left_to_be_measured() {
    let (_directory, store, id) = begun(KNOBS, &[]);
    let mut uninterrupted = Mock::new(usize::MAX);
    session(&store, &id, &mut uninterrupted);
    for patience in [0, 1, 3, 7, 14] {
        let (_directory, store, id) = begun(KNOBS, &[]);
        session(&store, &id, &mut Mock::new(patience));
        let mut resumed = Mock::new(usize::MAX);
        let record = session(&store, &id, &mut resumed);
        assert_eq!((record.trials.len(), record.ending), (15, Some(Ending::Done)));
        assert!(uninterrupted.turns.ends_with(&resumed.turns), "after {patience}: {:?}", resumed.turns);
    }
}

#[test]
fn nothing_is_kept_twice() {
    let (_directory, store, id) = begun(PLAN, &[]);
    let record = session(&store, &id, &mut Mock::new(3));
    let trial = &record.trials[2];
    assert!(store.keep_experiment(&id, trial, 0.0).is_err(), "the same place");
    assert!(store.keep_experiment(&id, &Trial { place: 99, ..trial.clone() }, 0.0).is_err(), "the same cell");
    assert_eq!(store.load_experiment(&id).unwrap().trials, record.trials);
}

#[test]
fn what_is_missing_is_left_out_of_every_block_and_told() {
    let cell = "chase venue=microvm host=thp".to_owned();
    let missing = [Missing { cell: cell.clone(), reason: "no such pages".to_owned(), remedy: "buy some".to_owned() }];
    let (_directory, store, id) = begun(PLAN, &missing);
    let record = session(&store, &id, &mut Mock::new(usize::MAX));
    assert!(record.trials.len() == 28 && record.trials.iter().all(|trial| trial.cell != cell));
    assert!(experiment::text(&record, &[]).contains(&format!("not here: {cell}: no such pages; buy some")));
}

#[test]
fn blocks_within_a_budget_end_with_either() {
    let within =
        |budget: &str| whole(&PLAN.replace("blocks = 7", &format!("blocks = 7\nbudget = \"{budget}\""))).blocks();
    assert_eq!(within("1h"), 7);
    // A block takes five seconds: a third would end after the budget.
    assert_eq!(within("12s"), 2);
    assert_eq!(within("1s"), 1, "the first is made whatever it takes");
}

#[test]
fn facts_are_precise_as_they_are() {
    let plan = PLAN.replace("blocks = 7", "target = \"2%\"\nbudget = \"1h\"");
    let plan = plan.replace("[baseline]", "[[workload]]\nprobe = \"rights\"\n[baseline]");
    assert_eq!(whole(&plan).blocks(), 5);
}

#[test]
fn a_target_is_reached_or_the_budget_spent() {
    let target = PLAN.replace("blocks = 7", "target = \"2%\"\nbudget = \"1h\"");
    assert_eq!(whole(&target).blocks(), 5, "precise as soon as intervals are trusted");
    let hasty = PLAN.replace("blocks = 7", "target = \"2%\"\nbudget = \"12s\"");
    assert_eq!(whole(&hasty).blocks(), 2, "blocks of 5 s");
}

#[test]
fn a_slower_guest_is_a_regression_in_its_cells_alone() {
    let (_directory, store, id) = begun(PLAN, &[]);
    let slow = session(&store, &id, &mut Mock { slower: 1.1, ..Mock::new(usize::MAX) });
    let comparison = &slow.against(&whole(PLAN))[0];
    let at = |gate| -> Vec<&str> {
        let regressed = comparison.changes.iter().filter(|c| comparison.verdict(c, gate) == Verdict::Regressed);
        regressed.map(|change| change.cell.as_str()).collect()
    };
    assert_eq!(at(0.05), ["chase venue=microvm host=4k", "chase venue=microvm host=thp"]);
    assert!(at(0.11).is_empty());
    let by = &slow.by(Factor::named("host").unwrap())[0];
    let ratios: Vec<_> = by.changes.iter().map(|c| (c.against.as_str(), c.ratio.unwrap().value)).collect();
    assert_eq!(ratios.len(), 2);
    assert!(ratios.iter().all(|(against, ratio)| against.ends_with("host=4k") && (ratio - 0.8).abs() < 1e-12));
}
