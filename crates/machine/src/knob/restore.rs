//! Putting back what was changed, and only that.
//!
//! A pool is borrowed from, not owned: others may raise or lower it meanwhile. With `old` before the change, `got` read
//! back after it, and `current` now:
//!
//! | `current`            | restoration                                                            |
//! |----------------------|------------------------------------------------------------------------|
//! | = `got`              | write `old`                                                            |
//! | > `got`              | somebody added: write `current - (got - old)`, which leaves them theirs |
//! | = `old`              | nothing to do                                                          |
//! | else < `got`         | somebody set it lower, knowing what they do: leave it alone, and say so |
//!
//! `got` is unknown when vmtax was killed between the write and its record. The write is one system call that the kill
//! does not cut short (the process dies when it returns; a pending signal only makes it grant less, `mm/hugetlb.c`,
//! 6.18, `set_max_huge_pages`), so by now it has either not begun or granted some pages up to `want`:
//!
//! | `current`            | restoration                                                            |
//! |----------------------|------------------------------------------------------------------------|
//! | ≤ `old`              | not begun, or nothing granted: nothing to do                           |
//! | `old` < … ≤ `want`   | that is what was granted, in part or in full: write `old`              |
//! | > `want`             | somebody added, and what was ours among it is unknown: leave it alone. At worst `want - old` pages stay; taking them could take somebody else's |
//!
//! A pool that was lowered (`want` < `old`) has lent pages to the rest of the memory. The same rules, turned over:
//!
//! | `got`   | `current`                 | restoration                                                             |
//! |---------|---------------------------|-------------------------------------------------------------------------|
//! | known   | = `old`                   | nothing to do                                                           |
//! | known   | ≥ `got`                   | write `current + (old - got)`: what somebody added stays theirs         |
//! | known   | < `got`                   | somebody set it lower still, knowing what they do: leave it alone       |
//! | unknown | ≥ `old`                   | not begun: nothing to do                                                |
//! | unknown | `want` ≤ … < `old`        | lowered, in part or in full: write `old`                                |
//! | unknown | < `want`                  | somebody set it lower still: leave it alone                             |
//!
//! Raising a pool back can be granted in part. So a restoration that raises is one whose `got` is unknown until it is done:
//! the next attempt goes on from what was granted, and adds nothing twice.
//!
//! A switch is set, not borrowed from: it is put back where it still has the word vmtax left (or, not knowing what it got,
//! the word it asked for), and left alone where somebody has set another since. A module that is not loaded is one that a
//! killed vmtax had just unloaded: it is loaded.
//!
//! Restoration is itself journalled (`giving_back`), so that one that is killed is not repeated on what others added.
//! What remains: somebody who adds just as many pages between that kill and the next restoration loses them.

use std::{fmt, thread, time::Duration};

use serde::Serialize;

use super::{
    Contention, Error, Host, Knob, Value,
    journal::{Change, Journal, Record},
    lock::Lock,
    pool::{self, Pool},
};

/// Passes over what could not be put back. A process that just died may take a moment to let go.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// How long pages in use are waited for; they leave the pool later too, without us.
const PATIENCE: Duration = Duration::from_secs(1);

/// What became of one change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// What had been changed.
    pub knob: Knob,
    /// What became of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What became of a change. Values are the knob's: for a pool, persistent pages; for a switch, its word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Put back, and read back.
    PutBack {
        /// Value found.
        from: Value,
        /// Value now.
        to: Value,
        /// Pages that leave the pool only when their users end.
        in_use: u64,
    },
    /// It already was what it had been.
    AlreadyBack {
        /// Value found.
        value: Value,
    },
    /// Somebody else has set it since; not touched.
    LeftAlone {
        /// Value found.
        current: Value,
        /// What vmtax had left, where it knows.
        got: Option<Value>,
        /// What it was before.
        old: Value,
    },
    /// It could not be put back, and stays in the journal.
    Failed {
        /// Why.
        reason: String,
    },
}

impl Outcome {
    /// Whether the change stays in the journal for another `vmtax restore`.
    pub fn is_failed(&self) -> bool {
        matches!(self.verdict, Verdict::Failed { .. })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let knob = self.knob;
        match &self.verdict {
            Verdict::PutBack { from, to, in_use } => {
                write!(f, "{knob}: {} put back to {}", from.brief(), to.brief())?;
                match in_use {
                    0 => Ok(()),
                    pages => write!(f, "; {pages} still in use leave it when their users end"),
                }
            }
            Verdict::AlreadyBack { value } => write!(f, "{knob}: already back at {}", value.brief()),
            Verdict::LeftAlone { current, got, old } => {
                let what = match (knob, got) {
                    (Knob::Pool(_), Some(got)) => format!("vmtax left {got}, somebody lowered it"),
                    (Knob::Pool(_), None) => "somebody changed it while vmtax did".to_owned(),
                    (Knob::Switch(_), Some(got)) => format!("vmtax left {}, somebody set it since", got.brief()),
                    (Knob::Switch(_), None) => "somebody set it while vmtax did".to_owned(),
                };
                write!(f, "{knob}: left alone at {}; {what}; it was {} before", current.brief(), old.brief())
            }
            Verdict::Failed { reason } => write!(f, "{knob}: {reason}"),
        }
    }
}

/// Whether there is something to put back. While a lease lives that is its own business: see [`super::check_free`].
pub fn is_left_changed(host: &Host) -> bool {
    host.journal_path().exists()
}

/// Puts back what killed processes left changed, and says what became of each change; nothing left, nothing said.
pub fn restore(host: &Host, contention: Contention) -> Result<Vec<Outcome>, Error> {
    let _lock = Lock::take(host, contention)?;
    Ok(put_back(host, &mut Journal::open(host)?))
}

