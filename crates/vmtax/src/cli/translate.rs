//! The arguments of `vmtax translate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use vmtax_core::units::Bytes;

use super::{AccelChoice, GuestLevel, HostLevel, KernelArgs, Level};

#[derive(Debug, Args)]
pub struct TranslateArgs {
    /// What is followed: an address of a micro-VM, or of a process in a Linux guest
    #[arg(long, value_enum, default_value_t = VenueChoice::Microvm)]
    pub venue: VenueChoice,
    /// The leaf of the guest's page table
    #[arg(long, default_value = "2m", ignore_case = true, value_parser = Level::<GuestLevel>::parser())]
    pub guest: GuestLevel,
    /// What the guest's memory stands on
    #[arg(long, default_value = "thp", ignore_case = true, value_parser = Level::<HostLevel>::parser())]
    pub host: HostLevel,
    /// The guest's memory
    #[arg(long, default_value = "64M")]
    pub size: Bytes,
    /// How far into it the address lies [default: half way]
    #[arg(long, value_name = "OFFSET")]
    pub at: Option<Bytes>,
    /// What executes a Linux guest; auto tries KVM, and emulates where it does not boot
    #[arg(long, value_enum, default_value_t = AccelChoice::Auto)]
    pub accel: AccelChoice,
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// QEMU, for a Linux guest
    #[arg(long, value_name = "FILE", default_value = "qemu-system-x86_64")]
    pub qemu: PathBuf,
    /// One JSON object (schema 1)
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum VenueChoice {
    /// Our own KVM virtual machine: one page table, no operating system
    Microvm,
    /// A complete Linux under QEMU
    Guest,
}
