//! `vmtax image`: what guests boot, and whether they do.

use std::{process::ExitCode, time::Duration};

use serde_json::json;
use vmtax_core::{
    experiment::Finding,
    host::Host,
    units::{MIB, PageSize},
};
use vmtax_machine::{
    facts,
    knob::{self, Contention, Lease, Want},
};

use super::Refusal;
use crate::{
    agent::message::{Got, Hello, Trial, Wish},
    cli::{AccelChoice, BootArgs, ImageArgs, ImageCommand, KernelArgs},
    guest::{Accel, Guest, GuestError, Machine, Patience, Timing, evidence::Evidence},
    image::{ImageError, Initramfs, Kernel, Role, Source, cache::Kept, package},
    output,
};

mod build;

/// What is measured in a guest that is only tried: enough to see that it can be.
const PLAN: &str = "[factors]\nvenue = [\"native\"]\nhost = [\"4k\"]\n[[workload]]\nprobe = \"chase\"\nsize = \"4M\"\n";

/// Far more than it takes emulated.
const PATIENCE: Duration = Duration::from_secs(60);

/// A few huge pages, and transparent ones where they are asked for: to see that a guest can be set.
fn wish() -> Wish {
    Wish { pools: vec![(PageSize::Large, 4)], thp: Some("madvise".to_owned()) }
}

/// Does one of the things about images.
pub fn run(args: &ImageArgs) -> anyhow::Result<ExitCode> {
    match &args.what {
        ImageCommand::Kernel(args) => kernel(args),
        ImageCommand::Build(args) => build::run(args),
        ImageCommand::Boot(args) => boot(args),
    }
}

fn kernel(args: &KernelArgs) -> anyhow::Result<ExitCode> {
    let kernel = match Kernel::find(&source(args)) {
        Err(ImageError::NoKernel { tried }) => {
            output::note(format_args!("no kernel on this host ({}); getting Debian's", tried.join("; ")));
            let cache = Kept::Kernel.place().ok_or_else(|| {
                Refusal::new("cannot keep a kernel: there is no cache directory", "set HOME or XDG_CACHE_HOME")
            })?;
            Kernel::unpacked(&package::fetch(&cache)?)?
        }
        found => found?,
    };
    let initramfs = Initramfs::build(&kernel, Role::Guest)?;
    let modules = kernel.modules.as_ref().map_or("none".to_owned(), |modules| modules.display().to_string());
    output::print(&format!(
        "kernel     {}\nimage      {}\nmodules    {modules}\nloaded     {}\ninitramfs  {:.1} MiB\n",
        kernel.release,
        kernel.image.display(),
        initramfs.manifest.modules.join("\n           "),
        initramfs.bytes.len() as f64 / MIB as f64,
    ))?;
    Ok(ExitCode::SUCCESS)
}

pub fn source(args: &KernelArgs) -> Source {
    match &args.kernel {
        None => Source::Found,
        Some(image) => Source::Named { image: image.clone(), modules: args.modules.clone() },
    }
}

/// What was seen of a guest that was tried.
struct Seen {
    hello: Hello,
    timing: Timing,
    evidence: Evidence,
    facts: Host,
    got: Got,
    finding: Finding,
    ending: Duration,
}

fn boot(args: &BootArgs) -> anyhow::Result<ExitCode> {
    let pool = borrowed(args)?;
    let kernel = Kernel::find(&source(&args.kernel))?;
    let initramfs = Initramfs::build(&kernel, Role::Guest)?;
    let machine = |accel| Machine {
        qemu: args.qemu.clone(),
        board: args.board.clone(),
        cpu: args.cpu.clone(),
        vcpus: args.vcpus,
        memory: args.memory,
        backing: args.host.backing(),
        append: args.append.clone(),
        ..Machine::new(accel)
    };
    let tried = |accel| tried(machine(accel), &args.pin, &kernel, &initramfs);
    let seen = match args.accel {
        AccelChoice::Kvm => tried(Accel::Kvm)?,
        AccelChoice::Tcg => tried(Accel::Tcg)?,
        AccelChoice::Auto => match tried(Accel::Kvm) {
            Err(error @ (GuestError::Qemu { .. } | GuestError::NoSign { .. })) => {
                output::note(format_args!("under KVM: {error}\nemulating the processor instead"));
                tried(Accel::Tcg)?
            }
            seen => seen?,
        },
    };
    if let Some(lease) = pool {
        lease.release()?.iter().for_each(output::note);
    }
    output::print(&if args.json { json(&seen) } else { text(&seen) })?;
    Ok(ExitCode::SUCCESS)
}

