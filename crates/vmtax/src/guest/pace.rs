//! How fast guests are on this host: as their accelerator lets them be, or slower by an order because the host itself is emulated,
//! as in `vmtax sandbox`.
//!
//! There exits from a guest are dear, and a character on its serial console takes some. A kernel that tells all it does
//! booted in 85 s, one that tells only warnings in 10 s (Debian's 6.1 in a sandbox on 2 busy CPUs; one boot each, so an order of
//! magnitude and no more).

use std::time::Duration;

use vmtax_machine::facts;

use super::{Accel, Patience};

/// By how much longer everything may take on an emulated host.
const STRETCH: u32 = 4;

/// The pace of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// A processor executes the host's instructions.
    Plain,
    /// QEMU does.
    Emulated,
}

impl Pace {
    /// That of this host.
    pub fn here() -> Pace {
        if facts::is_emulated() { Pace::Emulated } else { Pace::Plain }
    }

    /// Words for the command line of a guest's kernel. Where guests are fast, the first line of the console is waited for as
    /// a sign of life.
    pub const fn words(self, accel: Accel) -> &'static str {
        match (self, accel) {
            (Pace::Emulated, Accel::Kvm) => "quiet",
            (Pace::Plain, Accel::Kvm) | (Pace::Plain | Pace::Emulated, Accel::Tcg) => "",
        }
    }

    /// How long something may take here that takes at most `time` elsewhere.
    pub fn stretched(self, time: Duration) -> Duration {
        match self {
            Pace::Plain => time,
            Pace::Emulated => time * STRETCH,
        }
    }

    /// As [`Pace::stretched`], for every step.
    pub fn patience(self, patience: Patience) -> Patience {
        let Patience { machine, sign, agent, answer, end } = patience;
        let [machine, sign, agent, answer, end] = [machine, sign, agent, answer, end].map(|time| self.stretched(time));
        Patience { machine, sign, agent, answer, end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_guests_under_kvm_on_an_emulated_host_are_told_to_be_quiet() {
        assert_eq!(Pace::Emulated.words(Accel::Kvm), "quiet");
        assert_eq!(Pace::Emulated.words(Accel::Tcg), "");
        assert_eq!(Pace::Plain.words(Accel::Kvm), "");
    }

    #[test]
    fn an_emulated_host_has_more_time_for_every_step() {
        let plain = Patience::default();
        assert_eq!(Pace::Plain.patience(plain), plain);
        let Patience { machine, sign, agent, answer, end } = Pace::Emulated.patience(plain);
        let stretched = [machine, sign, agent, answer, end];
        let before = [plain.machine, plain.sign, plain.agent, plain.answer, plain.end];
        assert!(stretched.iter().zip(before).all(|(after, before)| *after > before));
    }
}
