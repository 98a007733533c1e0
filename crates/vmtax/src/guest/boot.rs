//! A guest from its start to its end: boot, ask, shut down.
//!
//! Booting passes four gates, each with its own patience, so that a message can say which one was not reached: QEMU has
//! made the machine (QMP greets), the kernel has written to the console, the agent has said hello, and it is ours.
//! A kernel that never writes is how KVM in software shows: its vCPU runs, one emulated instruction after another, and the
//! kernel's decompressor alone would take minutes.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    process::Pid,
    thread::{CpuSet, sched_setaffinity},
};
use vmtax_core::{experiment::Finding, host::Host, setting::Backing, units::GIB};
use vmtax_machine::tap;

use super::{
    GuestError, Machine,
    console::Console,
    directory,
    evidence::{self, Evidence},
    keeper::{Input, Keeper, Order, ThpRule},
    machine::{AGENT, CONSOLE, INITRD, Load, Net, QMP, SERIAL, Vhost},
    pace::Pace,
    port,
    qmp::Qmp,
    stream::Door,
    talk::{Talk, checked, unexpected},
};
use crate::{
    agent::{
        init::Mode,
        message::{Ask, Got, Hello, Say, Trial, Wish},
        port::Way,
    },
    image::{Initramfs, Kernel},
};

/// How often a guest that boots is looked at.
const PAUSE: Duration = Duration::from_millis(5);

/// How long a guest has for each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// From QEMU's start to a machine with its memory populated; a second for each GiB comes on top.
    pub machine: Duration,
    /// From there to the first byte on the console. Emulated, that is 1 s.
    pub sign: Duration,
    /// From there to the agent's hello.
    pub agent: Duration,
    /// For a question that takes no time.
    pub answer: Duration,
    /// From the request to power off to the end of QEMU.
    pub end: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Patience { machine: seconds(30), sign: seconds(15), agent: seconds(60), answer: seconds(30), end: seconds(15) }
    }
}

/// How long a boot took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// To the made machine.
    pub machine: Duration,
    /// To the first byte on the console.
    pub sign: Duration,
    /// To the agent's hello.
    pub agent: Duration,
}

/// A guest that runs, and whose agent answers. Dropping it ends it at once.
#[derive(Debug)]
pub struct Guest {
    pub(super) machine: Machine,
    pace: Pace,
    pub(super) patience: Patience,
    keeper: Keeper,
    pub(super) pid: u32,
    pub(super) qmp: Qmp,
    pub(super) talk: Talk,
    hello: Hello,
    timing: Timing,
}

impl Guest {
    /// Boots `kernel` on `machine`, with an initramfs that was made for it.
    pub fn boot(
        machine: Machine,
        kernel: &Kernel,
        initramfs: &Initramfs,
        patience: Patience,
    ) -> Result<Guest, GuestError> {
        machine.check()?;
        let pace = Pace::here();
        let patience = pace.patience(patience);
        let program = program(&machine.qemu)?;
        let input = input(&machine)?;
        let begun = Instant::now();
        let mut keeper = Keeper::start(&directory::parent())?;
        let place = keeper.directory().to_owned();
        let initrd = place.join(INITRD);
        fs::write(&initrd, &initramfs.bytes).map_err(|e| GuestError::host(format!("write {}", initrd.display()), e))?;
        let [qmp, console, agent, serial] = [QMP, CONSOLE, AGENT, SERIAL].map(|name| {
            let path = place.join(name);
            Door::at(&path).map_err(|e| GuestError::host(format!("listen at {}", path.display()), e))
        });
        let (qmp, console, agent, serial) = (qmp?, console?, agent?, serial?);
        let load = Load {
            kernel: kernel.image.clone(),
            initrd: INITRD.into(),
            command_line: command_line(&[Mode::Agent.parameter(), pace.words(machine.accel), &machine.append]),
        };
        let thp = match machine.backing {
            Backing::Small => ThpRule::Never,
            Backing::Thp | Backing::Huge2m | Backing::Huge1g => ThpRule::Host,
        };
        let pid = keeper.run(&Order { program, arguments: machine.arguments(&load), thp, input })?;

        let machine_patience = patience.machine + Duration::from_secs(machine.memory.0 / GIB);
        let deadline = begun + machine_patience;
        let [qmp, console, agent, serial] = [qmp, console, agent, serial].map(|door| {
            let entered = door.enter(deadline, || keeper.ended().is_some());
            entered.map_err(|e| GuestError::host("wait for QEMU to connect", e))?.ok_or_else(|| ended(&keeper))
        });
        let (qmp, console, agent, serial) = (qmp?, Console::follow(console?), agent?, serial?);
        let mut qmp = Qmp::greet(qmp, machine_patience)?.ok_or_else(|| ended(&keeper))?;
        let made = begun.elapsed();
        if let Sign::None = wait_for_sign(&keeper, &console, patience.sign)? {
            let emulated = evidence::emulated_instructions(&mut qmp);
            return Err(GuestError::NoSign { accel: machine.accel, after: patience.sign, emulated });
        }
        let sign = begun.elapsed();

        let (talk, said) = port::meet(agent, serial, console, patience.agent)?;
        let hello = own(said, initramfs)?;
        let timing = Timing { machine: made, sign, agent: begun.elapsed() };
        Ok(Guest { machine, pace, patience, keeper, pid, qmp, talk, hello, timing })
    }

    /// Who answered.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// By what the agent is reached.
    pub fn way(&self) -> Way {
        self.talk.way()
    }

