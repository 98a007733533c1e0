//! Trials from which the hypervisor below stole time.

use vmtax_core::trial::Interference;

use super::*;

/// A single native trial on a machine that steals these shares, one an attempt, the last for ever.
fn trial(steals: &[f64]) -> (Measurement, usize) {
    let mut rig = Mock::new(|setting, nth| Ok(stolen(setting, 100.0 + nth as f64, steals[nth.min(steals.len() - 1)])));
    let mut repeating = Duration::ZERO;
    let ground = rig.lay(Backing::Small, 0).unwrap();
    let best = measure(&mut rig, &ground, NATIVE, &mut repeating, Until::Blocks(1)).unwrap();
    (best, rig.attempts)
}

#[test]
fn a_trial_is_repeated_at_most_twice_and_the_one_with_the_least_steal_is_kept() {
    let check = |steals: &[f64], attempts, kept_ns, repeats, caveats: &[Caveat]| {
        let (best, made) = trial(steals);
        assert_eq!((made, best.value_ns(), best.interference.repeats), (attempts, kept_ns, repeats), "{steals:?}");
        assert_eq!(best.caveats, caveats, "{steals:?}");
    };
    check(&[0.02], 1, 100.0, 0, &[]);
    check(&[0.10, 0.01], 2, 101.0, 1, &[]);
    check(&[0.10, 0.05, 0.0], 3, 102.0, 2, &[]);
    check(&[0.10, 0.05, 0.07], 3, 101.0, 2, &[Caveat::Steal { share: 0.05 }]);
    check(&[0.10], 3, 100.0, 2, &[Caveat::Steal { share: 0.10 }]);
}

#[test]
fn a_single_tick_of_the_kernels_account_is_no_reason_to_repeat() {
    let mut rig = Mock::new(|setting, _| {
        let interference = Interference { steal: 0.05, steal_resolution: 0.04, ..Interference::default() };
        Ok(Measurement { interference, ..measured(setting, 100.0) })
    });
    let run = kept(&mut rig, &plan(&[NATIVE], Until::Blocks(1)));
    assert_eq!((rig.attempts, run.summary().unwrap().caveats().len()), (2, 0), "the baseline and its twin, once each");
}

#[test]
fn repeats_take_no_more_than_a_tenth_of_the_budget() {
    let mut rig = Mock::new(|setting, _| Ok(stolen(setting, 100.0, 0.5)));
    let run = kept(&mut rig, &plan(&[NATIVE, GUEST], Until::BlocksOr(20, 100 * SECOND)));
    assert_eq!((run.trials.len(), rig.attempts), (60, 70));
    let caveats = run.summary().unwrap().caveats();
    assert_eq!(caveats.len(), 1);
    // The twin has no row of its own.
    assert_eq!((caveats[0].trials, caveats[0].worst), (40, Caveat::Steal { share: 0.5 }));
}

#[test]
fn a_repeat_that_fails_is_shown_as_a_failure() {
    let mut rig = Mock::new(|setting, nth| match nth {
        0 => Ok(stolen(setting, 100.0, 0.1)),
        _ => Err(TrialError::Failed("exit 17".to_owned())),
    });
    let ground = rig.lay(Backing::Small, 0).unwrap();
    let mut repeating = Duration::ZERO;
    let best = measure(&mut rig, &ground, NATIVE, &mut repeating, Until::Blocks(1));
    assert_eq!(best, Err(TrialError::Failed("exit 17".to_owned())), "a failure is shown, never hidden");
}
