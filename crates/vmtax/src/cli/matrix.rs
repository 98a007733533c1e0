//! The arguments of `vmtax matrix`.

use std::time::Duration;

use clap::Args;
use vmtax_core::units::Bytes;

use super::{
    Form, GuestLevel, HostLevel, Level, ProbeName, Results,
    value::{count, cpu, duration, seed},
};

#[derive(Debug, Args)]
pub struct MatrixArgs {
    /// Memory to walk, such as 512M [default: 1 GiB, or a quarter of available memory where that is less]
    #[arg(long, allow_negative_numbers = true)]
    pub size: Option<Bytes>,
    /// Leaves of the guest's page table; `none` for native alone [default: all]
    #[arg(long, value_delimiter = ',', value_name = "LEAVES", ignore_case = true, value_parser = Level::<GuestLevel>::parser())]
    pub guest: Option<Vec<GuestLevel>>,
    /// What the memory stands on [default: all]
    #[arg(long, value_delimiter = ',', value_name = "BACKINGS", ignore_case = true, value_parser = Level::<HostLevel>::parser())]
    pub host: Option<Vec<HostLevel>>,
    /// Borrow hugetlb pages for the run, and give them back (needs root)
    #[arg(long)]
    pub reserve: bool,
    /// What to run
    #[arg(long, value_enum, default_value = "chase")]
    pub probe: ProbeName,
    /// Distance between accesses, or between the nodes of a chase: 4K for one line a page, 64 for every line
    #[arg(long, default_value = "4K")]
    pub stride: Bytes,
    /// vCPUs, and threads natively, that walk side by side
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = count)]
    pub vcpus: u32,
    /// CPUs to bind them to, such as 1 or 2,3 [default: none, the kernel chooses]
    #[arg(long, value_delimiter = ',', value_name = "CPUS", value_parser = cpu)]
    pub pin: Vec<usize>,
    /// Make exactly so many blocks [default: until every interval is within ±2 % or the budget is spent]
    #[arg(long, allow_negative_numbers = true, value_parser = count)]
    pub blocks: Option<u32>,
    /// Time to spend, such as 60s or 5m; with --blocks there is no limit unless one is given [default: 60s]
    #[arg(long, allow_negative_numbers = true, value_parser = duration)]
    pub budget: Option<Duration>,
    /// Orders and layouts follow from it [default: drawn, and kept with the run]
    #[arg(long, allow_negative_numbers = true, value_parser = seed)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub form: Form,
    #[command(flatten)]
    pub results: Results,
}
