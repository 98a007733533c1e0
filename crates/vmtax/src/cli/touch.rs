//! The arguments of `vmtax touch` and `vmtax walk`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use vmtax_core::{units::Bytes, walk};

use super::{
    Form, GuestLevel, HostLevel, Level, Results,
    value::{count, duration, seed},
};

#[derive(Debug, Args)]
pub struct TouchArgs {
    /// Memory to touch, such as 512M [default: 1 GiB, or a quarter of available memory where that is less]
    #[arg(long)]
    pub size: Option<Bytes>,
    /// Leaves of the guest's page table; `none` for native alone [default: all]
    #[arg(long, value_delimiter = ',', value_name = "LEAVES", ignore_case = true, value_parser = Level::<GuestLevel>::parser())]
    pub guest: Option<Vec<GuestLevel>>,
    #[command(flatten)]
    pub blocks: Blocks,
    #[command(flatten)]
    pub form: Form,
    #[command(flatten)]
    pub results: Results,
}

#[derive(Debug, Args)]
pub struct WalkArgs {
    /// The region to walk
    #[arg(long, default_value = "128M")]
    pub size: Bytes,
    /// Distances between references, doubling from the first to the last
    #[arg(long, value_name = "FROM..TO", default_value = "4..2M", value_parser = range)]
    pub strides: (Bytes, Bytes),
    /// Passes: the average is told after 1, 2, 4 … of them
    #[arg(long, value_name = "1..N", default_value = "1..64", value_parser = passes)]
    pub passes: u32,
    /// In which order
    #[arg(long, value_enum, default_value = "both")]
    pub order: OrderLevel,
    #[command(flatten)]
    pub blocks: Blocks,
    #[command(flatten)]
    pub form: Form,
    #[command(flatten)]
    pub results: Results,
}

/// On what, and how often.
#[derive(Debug, Args)]
pub struct Blocks {
    /// What the memory stands on [default: all]
    #[arg(long, value_delimiter = ',', value_name = "BACKINGS", ignore_case = true, value_parser = Level::<HostLevel>::parser())]
    pub host: Option<Vec<HostLevel>>,
    /// Borrow hugetlb pages for the run, and give them back (needs root)
    #[arg(long)]
    pub reserve: bool,
    /// Make exactly so many blocks [default: 7, or until the budget is spent]
    #[arg(long, value_parser = count)]
    pub blocks: Option<u32>,
    /// Time to spend, such as 60s or 5m; with --blocks there is no limit unless one is given [default: 60s]
    #[arg(long, value_parser = duration)]
    pub budget: Option<Duration>,
    /// Orders and layouts follow from it [default: drawn, and kept with the run]
    #[arg(long, value_parser = seed)]
    pub seed: Option<u64>,
}

/// Orders of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderLevel {
    /// One stride after the other
    Sequential,
    /// As many references, at random slots
    Random,
    /// Either, in trials of their own
    Both,
}

impl OrderLevel {
    pub fn orders(self) -> Vec<walk::Order> {
        match self {
            OrderLevel::Sequential => vec![walk::Order::Sequential],
            OrderLevel::Random => vec![walk::Order::Random],
            OrderLevel::Both => vec![walk::Order::Sequential, walk::Order::Random],
        }
    }
}

/// `4..2M`, or one stride alone: powers of two from 4 bytes on.
fn range(text: &str) -> Result<(Bytes, Bytes), String> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let stride = |text: &str| -> Result<Bytes, String> {
        let stride: Bytes = text.parse().map_err(|e| format!("{e}"))?;
        let suits = stride.0 >= 4 && stride.0.is_power_of_two();
        if suits { Ok(stride) } else { Err(format!("{stride} is no power of two from 4 bytes on; write 4..2M")) }
    };
    let (from, to) = (stride(from)?, stride(to)?);
    if from <= to { Ok((from, to)) } else { Err(format!("{from} is more than {to}; write the smaller one first")) }
}

/// `1..64`, or `64`.
fn passes(text: &str) -> Result<u32, String> {
    let last = text.strip_prefix("1..").unwrap_or(text);
    match last.parse() {
        Ok(n @ 1..=65536) => Ok(n),
        Ok(_) | Err(_) => Err("write the most passes, 1 to 65536, such as 1..64".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_powers_of_two_in_order() {
        let check = |text, expected: Result<(u64, u64), &str>| {
            let got = range(text).map(|(from, to)| (from.0, to.0));
            assert_eq!(got, expected.map_err(str::to_owned), "{text}");
        };
        check("4..2M", Ok((4, 2 << 20)));
        check("64", Ok((64, 64)));
        check("3..2M", Err("3 B is no power of two from 4 bytes on; write 4..2M"));
        check("2M..4", Err("2 MiB is more than 4 B; write the smaller one first"));
    }
}
