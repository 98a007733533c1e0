//! The arguments of `vmtax reserve`, `rights` and `bloat`.

use clap::{Args, ValueEnum};
use vmtax_core::units::{Bytes, PageSize};

use super::{
    HostLevel, Results,
    value::{count, seed},
};

#[derive(Debug, Args)]
pub struct ReserveArgs {
    /// The size of the pages
    #[arg(long, value_enum, default_value = "2m")]
    pub page: PoolPage,
    /// How many [default: 5000, or what fits half of the memory that is left]
    #[arg(long)]
    pub pages: Option<u64>,
    /// How often
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Share of available memory for the stress that fragments it, 0 to 0.9
    #[arg(long, default_value_t = 0.5, value_parser = share)]
    pub stress: f64,
    /// Share of the stress that stays while the pages are prepared; 0 as in the study, which frees all of it
    #[arg(long, default_value_t = 0.0625, value_parser = share)]
    pub kept: f64,
    /// Trials of that many rounds, each of them twice (A and A')
    #[arg(long, default_value_t = 1, value_parser = count)]
    pub blocks: u32,
    /// Compact memory before
    #[arg(long)]
    pub compact: bool,
    /// The stress follows from it
    #[arg(long, default_value_t = 1, value_parser = seed)]
    pub seed: u64,
    /// One JSON object (schema 1)
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub results: Results,
}

#[derive(Debug, Args)]
pub struct RightsArgs {
    /// Borrow a page of each pool that is empty, and give it back (needs root)
    #[arg(long)]
    pub reserve: bool,
    /// One JSON object (schema 1)
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub results: Results,
}

#[derive(Debug, Args)]
pub struct BloatArgs {
    /// The mapping
    #[arg(long, default_value = "1G")]
    pub size: Bytes,
    /// One byte is touched in each so many
    #[arg(long, value_delimiter = ',', default_values = ["64K", "2M", "64M"], value_parser = gap)]
    pub gap: Vec<Bytes>,
    /// What the memory stands on [default: all]
    #[arg(long, value_delimiter = ',', value_name = "BACKINGS")]
    pub host: Option<Vec<HostLevel>>,
    /// Borrow hugetlb pages for the run, and give them back (needs root)
    #[arg(long)]
    pub reserve: bool,
    /// How often everything is measured
    #[arg(long, default_value_t = 1, value_parser = count)]
    pub blocks: u32,
    /// One JSON object (schema 1)
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub results: Results,
}

/// Pages of a hugetlb pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PoolPage {
    /// 2 MiB
    #[value(name = "2m")]
    Large,
    /// 1 GiB
    #[value(name = "1g")]
    Giant,
}

impl PoolPage {
    pub fn page(self) -> PageSize {
        match self {
            PoolPage::Large => PageSize::Large,
            PoolPage::Giant => PageSize::Giant,
        }
    }
}

/// A share from nothing to nine tenths: a tenth of the memory stays free.
fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=0.9).contains(&share) => Ok(share),
        _ => Err("not a share; write a number from 0 to 0.9".to_owned()),
    }
}

/// A size of at least a word.
fn gap(text: &str) -> Result<Bytes, String> {
    match text.parse::<Bytes>() {
        Ok(Bytes(0..4)) => Err("less than 4 bytes; give it some, such as 2M".to_owned()),
        outcome => outcome.map_err(|e| e.to_string()),
    }
}
