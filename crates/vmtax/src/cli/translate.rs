//! The arguments of `vmtax translate`.

use clap::Args;
use vmtax_core::units::Bytes;

use super::{GuestLevel, HostLevel, Level};

#[derive(Debug, Args)]
pub struct TranslateArgs {
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
    /// One JSON object (schema 1)
    #[arg(long)]
    pub json: bool,
}
