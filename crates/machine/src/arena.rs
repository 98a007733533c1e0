//! An arena: memory laid out for a probe, and the course the probe takes over it in batches.
//!
//! A pass over the arena is cut into equal *shares*, one for each lane (a thread or vCPU) and batch. Every lane goes on
//! where it stopped, so that in the first pass all lanes together visit everything once.

use vmtax_core::{
    arena::{Layout, tie_cycle},
    probe::Probe,
};

use crate::{
    backing::Memory,
    probe::{self, Call, Code, Contents, Numbered, Reply},
};

/// Memory laid out for a probe.
#[derive(Debug)]
pub struct Arena {
    memory: Memory,
    layout: Layout,
    code: Code,
    seed: u64,
    shares: u64,
    course: Course,
}

/// What is known beforehand about the answers.
#[derive(Debug)]
enum Course {
    /// The node at which each share of the cycle begins, by address.
    Cycle { waypoints: Vec<u64> },
    /// The reference can tell from numbers alone.
    Numbers,
}

/// Where one lane stands.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    share: u64,
    position: u64,
}

/// A probe returned something else than its reference: what was timed was not what was meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the probe returned position {got:#x} where its reference says {expected:#x}: the figures are void")]
pub struct WrongAnswer {
    got: u64,
    expected: u64,
}

/// The pointers do not form one cycle through all nodes: memory did not keep what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the chain of pointers returns after {steps} of {nodes} nodes")]
pub struct BrokenCycle {
    steps: u64,
    nodes: u64,
}

impl Arena {
    /// Lays `memory` out for `probe`, in an order that follows from `seed`; `shares` is the number of lanes times the number of batches in a pass.
    pub fn new(memory: Memory, layout: Layout, probe: Probe, seed: u64, shares: u64) -> Result<Self, BrokenCycle> {
        assert!(layout.bytes() <= memory.bytes(), "the layout fits the memory");
        let code = probe::code(probe);
        let course = match code.contents {
            Contents::Cycle => Course::Cycle { waypoints: lay_cycle(&memory, layout, seed, shares)? },
            Contents::Numbers => {
                lay_numbers(&memory);
                Course::Numbers
            }
            Contents::Anything => Course::Numbers,
        };
        Ok(Arena { memory, layout, code, seed, shares, course })
    }

    /// The memory it lies in.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The memory back, with whatever is in it.
    pub fn into_memory(self) -> Memory {
        self.memory
    }

    /// The code of its probe.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Where lane number `lane` of `lanes` begins.
    pub fn cursor(&self, lane: u64, lanes: u64) -> Cursor {
        let share = lane * (self.shares / lanes);
        let position = match &self.course {
            Course::Cycle { waypoints } => waypoints[share as usize],
            Course::Numbers => (self.code.position)(self.layout, self.boundary(share), self.seed),
        };
        Cursor { share, position }
    }

    /// The next call of the lane at `cursor`.
    pub fn call(&self, cursor: &Cursor) -> Call {
        Call {
            arena: self.memory.address(),
            bytes: self.layout.bytes(),
            accesses: self.boundary(cursor.share + 1) - self.boundary(cursor.share),
            position: cursor.position,
            step: (self.code.step)(self.layout),
        }
    }

    /// Compares an answer with what it must be, and moves the lane on.
    pub fn advance(&self, cursor: &mut Cursor, call: Call, reply: &Reply) -> Result<(), WrongAnswer> {
        let next = (cursor.share + 1) % self.shares;
        let expected = match &self.course {
            Course::Cycle { waypoints } => {
                Reply { ticks: 0, position: waypoints[next as usize], checksum: waypoints[next as usize] }
            }
            Course::Numbers => (self.code.reference)(&mut Numbered, call),
        };
        if (reply.position, reply.checksum) != (expected.position, expected.checksum) {
            return Err(WrongAnswer { got: reply.position, expected: expected.position });
        }
        *cursor = Cursor { share: next, position: reply.position };
        Ok(())
    }

    /// The number of accesses in a pass before `share`.
    fn boundary(&self, share: u64) -> u64 {
        let accesses = u128::from((self.code.accesses)(self.layout));
        (accesses * u128::from(share) / u128::from(self.shares)) as u64
    }
}

