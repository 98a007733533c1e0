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
    agent::{
        message::{Got, Hello, Trial, Wish},
        port::Way,
    },
    cli::{AccelChoice, BootArgs, ImageArgs, ImageCommand, KernelArgs},
    guest::{
        Accel, Guest, GuestError, Machine, Patience, Timing, domain,
        evidence::Evidence,
        link::{Link, Thread},
    },
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
    way: Way,
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
    let net = args.net().map_err(|why| Refusal::new(why, "--net tap"))?;
    let domain = args.domain.as_deref().map(domain::find).transpose().map_err(GuestError::from)?;
    for note in domain.iter().flat_map(|domain| &domain.notes) {
        output::note(note);
    }
    let described =
        |accel| domain.as_ref().map(|domain| Machine { append: args.append.clone(), ..domain.under(accel) });
    let pin = domain.as_ref().map_or(&args.pin, |domain| &domain.pin);
    let plain = |accel| Machine {
        qemu: args.qemu.clone(),
        board: args.board.clone(),
        cpu: args.cpu.clone(),
        vcpus: args.vcpus,
        memory: args.memory,
        backing: args.host.backing(),
        net: net.clone(),
        append: args.append.clone(),
        ..Machine::new(accel)
    };
    let machine = |accel| described(accel).unwrap_or_else(|| plain(accel));
    let seen = executed(args.accel, |accel| tried(machine(accel), pin, &kernel, &initramfs))?;
    if let Some(lease) = pool {
        lease.release()?.iter().for_each(output::note);
    }
    output::print(&if args.json { json(&seen) } else { text(&seen) })?;
    Ok(ExitCode::SUCCESS)
}

/// What comes of a guest under the accelerator of choice.
pub fn executed<T>(choice: AccelChoice, tried: impl Fn(Accel) -> Result<T, GuestError>) -> Result<T, GuestError> {
    match choice {
        AccelChoice::Kvm => tried(Accel::Kvm),
        AccelChoice::Tcg => tried(Accel::Tcg),
        AccelChoice::Auto => match tried(Accel::Kvm) {
            Err(error @ (GuestError::Qemu { .. } | GuestError::NoSign { .. })) => {
                output::note(format_args!("under KVM: {error}\nemulating the processor instead"));
                tried(Accel::Tcg)
            }
            seen => seen,
        },
    }
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
    let (hello, way, timing) = (guest.hello().clone(), guest.way(), guest.timing());
    Ok(Seen { hello, way, timing, evidence, facts, got, finding, ending: guest.shut_down()? })
}

fn text(seen: &Seen) -> String {
    let Seen { hello, way, timing, evidence, facts, got, finding, ending } = seen;
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
        (
            "reached",
            match way {
                Way::VirtioSerial => "by virtio-serial".to_owned(),
                Way::Serial => "by a serial port: its kernel has no virtio-serial".to_owned(),
            },
        ),
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
    rows.extend(evidence.link.iter().map(|link| ("network", linked(link))));
    rows.extend(hello.unloaded.iter().map(|line| ("not loaded", line.clone())));
    rows.iter().map(|(name, value)| format!("{name:<11}{value}\n")).collect()
}

fn linked(link: &Link) -> String {
    let tap = link.tap.as_deref().unwrap_or("no tap");
    let server = match link.vhost_thread {
        Thread::Seen(thread) => format!("served by the kernel's thread {thread}"),
        Thread::Absent => "served by QEMU".to_owned(),
        Thread::Hidden if link.vhost_device => "served by the kernel".to_owned(),
        Thread::Hidden => "served by QEMU".to_owned(),
    };
    format!("{tap}, {server}")
}

fn json(seen: &Seen) -> String {
    let Seen { hello, way, timing, evidence, facts, got, finding, ending } = seen;
    let value = json!({
        "schema": 1,
        "hello": hello,
        "agent": way,
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