/// The pages that the guest's memory needs, where they are to be borrowed. Dropped, the lease gives them back as well.
fn borrowed(args: &BootArgs) -> Result<Option<Lease>, knob::Error> {
    let page = args.host.backing().pool().filter(|_| args.reserve);
    page.map(|page| {
        let mut lease = Lease::acquire(knob::Host::default(), Contention::Refuse)?;
        lease.borrow_pool(Want { page, pages: args.memory.0.div_ceil(page.bytes()) })?;
        Ok(lease)
    })
    .transpose()
}

/// What times say of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    /// A processor ran it.
    Measured,
    /// Its processor was emulated, or its host's was.
    Meaningless,
}

impl Times {
    fn of(seen: &Seen) -> Times {
        let is_emulated = seen.evidence.accel == Accel::Tcg.name() || facts::is_emulated();
        if is_emulated { Times::Meaningless } else { Times::Measured }
    }
}

fn tried(machine: Machine, pin: &[usize], kernel: &Kernel, initramfs: &Initramfs) -> Result<Seen, GuestError> {
    let mut guest = Guest::boot(machine, kernel, initramfs, Patience::default())?;
    guest.pin(pin)?;
    let evidence = guest.evidence()?;
    let facts = guest.facts()?;
    let got = guest.set(wish())?;
    let finding = guest.trial(Trial { plan: PLAN.to_owned(), seed: 1 }, PATIENCE)?;
    let (hello, timing) = (guest.hello().clone(), guest.timing());
    Ok(Seen { hello, timing, evidence, facts, got, finding, ending: guest.shut_down()? })
}

fn text(seen: &Seen) -> String {
    let Seen { hello, timing, evidence, facts, got, finding, ending } = seen;
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let doubt = match Times::of(seen) {
        Times::Measured => "",
        Times::Meaningless => ": times mean nothing",
    };
    let pools = got.pools.iter().map(|(page, pages)| format!("{pages} pages of {} set aside", page.prose()));
    let thp = got.thp.iter().map(|word| format!("transparent huge pages {word}"));
    let mut rows = vec![
        ("kernel", hello.kernel.clone()),
        ("cpu", format!("{} × {}", hello.cpus, facts.cpu.brand.as_deref().unwrap_or("unnamed"))),
        ("memory", hello.memory.to_string()),
        ("set", pools.chain(thp).collect::<Vec<_>>().join(", ")),
        ("qemu", evidence.qemu_version.clone()),
        ("executed", format!("by {}{doubt}", evidence.accel)),
        (
            "stands on",
            format!(
                "pages of {} kB on the host, {:.0} % in transparent huge pages",
                evidence.ram.kernel_page_kb,
                100.0 * evidence.ram.thp_coverage
            ),
        ),
        (
            "boot",
            format!(
                "{}: machine {}, first sign {}, agent {}",
                seconds(timing.agent),
                seconds(timing.machine),
                seconds(timing.sign - timing.machine),
                seconds(timing.agent - timing.sign)
            ),
        ),
        ("chase", format!("{:.1} ns an access over 4 MiB in 4k pages", finding.metrics[0].value)),
        ("power off", seconds(*ending)),
    ];
    rows.extend(hello.unloaded.iter().map(|line| ("not loaded", line.clone())));
    rows.iter().map(|(name, value)| format!("{name:<11}{value}\n")).collect()
}

fn json(seen: &Seen) -> String {
    let Seen { hello, timing, evidence, facts, got, finding, ending } = seen;
    let value = json!({
        "schema": 1,
        "hello": hello,
        "evidence": evidence,
        "emulated": Times::of(seen) == Times::Meaningless,
        "facts": facts,
        "set": got,
        "boot_seconds": timing.agent.as_secs_f64(),
        "machine_seconds": timing.machine.as_secs_f64(),
        "sign_seconds": timing.sign.as_secs_f64(),
        "power_off_seconds": ending.as_secs_f64(),
        "finding": finding,
    });
    value.to_string() + "\n"
}
