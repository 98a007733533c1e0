//! The agent: reads a request, does it, answers; until the host says power off, or closes its end.

use std::{
    env,
    ffi::OsStr,
    fs,
    io::{Read, Write},
    os::fd::AsFd,
    process::ExitCode,
    thread,
};

use anyhow::bail;
use vmtax_core::units::Bytes;
use vmtax_machine::{
    backing::Memory,
    facts,
    knob::{Contention, Host, Lease, Pool, Switch, Want},
};

use super::{
    file, frame,
    message::{Answer, Ask, Got, Hello, Place, Placed, Request, Say, Wish},
    place,
    port::Port,
    run, trial, world,
};
use crate::{
    image::initramfs::{MANIFEST, Manifest},
    output,
};

/// The hidden argument that makes vmtax an agent.
pub const ARGUMENT: &str = "__agent";

/// Runs the agent if this process was started as one.
pub fn dispatch() -> Option<ExitCode> {
    if env::args_os().nth(1)? != OsStr::new(ARGUMENT) {
        return None;
    }
    let served = enter_world().and_then(|()| Port::open().map_err(anyhow::Error::from)).and_then(serve);
    Some(match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(format_args!("vmtax agent: {error:#}"));
            ExitCode::FAILURE
        }
    })
}

/// Where programs are, if there are any.
fn enter_world() -> anyhow::Result<()> {
    match manifest()?.root {
        None => Ok(()),
        Some(disk) => world::enter(&disk),
    }
}

fn manifest() -> anyhow::Result<Manifest> {
    Ok(serde_json::from_slice(&fs::read(MANIFEST)?)?)
}

fn serve(mut port: impl Read + Write + AsFd) -> anyhow::Result<()> {
    let mut guest = Guest { lease: None, placed: None };
    while let Some(body) = frame::read(&mut port)? {
        let Request { id, ask } = serde_json::from_slice(&body)?;
        let is_last = ask == Ask::PowerOff;
        let said = match ask {
            Ask::Run(order) => run::run(&order, &mut port, id),
            ask => guest.answer(ask),
        };
        let say = said.unwrap_or_else(|error| Say::Failed(format!("{error:#}")));
        frame::write(&mut port, &serde_json::to_vec(&Answer { id, say })?)?;
        if is_last {
            break;
        }
    }
    Ok(())
}

/// The guest, as it was set.
struct Guest {
    /// What holds the settings; they are put back with it.
    lease: Option<Lease>,
    /// The memory in which an address was told: until the next question it is held, and that is true.
    placed: Option<Memory>,
}

impl Guest {
    fn answer(&mut self, ask: Ask) -> anyhow::Result<Say> {
        self.placed = None;
        match ask {
            Ask::Hello => hello().map(Say::Hello),
            Ask::Facts => Ok(Say::Facts(Box::new(facts::host()))),
            Ask::Set(wish) => self.set(&wish).map(Say::Set),
            Ask::Trial(trial) => trial::run(&trial, self.lease.take()).map(Say::Found),
            Ask::Place(place) => self.place(place).map(Say::Placed),
            Ask::Write { path, contents } => file::write(&path, &contents.0).map(|()| Say::Written),
            Ask::Read { path, from } => file::read(&path, from).map(Say::Piece),
            Ask::Run(_) | Ask::Interrupt => bail!("nothing runs"),
            Ask::PowerOff => Ok(Say::Bye),
        }
    }

    fn place(&mut self, place: Place) -> anyhow::Result<Placed> {
        let memory = Memory::allocate(place.backing, place.bytes)?;
        let (memory, placed) = place::tell(memory, place.at)?;
        self.placed = Some(memory);
        Ok(placed)
    }

    fn set(&mut self, wish: &Wish) -> anyhow::Result<Got> {
        if let Some(lease) = self.lease.take() {
            lease.release()?;
        }
        let lease = self.lease.insert(Lease::acquire(Host::default(), Contention::Refuse)?);
        for &(page, pages) in &wish.pools {
            lease.borrow_pool(Want { page, pages })?;
        }
        if let Some(word) = &wish.thp {
            lease.turn(Switch::Thp, word)?;
        }
        let host = lease.host();
        let pools = wish.pools.iter().map(|&(page, _)| Ok((page, Pool::read(host, page)?.available())));
        let pools = pools.collect::<anyhow::Result<_>>()?;
        Ok(Got { pools, thp: Switch::Thp.read(host).ok() })
    }
}

fn hello() -> anyhow::Result<Hello> {
    let unloaded = fs::read_to_string(super::init::UNLOADED).unwrap_or_default();
    let host = facts::host();
    Ok(Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        binary: manifest()?.init,
        kernel: host.kernel.unwrap_or_default(),
        cpus: thread::available_parallelism()?.get() as u32,
        memory: host.memory.total.unwrap_or(Bytes(0)),
        unloaded: unloaded.lines().map(str::to_owned).collect(),
    })
}