/// Puts back every change in `journal`, latest first, and removes it when nothing is left.
pub(super) fn put_back(host: &Host, journal: &mut Journal) -> Vec<Outcome> {
    let mut done = Vec::new();
    for attempt in 1..=ATTEMPTS {
        let (failed, settled): (Vec<_>, _) = pass(host, journal).into_iter().partition(Outcome::is_failed);
        done.extend(settled);
        if failed.is_empty() {
            // If this fails, what stays is a journal of settled changes: the next start removes it.
            let _ = journal.discard();
            break;
        }
        if attempt == ATTEMPTS {
            done.extend(failed);
            break;
        }
        thread::sleep(PAUSE);
    }
    done
}

fn pass(host: &Host, journal: &mut Journal) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    for number in (0..journal.changes().len()).rev() {
        let Change { knob, is_settled, .. } = &journal.changes()[number];
        let knob = *knob;
        if *is_settled {
            continue;
        }
        let earlier = outcomes.iter().find(|o| o.knob == knob).map(|o| &o.verdict);
        match earlier {
            // Who lowered it after the later change did so after this one too.
            Some(Verdict::LeftAlone { .. }) => settle(journal, number),
            Some(Verdict::Failed { .. }) => {}
            Some(Verdict::PutBack { .. } | Verdict::AlreadyBack { .. }) | None => {
                outcomes.push(undo(host, journal, number));
            }
        }
    }
    outcomes
}

/// Puts back one change, if that is still right.
pub(super) fn undo(host: &Host, journal: &mut Journal, number: usize) -> Outcome {
    let knob = journal.changes()[number].knob;
    let verdict = try_undo(host, journal, number).unwrap_or_else(|e| Verdict::Failed { reason: chain(&e) });
    if !matches!(verdict, Verdict::Failed { .. }) {
        settle(journal, number);
    }
    Outcome { knob, verdict }
}

fn try_undo(host: &Host, journal: &mut Journal, number: usize) -> Result<Verdict, Error> {
    let change = journal.changes()[number].clone();
    let knob = change.knob;
    let surplus = surplus(host, knob)?;
    let from = knob.read(host)?;
    let to = match judge(&change, &from) {
        Step::Write(to) => to,
        Step::Nothing => return Ok(Verdict::AlreadyBack { value: from }),
        Step::LeaveAlone => return Ok(Verdict::LeftAlone { current: from, got: change.got, old: change.old }),
    };
    // A full disk must not keep the host from being put back: without the record only a second kill, right now, could
    // make the next restoration judge wrongly.
    let _ = journal.append(Record::GivingBack { change: number, from: from.clone(), to: to.clone() });
    knob.write(host, &to, "write")?;
    let now = knob.read(host)?;
    if now != to {
        return Ok(Verdict::Failed { reason: format!("{from} written as {to}, read back as {now}") });
    }
    let in_use = match knob {
        Knob::Pool(page) => pool::wait_for_surplus(host, page, surplus, PATIENCE)?,
        Knob::Switch(_) => 0,
    };
    Ok(Verdict::PutBack { from, to, in_use })
}

/// Pages above the pool's size, before it is lowered.
fn surplus(host: &Host, knob: Knob) -> Result<u64, Error> {
    match knob {
        Knob::Pool(page) => Pool::read(host, page).map(|pool| pool.surplus),
        Knob::Switch(_) => Ok(0),
    }
}

fn settle(journal: &mut Journal, number: usize) {
    // Unrecorded, it is judged again and found to be back.
    let _ = journal.append(Record::Settled { change: number });
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Write(Value),
    Nothing,
    LeaveAlone,
}

/// The rules above. Counts are borrowed from; everything else is set.
fn judge(change: &Change, current: &Value) -> Step {
    match (&change.old, &change.want, &change.got, current) {
        (&Value::Count(old), &Value::Count(want), got, &Value::Count(current)) if want < old => match got {
            Some(Value::Count(got)) => judge_lowered(old, *got, current),
            Some(Value::Word(_)) | None => judge_lowering(old, want, current),
        },
        (&Value::Count(old), &Value::Count(want), None, &Value::Count(current)) => judge_unknown(old, want, current),
        (&Value::Count(old), _, &Some(Value::Count(got)), &Value::Count(current)) => judge_known(old, got, current),
        _ => judge_word(change, current),
    }
}

fn judge_known(old: u64, got: u64, current: u64) -> Step {
    if got <= old || current == old {
        Step::Nothing
    } else if current >= got {
        Step::Write(Value::Count(current - (got - old)))
    } else {
        Step::LeaveAlone
    }
}

fn judge_unknown(old: u64, want: u64, current: u64) -> Step {
    if current <= old {
        Step::Nothing
    } else if current <= want {
        Step::Write(Value::Count(old))
    } else {
        Step::LeaveAlone
    }
}

fn judge_lowered(old: u64, got: u64, current: u64) -> Step {
    if got >= old || current == old {
        Step::Nothing
    } else if current >= got {
        Step::Write(Value::Count(current + (old - got)))
    } else {
        Step::LeaveAlone
    }
}

fn judge_lowering(old: u64, want: u64, current: u64) -> Step {
    if current >= old {
        Step::Nothing
    } else if current >= want {
        Step::Write(Value::Count(old))
    } else {
        Step::LeaveAlone
    }
}

fn judge_word(change: &Change, current: &Value) -> Step {
    let Change { old, want, got, .. } = change;
    let is_ours = match got {
        Some(got) => current == got,
        None => current.fulfils(want),
    };
    let is_unloaded = matches!(current, Value::Word(word) if word.is_empty());
    if current == old {
        Step::Nothing
    } else if is_ours || is_unloaded {
        Step::Write(old.clone())
    } else {
        Step::LeaveAlone
    }
}

/// The error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
