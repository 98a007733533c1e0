//! The whole pipeline on a made-up machine: trials, store, analysis, report, with exact numbers.

use vmtax_core::{analysis::Summary, run::Run, setting::Cell, trial::Evidence};
use vmtax_report::{export, matrix};

use super::*;
use mock::*;

mod mock;
mod noise;
mod steal;

fn figures(summary: &Summary, setting: Setting) -> &vmtax_core::analysis::Figures {
    summary.cells.iter().find(|cell| cell.setting == setting).and_then(|cell| cell.figures()).unwrap()
}

fn blocks(run: &Run) -> u32 {
    run.summary().unwrap().blocks
}

fn failures(run: &Run) -> Vec<(Cell, &str)> {
    run.trials
        .iter()
        .filter_map(|trial| match &trial.outcome {
            Outcome::Failed { reason } => Some((trial.cell, reason.as_str())),
            Outcome::Ok(_) => None,
        })
        .collect()
}

#[test]
fn a_guest_half_as_slow_again_is_taxed_exactly_fifty_per_cent() {
    let mut rig = Mock::new(|setting, _| Ok(measured(setting, half_again(setting))));
    let run = kept(&mut rig, &plan(&[NATIVE, GUEST], Until::Blocks(7)));
    assert!(is_done(&run, &rig));
    let summary = run.summary().unwrap();
    let guest = figures(&summary, GUEST);
    let tax = guest.tax.unwrap();
    assert_eq!((guest.trials, guest.value.value, tax.value), (7, 150.0, 0.5));
    assert_eq!(tax.interval.map(|i| (i.lo, i.hi)), Some((0.5, 0.5)));
    assert_eq!((guest.first_pass.unwrap().value, guest.distinguishable), (450.0, Some(true)));
    assert_eq!(summary.noise_floor.unwrap().value, 1.0);

    let text = matrix::text(&run).unwrap();
    assert!(text.contains("150 [150, 150]") && text.contains("+50 % [+50, +50]"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&export::json(&run).unwrap()).unwrap();
    let cell = &json["cells"][1];
    assert_eq!((&cell["guest"], &cell["host"]), (&"4k".into(), &"4k".into()));
    assert_eq!((&cell["value"], &cell["tax"], &cell["trials"]), (&150.0.into(), &0.5.into(), &7.into()));
    assert_eq!(cell["evidence"]["pages_4k"], 262_144);
    assert_eq!((&json["blocks"], &json["seconds"]), (&7.into(), &21.0.into()));
    let csv = export::csv(&run).unwrap();
    assert!(csv.lines().nth(2).unwrap().contains(",microvm,4k,4k,ns_per_access,150,150,150,7,450,0.5,0.5,0.5,true,"));
}

#[test]
fn a_fixed_number_of_blocks_is_made_and_no_other() {
    for n in [1, 2, 9] {
        let mut rig = Mock::new(|setting, _| Ok(measured(setting, half_again(setting))));
        let run = kept(&mut rig, &plan(&[NATIVE, GUEST], Until::Blocks(n)));
        assert_eq!((blocks(&run), run.trials.len(), rig.attempts), (n, 3 * n as usize, 3 * n as usize));
    }
}

#[test]
fn no_block_begins_that_would_not_end_within_the_budget_but_the_first_is_made() {
    // A block of native, its twin and a guest takes 3 s; noise of a fifth is never precise.
    for (budget, expected) in [(1, 1), (5, 1), (6, 2), (8, 2), (9, 3), (30, 10)] {
        for until in [Until::PreciseOr(budget * SECOND), Until::BlocksOr(100, budget * SECOND)] {
            let mut rig = Mock::new(|setting, nth| Ok(measured(setting, 100.0 + (nth * 7 % 20) as f64)));
            let run = unkept(&mut rig, &plan(&[NATIVE, GUEST], until));
            assert_eq!(blocks(&run), expected, "{budget} s, {until:?}");
        }
    }
    let mut rig = Mock::new(|setting, _| Ok(measured(setting, 100.0)));
    assert_eq!(blocks(&unkept(&mut rig, &plan(&[NATIVE, GUEST], Until::BlocksOr(2, 60 * SECOND)))), 2);
}

#[test]
fn a_run_without_noise_stops_at_the_fifth_block() {
    let mut rig = Mock::new(|setting, _| Ok(measured(setting, half_again(setting))));
    assert_eq!(blocks(&kept(&mut rig, &plan(&[NATIVE, GUEST], Until::PreciseOr(60 * SECOND)))), 5);
}

#[test]
fn a_run_stops_at_the_first_block_that_brings_every_interval_within_two_per_cent() {
    let mut dice = noise::dice(3);
    let mut rig = Mock::new(|setting, _| Ok(measured(setting, 100.0 * noise::factor(&mut dice, 0.04))));
    let run = unkept(&mut rig, &plan(&[NATIVE, GUEST], Until::PreciseOr(600 * SECOND)));
    let width = |blocks: u32| {
        let trials: Vec<_> = run.trials.iter().filter(|trial| trial.block < blocks).cloned().collect();
        Summary::of(&[NATIVE, GUEST], &[], &trials).unwrap().worst_relative_half_width().unwrap()
    };
    let made = blocks(&run);
    assert!((6..200).contains(&made), "{made} blocks");
    assert!(width(made) <= 0.02 && (5..made).all(|blocks| width(blocks) > 0.02));
}

#[test]
fn memory_that_cannot_be_laid_fails_its_trials_and_the_run_goes_on() {
    let mut rig = Mock::new(|setting, _| Ok(measured(setting, half_again(setting))));
    rig.barren = vec![Backing::Huge2m];
    let run = kept(&mut rig, &plan(&[NATIVE, GUEST, NATIVE_2M, GUEST_ON_2M], Until::Blocks(3)));
    assert!(is_done(&run, &rig));
    let failures = failures(&run);
    assert_eq!(failures.len(), 6);
    assert!(failures.iter().all(|(cell, why)| cell.setting.host == Backing::Huge2m && *why == "no memory for 2m"));
    assert_eq!(figures(&run.summary().unwrap(), GUEST).tax.unwrap().value, 0.5);
    let text = matrix::text(&run).unwrap();
    assert_eq!(text.matches("no memory for 2m").count(), 1, "{text}");
}

#[test]
fn a_trial_that_fails_is_shown_and_never_averaged_in() {
    let mut guests = 0;
    let mut rig = Mock::new(|setting, _| {
        guests += usize::from(setting == GUEST);
        match (setting, guests) {
            (GUEST, 2) => Err(TrialError::Failed("exit 17".to_owned())),
            _ => Ok(measured(setting, half_again(setting))),
        }
    });
    let run = kept(&mut rig, &plan(&[NATIVE, GUEST], Until::Blocks(4)));
    assert_eq!(failures(&run), [(Cell { setting: GUEST, replica: vmtax_core::setting::Replica::A }, "exit 17")]);
    let summary = run.summary().unwrap();
    assert_eq!((figures(&summary, GUEST).trials, figures(&summary, GUEST).tax.unwrap().value), (3, 0.5));
    assert!(matrix::text(&run).unwrap().contains("exit 17"));
}

#[test]
fn evidence_that_contradicts_its_setting_fails_the_trial() {
    let mut rig = Mock::new(|setting, _| {
        let honest = measured(setting, half_again(setting));
        let evidence =
            if setting == NATIVE_2M { Evidence { kernel_page_kb: 4, ..honest.evidence } } else { honest.evidence };
        Ok(Measurement { evidence, ..honest })
    });
    let run = kept(&mut rig, &plan(&[NATIVE, NATIVE_2M, GUEST_ON_2M], Until::Blocks(2)));
    let failures = failures(&run);
    assert_eq!(failures.len(), 2);
    assert_eq!(failures[0].0.setting, NATIVE_2M);
    assert_eq!(failures[0].1, "asked for 2m backing, but smaps says KernelPageSize 4 kB");
    assert_eq!(figures(&run.summary().unwrap(), GUEST_ON_2M).tax, None, "no ratio to a trial that failed");
}

#[test]
fn an_interrupted_run_keeps_everything_up_to_the_interruption() {
    let mut rig = Mock::new(|setting, nth| match nth {
        4 => Err(TrialError::Interrupted),
        _ => Ok(measured(setting, half_again(setting))),
    });
    let run = kept(&mut rig, &plan(&[NATIVE, GUEST], Until::Blocks(9)));
    assert_eq!((run.ending, run.trials.len(), blocks(&run)), (Some(Ending::Interrupted), 4, 1));
    assert!(matrix::text(&run).unwrap().contains("interrupted"));
}

#[test]
fn an_observer_that_cannot_keep_a_trial_ends_the_run() {
    struct Full(usize);
    impl Observer for Full {
        fn preparing(&mut self, _backing: Backing) {}
        fn before(&mut self, _progress: &Progress) {}
        fn after(&mut self, _trial: &Trial) -> anyhow::Result<()> {
            self.0 += 1;
            anyhow::ensure!(self.0 < 3, "no space left on the disk");
            Ok(())
        }
    }
    let mut rig = Mock::new(|setting, _| Ok(measured(setting, 100.0)));
    let error = run(&mut rig, &plan(&[NATIVE, GUEST], Until::Blocks(9)), &mut Full(0)).unwrap_err();
    assert_eq!((error.to_string().as_str(), rig.attempts), ("no space left on the disk", 3));
}

#[test]
fn a_run_in_which_nothing_can_be_measured_ends_after_a_block() {
    let mut rig = Mock::new(|_, _| unreachable!("there is no memory"));
    rig.barren = Backing::ALL.to_vec();
    let run = kept(&mut rig, &plan(&[NATIVE, GUEST], Until::PreciseOr(60 * SECOND)));
    assert_eq!((run.ending, run.trials.len(), failures(&run).len()), (Some(Ending::Done), 3, 3));
    let run = kept(&mut rig, &plan(&[], Until::PreciseOr(60 * SECOND)));
    assert_eq!((run.ending, run.trials.len()), (Some(Ending::Done), 0));
}

#[test]
fn a_run_is_repeated_by_its_seed() {
    let order = |seed| {
        let mut rig = Mock::new(|setting, _| Ok(measured(setting, half_again(setting))));
        let plan = Plan { seed, ..plan(&[NATIVE, GUEST, NATIVE_2M, GUEST_ON_2M], Until::Blocks(5)) };
        unkept(&mut rig, &plan).trials
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}