/// Ties the pointers into one random cycle, in place, walks it once to see that it is one, and notes where shares begin.
fn lay_cycle(memory: &Memory, layout: Layout, seed: u64, shares: u64) -> Result<Vec<u64>, BrokenCycle> {
    let node = |n: u64| memory.as_ptr().wrapping_add(layout.offset(n) as usize).cast::<u64>();
    let nodes = layout.nodes();
    for n in 0..nodes {
        // SAFETY: a node lies within the layout, which fits the memory, at a multiple of 64; nobody else refers to it.
        unsafe { node(n).write(node(n) as u64) };
    }
    tie_cycle(nodes, seed, |i, j| {
        // SAFETY: as above.
        unsafe { core::ptr::swap(node(i), node(j)) };
    });
    let start = node(0) as u64;
    let mut at = start;
    let mut waypoints = Vec::with_capacity(shares as usize);
    for step in 0..nodes {
        if step == nodes * waypoints.len() as u64 / shares {
            waypoints.push(at);
        }
        // SAFETY: every pointer written above is the address of a node.
        at = unsafe { (at as *const u64).read() };
        if at == start && step + 1 < nodes {
            return Err(BrokenCycle { steps: step + 1, nodes });
        }
    }
    if at == start { Ok(waypoints) } else { Err(BrokenCycle { steps: nodes, nodes }) }
}

/// Writes its number into every word.
fn lay_numbers(memory: &Memory) {
    let words = memory.as_ptr().cast::<u64>();
    for n in 0..memory.bytes() / 8 {
        // SAFETY: within the memory, which is writable; nobody else refers to it.
        unsafe { words.add(n as usize).write(n) };
    }
}

#[cfg(test)]
mod tests {
    use vmtax_core::{
        setting::Backing,
        units::{Bytes, KIB, MIB},
    };

    use super::*;

    fn arena(probe: Probe, shares: u64) -> Arena {
        let memory = Memory::allocate(Backing::Small, Bytes(2 * MIB)).unwrap();
        Arena::new(memory, Layout::new(probe, Bytes(2 * MIB), Bytes(4 * KIB)).unwrap(), probe, 11, shares).unwrap()
    }

    #[test]
    fn every_probe_gives_the_expected_answer_on_every_lane_pass_after_pass() {
        for probe in Probe::ALL {
            for (lanes, batches) in [(1, 1), (1, 4), (3, 5)] {
                let arena = arena(probe, lanes * batches);
                for lane in 0..lanes {
                    let mut cursor = arena.cursor(lane, lanes);
                    for _ in 0..2 * lanes * batches {
                        let call = arena.call(&cursor);
                        // SAFETY: the arena was laid out for this probe and is not referred to meanwhile.
                        let reply = unsafe { probe::run(arena.code(), &call) };
                        arena.advance(&mut cursor, call, &reply).unwrap_or_else(|e| panic!("{probe}: {e}"));
                    }
                }
            }
        }
    }

    #[test]
    fn a_random_walk_follows_from_its_seed() {
        let begin = |seed| {
            let memory = Memory::map(Backing::Small, Bytes(2 * MIB)).unwrap();
            let layout = Layout::new(Probe::WalkRandom, Bytes(2 * MIB), Bytes(64)).unwrap();
            let arena = Arena::new(memory, layout, Probe::WalkRandom, seed, 1).unwrap();
            arena.call(&arena.cursor(0, 1)).position
        };
        assert_eq!(begin(5), begin(5));
        assert_ne!(begin(5), begin(6));
    }

    #[test]
    fn the_shares_of_a_pass_add_up_to_every_access() {
        let arena = arena(Probe::Chase, 7);
        let accesses: u64 = (0..7).map(|share| arena.call(&Cursor { share, position: 0 }).accesses).sum();
        assert_eq!(accesses, 512);
    }

    #[test]
    fn an_answer_that_skipped_an_access_is_noticed() {
        for probe in Probe::ALL {
            let arena = arena(probe, 2);
            let mut cursor = arena.cursor(0, 1);
            let call = arena.call(&cursor);
            // SAFETY: as above.
            let reply = unsafe { probe::run(arena.code(), &Call { accesses: call.accesses - 1, ..call }) };
            assert!(arena.advance(&mut cursor, call, &reply).is_err(), "{probe}");
        }
    }
}