    /// How long the boot took.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// What it is seen from inside.
    pub fn facts(&mut self) -> Result<Host, GuestError> {
        match self.talk.ask(Ask::Facts, "for its facts", self.patience.answer)? {
            Say::Facts(host) => Ok(*host),
            other => Err(unexpected(&other)),
        }
    }

    /// Sets it as wished; what was got, read back.
    pub fn set(&mut self, wish: Wish) -> Result<Got, GuestError> {
        match self.talk.ask(Ask::Set(wish), "for settings", self.patience.answer)? {
            Say::Set(got) => Ok(got),
            other => Err(unexpected(&other)),
        }
    }

    /// Measures in it, for `patience` at most, or longer on a host that is slow for all guests.
    pub fn trial(&mut self, trial: Trial, patience: Duration) -> Result<Finding, GuestError> {
        match self.talk.ask(Ask::Trial(trial), "for a trial", self.pace.stretched(patience))? {
            Say::Found(finding) => checked(finding),
            other => Err(unexpected(&other)),
        }
    }

    /// Binds each vCPU to one of these CPUs of the host, in order and over again. That it holds is for [`Guest::evidence`] to say.
    pub fn pin(&mut self, cpus: &[usize]) -> Result<(), GuestError> {
        for (thread, &cpu) in evidence::vcpus(&mut self.qmp)?.into_iter().zip(cpus.iter().cycle()) {
            let mut set = CpuSet::new();
            if cpu >= CpuSet::MAX_CPU {
                return Err(GuestError::Machine(format!("no host has a CPU {cpu}")));
            }
            set.set(cpu);
            let bound = sched_setaffinity(Pid::from_raw(thread as i32), &set);
            bound.map_err(|e| GuestError::host(format!("bind a vCPU to CPU {cpu}"), e.into()))?;
        }
        Ok(())
    }

    /// What is observed of it from outside. One that contradicts the machine is an error.
    pub fn evidence(&mut self) -> Result<Evidence, GuestError> {
        let evidence = Evidence::observe(&mut self.qmp, self.pid, &self.machine)?;
        match evidence.contradiction(&self.machine) {
            None => Ok(evidence),
            Some(contradiction) => Err(GuestError::Contradiction(contradiction)),
        }
    }

    /// Powers it off and waits for its end; how long that took.
    pub fn shut_down(mut self) -> Result<Duration, GuestError> {
        let begun = Instant::now();
        let said = self.talk.ask(Ask::PowerOff, "the request to power off", self.patience.answer)?;
        if said != Say::Bye {
            return Err(unexpected(&said));
        }
        while self.keeper.ended().is_none() {
            if begun.elapsed() > self.patience.end {
                let asked = "the request to power off";
                return Err(GuestError::Silent {
                    asked,
                    after: self.patience.end,
                    console: self.talk.console().tail(),
                });
            }
            thread::sleep(PAUSE);
        }
        Ok(begun.elapsed())
    }
}

/// The hello of the agent that is in the image, and of no other.
fn own(said: Say, initramfs: &Initramfs) -> Result<Hello, GuestError> {
    let hello = match said {
        Say::Hello(hello) => hello,
        other => return Err(unexpected(&other)),
    };
    if hello.version != env!("CARGO_PKG_VERSION") || hello.binary != initramfs.manifest.init {
        return Err(GuestError::Protocol("its agent is another vmtax than the one in its image".to_owned()));
    }
    Ok(hello)
}

/// QEMU's own end, in its words. It has ended, or is about to.
fn ended(keeper: &Keeper) -> GuestError {
    let begun = Instant::now();
    while keeper.ended().is_none() && begun.elapsed() < Duration::from_secs(5) {
        thread::sleep(PAUSE);
    }
    keeper.stderr().settle();
    let reason = keeper.stderr().tail().0.join("; ");
    let status = keeper.ended().unwrap_or_else(|| "no status".to_owned());
    GuestError::Qemu { status, reason: if reason.is_empty() { "it said nothing".to_owned() } else { reason } }
}

/// Whether a guest has written to its console.
enum Sign {
    Seen,
    None,
}

fn wait_for_sign(keeper: &Keeper, console: &Console, patience: Duration) -> Result<Sign, GuestError> {
    let begun = Instant::now();
    while !console.has_spoken() {
        if keeper.ended().is_some() {
            return Err(ended(keeper));
        }
        if begun.elapsed() > patience {
            return Ok(Sign::None);
        }
        thread::sleep(PAUSE);
    }
    Ok(Sign::Seen)
}

/// What the kernel is told: a console, nobody to wait for after a panic, and these words.
fn command_line(more: &[&str]) -> String {
    let words = ["console=ttyS0", "panic=-1"].iter().chain(more);
    words.copied().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The tap that QEMU will have. It is tried here first, where the reason for a refusal can be told.
fn input(machine: &Machine) -> Result<Input, GuestError> {
    match &machine.net {
        None | Some(Net::User) => Ok(Input::Null),
        Some(Net::Tap { name, vhost }) => {
            tap::open(name.as_deref())?;
            match vhost {
                Vhost::On => tap::check_vhost()?,
                Vhost::Off => {}
            }
            Ok(Input::Tap(name.clone()))
        }
    }
}

/// The program by its absolute path.
pub fn program(name: &Path) -> Result<PathBuf, GuestError> {
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|at| at.is_file() && at.permissions().mode() & 0o111 != 0);
    let found = if name.components().count() > 1 {
        std::path::absolute(name).ok().filter(is_program)
    } else {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).map(|directory| directory.join(name)).find(is_program)
    };
    found.ok_or_else(|| GuestError::NoQemu(name.to_owned()))
}
