//! vmtax against plain C, in pairs: what our own machinery costs. Ratios with 95 % intervals; nothing is asserted, as
//! times are the machine's business.
//!
//! - `first exit`: from opening `/dev/kvm` to the first exit of a micro-VM; wanted: at most 1.2.
//! - `chase`: the probe against `p = *(void **)p` over the same cycle in the same memory; wanted: 0.98 to 1.02.

use std::{
    error::Error,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::atomic::AtomicBool,
    time::Instant,
};

use vmtax_core::{
    arena::{Layout, tie_cycle},
    probe::Probe,
    prose::change_within,
    setting::Backing,
    stats::Estimate,
    units::{Bytes, KIB, MIB, PageSize},
};
use vmtax_machine::{
    Kvm,
    backing::Memory,
    microvm::{Microvm, low_bytes},
    probe::{self, Call, Code},
};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Short turns taken often: what the machine does meanwhile then happens to both.
const PAIRS: usize = 1000;
static GO_ON: AtomicBool = AtomicBool::new(false);

fn main() -> Outcome<()> {
    match first_exit() {
        Ok(()) => {}
        Err(e) => println!("first exit: skipped: {e}"),
    }
    chase()
}

/// A program in C that answers each byte with a time.
struct Rival {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Rival {
    fn start(name: &str, arguments: &[String]) -> Outcome<Rival> {
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/c").join(name).with_extension("c");
        let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let compiled = Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(&source).status()?;
        if !compiled.success() {
            return Err(format!("cc does not compile {}", source.display()).into());
        }
        let mut child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let ask = child.stdin.take().ok_or("no pipe")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        Ok(Rival { child, ask, answers })
    }

    fn nanos(&mut self) -> Outcome<f64> {
        self.ask.write_all(b".")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().parse()?)
    }

    fn end(self) -> Outcome<()> {
        let Rival { mut child, ask, .. } = self;
        drop(ask);
        child.wait()?;
        Ok(())
    }
}

/// Takes pairs in alternating order and prints their ratio.
fn pairs(what: &str, mut ours: impl FnMut() -> Outcome<f64>, rival: &mut Rival) -> Outcome<()> {
    let mut taken = Vec::new();
    for n in 0..PAIRS + 2 {
        let pair = if n % 2 == 0 {
            let ours = ours()?;
            (ours, rival.nanos()?)
        } else {
            let theirs = rival.nanos()?;
            (ours()?, theirs)
        };
        taken.push(pair);
    }
    // The first two warm both up.
    let ratio = Estimate::of_ratio(&taken[2..]).ok_or("no positive times")?;
    let median = |side: fn(&(f64, f64)) -> f64| vmtax_core::stats::median(&taken.iter().map(side).collect::<Vec<_>>());
    println!(
        "{what}: {:.1} µs, in C {:.1} µs; vmtax against C {} over {PAIRS} pairs",
        median(|p| p.0) / 1000.0,
        median(|p| p.1) / 1000.0,
        change_within(&ratio.minus_one()),
    );
    Ok(())
}

fn first_exit() -> Outcome<()> {
    let bytes = 64 * MIB;
    assert_eq!(low_bytes(Bytes(bytes), PageSize::Small).0, 2 * MIB, "as in first_exit.c");
    let code = probe::code(Probe::Chase);
    let hex: String = code.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let arena = Memory::allocate(Backing::Small, Bytes(bytes))?;
    // SAFETY: the first word of memory that is ours.
    unsafe { (arena.address() as *mut u64).write(arena.address()) };
    let call = Call { arena: arena.address(), bytes, accesses: 1, position: arena.address(), step: 0 };
    let ours = || {
        let before = Instant::now();
        let kvm = Kvm::new()?;
        let mut vm = Microvm::new(&kvm, &arena, PageSize::Small, 1, &code, &GO_ON)?;
        vm.vcpus()[0].run(&call)?;
        Ok(before.elapsed().as_nanos() as f64)
    };
    let mut rival = Rival::start("first_exit", &[bytes.to_string(), hex])?;
    pairs("first exit", ours, &mut rival)?;
    rival.end()
}

/// Memory that another process can map too, at the same address.
fn shared_memory(bytes: u64) -> Outcome<(i32, *mut u64)> {
    // SAFETY: a name, no flags: the child inherits the descriptor.
    let fd = unsafe { libc::memfd_create(c"vmtax-bench".as_ptr(), 0) };
    // SAFETY: the descriptor is ours; the address is chosen by the kernel.
    let start = unsafe {
        libc::ftruncate(fd, bytes as i64);
        libc::mmap(std::ptr::null_mut(), bytes as usize, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, 0)
    };
    if start == libc::MAP_FAILED { Err("no shared memory".into()) } else { Ok((fd, start.cast())) }
}

fn chase() -> Outcome<()> {
    let bytes = 64 * MIB;
    let layout = Layout::new(Probe::Chase, Bytes(bytes), Bytes(4 * KIB))?;
    let (fd, start) = shared_memory(bytes)?;
    let node = |n: u64| start.wrapping_byte_add(layout.offset(n) as usize);
    for n in 0..layout.nodes() {
        // SAFETY: nodes lie within the mapping.
        unsafe { node(n).write(node(n) as u64) };
    }
    tie_cycle(layout.nodes(), 1, |i, j| {
        // SAFETY: as above.
        unsafe { std::ptr::swap(node(i), node(j)) };
    });
    let code: Code = probe::code(Probe::Chase);
    let first = node(0) as u64;
    let call = Call { arena: start as u64, bytes, accesses: layout.nodes(), position: first, step: 0 };
    let ours = || {
        let before = Instant::now();
        // SAFETY: the cycle lies within the mapping, which stays.
        unsafe { probe::run(&code, &call) };
        Ok(before.elapsed().as_nanos() as f64)
    };
    let arguments =
        [fd.to_string(), (start as u64).to_string(), bytes.to_string(), first.to_string(), layout.nodes().to_string()];
    let mut rival = Rival::start("chase", &arguments)?;
    pairs("chase", ours, &mut rival)?;
    rival.end()
}
