//! `vmtax translate`: one address of a micro-VM, or of a process in a Linux guest, through both stages of translation.

use std::process::ExitCode;

use anyhow::Context;
use vmtax_core::{
    arena::Layout,
    availability::{self, Demand, Reserve},
    probe::Probe,
    setting::Setting,
    translation::Translation,
    trial::KvmCounts,
    units::{Bytes, PageSize},
};
use vmtax_machine::{Kvm, arena::Arena, backing::Memory, facts, lane::run_phase, microvm, microvm::Microvm};
use vmtax_report::translation::{self, Document};

use super::Refusal;
use crate::{
    cli::{TranslateArgs, VenueChoice},
    output,
    signal::Signals,
};

mod guest;

/// Makes a guest, lets it touch all of its memory, follows the address. Changes nothing.
pub fn run(args: &TranslateArgs) -> anyhow::Result<ExitCode> {
    match args.venue {
        VenueChoice::Microvm => microvm(args),
        VenueChoice::Guest => guest::run(args),
    }
}

fn microvm(args: &TranslateArgs) -> anyhow::Result<ExitCode> {
    let leaf = leaf(args)?;
    let setting = Setting::microvm(leaf, args.host.backing());
    let at = offset(args)?;
    let host = facts::host();
    let tables = microvm::low_bytes(args.size, PageSize::Small);
    let demand = Demand { arena: args.size, tables, vcpus: 1, reserve: Reserve::No };
    if let Some(why) = availability::availability(&host, &[setting], demand).unavailable().next() {
        return Err(Refusal::new(format!("{setting}: {}", why.reason), why.remedy.clone()).into());
    }
    let signals = Signals::catch()?;
    let (translation, kvm) = follow(setting, args.size, at, &signals)?;
    let effective_page = translation.effective_page();
    let is_contradicted = translation.is_contradicted();
    let document = Document { schema: 1, setting, translation, effective_page, kvm, paging: host.kvm.kind.to_string() };
    output::print(&match args.json {
        true => serde_json::to_string(&document)? + "\n",
        false => translation::text(&document),
    })?;
    Ok(if is_contradicted { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn leaf(args: &TranslateArgs) -> Result<PageSize, Refusal> {
    let one_stage = || Refusal::new("a process has one stage of translation only", "--guest 4k, 2m or 1g");
    args.guest.leaf().ok_or_else(one_stage)
}

fn offset(args: &TranslateArgs) -> Result<u64, Refusal> {
    let at = args.at.map_or(args.size.0 / 2, |at| at.0);
    if at < args.size.0 {
        return Ok(at);
    }
    let message = format!("--at {} is not within {} of memory", Bytes(at), args.size);
    Err(Refusal::new(message, format!("--at {}, or a larger --size", Bytes(args.size.0 / 2))))
}

fn follow(
    setting: Setting,
    size: Bytes,
    at: u64,
    signals: &Signals,
) -> anyhow::Result<(Translation, Option<KvmCounts>)> {
    let leaf = setting.guest.expect("a guest was asked for");
    let kvm = Kvm::new().context("cannot open /dev/kvm")?;
    let memory = Memory::allocate(setting.host, size)?;
    let layout = Layout::new(Probe::Touch, size, Bytes(PageSize::Small.bytes()))?;
    let arena = Arena::new(memory, layout, Probe::Touch, 0, 1)?;
    let mut vm = Microvm::new(&kvm, arena.memory(), leaf, 1, arena.code(), signals.stop())?;
    run_phase(vm.vcpus(), &mut [arena.cursor(0, 1)], &arena, 1, &[])?;
    let gva = arena.memory().address() + at;
    let translation = vm.translate(gva)?.context("the guest's page table does not map the address")?;
    Ok((translation, vm.counts()))
}
