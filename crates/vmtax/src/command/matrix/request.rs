//! From arguments to a request: everything that can be refused is refused here, before anything is touched.

use vmtax_core::{
    arena::{Layout, LayoutError},
    availability::matrix,
    host::Host,
    request::Request,
    setting::{Backing, Setting},
    units::{Bytes, GIB, KIB, MIB, PageSize},
};

use crate::{cli::MatrixArgs, command::Refusal};

/// What vmtax itself takes beside the arena: 64 MiB, and page tables of 1/256 of it at most.
const OWN_MEMORY: u64 = 64 * MIB;
const OWN_SHARE: u64 = 256;

/// 1 GiB, or a quarter of available memory where that is less, in whole 2 MiB pages.
pub fn default_size(host: &Host) -> Bytes {
    let quarter = host.memory.available.map_or(GIB, |available| available.0 / 4);
    Bytes((quarter / (2 * MIB) * (2 * MIB)).clamp(2 * MIB, GIB))
}

/// The request these arguments make on this host; `seed` if they name none.
pub fn request(args: &MatrixArgs, host: &Host, seed: u64) -> Result<Request, Refusal> {
    let size = match args.size {
        Some(size) => asked_size(args, size)?,
        None => default_size(host),
    };
    fits(args, size, host)?;
    Layout::new(args.probe.0, size, args.stride).map_err(|e| unsuitable(args, &e))?;
    check_cpus(args, host)?;
    let budget = args.budget.or((args.blocks.is_none()).then_some(DEFAULT_BUDGET));
    Ok(Request {
        probe: args.probe.0,
        size,
        stride: args.stride,
        settings: settings(args),
        vcpus: args.vcpus,
        pin: args.pin.clone(),
        blocks: args.blocks,
        budget_seconds: budget.map(|budget| budget.as_secs_f64()),
        seed: args.seed.unwrap_or(seed),
        reserve: args.reserve,
    })
}

const DEFAULT_BUDGET: std::time::Duration = std::time::Duration::from_secs(60);

/// A size somebody asked for must suit every level asked for by name; a level that is there by default and does not suit is
/// listed as unavailable instead. 2 MiB pages are always wanted unless 4 KiB pages alone were asked for.
fn asked_size(args: &MatrixArgs, size: Bytes) -> Result<Bytes, Refusal> {
    let named_leaves = args.guest.iter().flatten().filter_map(|level| level.leaf());
    let named_backings = args.host.iter().flatten().map(|level| level.backing().page());
    let default = if args.guest.is_some() && args.host.is_some() { PageSize::Small } else { PageSize::Large };
    let page = named_leaves.chain(named_backings).chain([default]).max().unwrap_or(PageSize::Small);
    if size.0 == 0 {
        return Err(Refusal::new(
            "--size 0 leaves nothing to walk",
            "--size 512M, or without --size what fits this host",
        ));
    }
    if size.0.is_multiple_of(page.bytes()) {
        return Ok(size);
    }
    let fitting = size.0.checked_next_multiple_of(page.bytes()).unwrap_or(page.bytes());
    let smaller = match page {
        PageSize::Small => String::new(),
        PageSize::Large => ", or 4 KiB pages alone: --guest 4k --host 4k".to_owned(),
        PageSize::Giant => ", or smaller pages, such as 2m".to_owned(),
    };
    Err(Refusal::new(
        format!("--size {size} is no multiple of {}, the largest page asked for", page.prose()),
        format!("--size {}{smaller}", spelled(fitting)),
    ))
}

/// A size as it is typed: `512M`.
fn spelled(bytes: u64) -> String {
    match bytes {
        n if n.is_multiple_of(GIB) => format!("{}G", n / GIB),
        n if n.is_multiple_of(MIB) => format!("{}M", n / MIB),
        n if n.is_multiple_of(KIB) => format!("{}K", n / KIB),
        n => n.to_string(),
    }
}

fn unsuitable(args: &MatrixArgs, error: &LayoutError) -> Refusal {
    let help = match error {
        LayoutError::Stride { probe, .. } => {
            let grain = probe.grain().0;
            let fitting = args.stride.0.checked_next_multiple_of(grain).unwrap_or(grain).max(grain);
            format!("--stride {}", spelled(fitting))
        }
        LayoutError::TooSmall { .. } => "a smaller --stride, or a larger --size".to_owned(),
    };
    Refusal::new(error.to_string(), help)
}

fn fits(args: &MatrixArgs, size: Bytes, host: &Host) -> Result<(), Refusal> {
    let Some(available) = host.memory.available else { return Ok(()) };
    let needed = size.0.saturating_add(size.0 / OWN_SHARE).saturating_add(OWN_MEMORY);
    if needed <= available.0 {
        return Ok(());
    }
    let most = default_size(host).0.max(available.0.saturating_sub(OWN_MEMORY) / 2 / (2 * MIB) * (2 * MIB));
    let what = args.size.map_or("an arena of", |_| "--size");
    Err(Refusal::new(
        format!("{what} {size} does not fit: {} MiB of memory are available", available.0 / MIB),
        format!("--size {}, or free some memory", spelled(most)),
    ))
}

fn check_cpus(args: &MatrixArgs, host: &Host) -> Result<(), Refusal> {
    let cpus = host.cpu.logical.unwrap_or(u32::MAX);
    if args.vcpus > cpus {
        return Err(Refusal::new(
            format!("{} vCPUs on {cpus} CPUs would wait for one another", args.vcpus),
            format!("--vcpus {cpus} at most"),
        ));
    }
    match args.pin.iter().find(|&&cpu| !vmtax_machine::lane::may_run_on(cpu)) {
        Some(cpu) => Err(Refusal::new(
            format!("--pin {cpu}: there is no such CPU, or this process may not use it"),
            "those it may use: grep Cpus_allowed_list /proc/self/status",
        )),
        None if !args.pin.is_empty() && args.pin.len() < args.vcpus as usize => Err(Refusal::new(
            format!("--pin names too few CPUs: {} for {} vCPUs", args.pin.len(), args.vcpus),
            "name one for each vCPU, such as --pin 0,1",
        )),
        None => Ok(()),
    }
}

/// Every pair of levels: native first, then the guest's leaves.
fn settings(args: &MatrixArgs) -> Vec<Setting> {
    let is_asked = |setting: &Setting| {
        let guest = match (setting.guest, &args.guest) {
            (None, _) | (_, None) => true,
            (leaf, Some(named)) => named.iter().any(|level| level.leaf() == leaf),
        };
        let host = args.host.as_ref().is_none_or(|named| named.iter().any(|level| level.backing() == setting.host));
        guest && host
    };
    matrix().into_iter().filter(is_asked).collect()
}

/// Whether somebody named this backing, so that not getting it is an error.
pub fn is_named(args: &MatrixArgs, backing: Backing) -> bool {
    args.host.iter().flatten().any(|level| level.backing() == backing)
}
