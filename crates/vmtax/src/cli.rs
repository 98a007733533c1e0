//! The command line: what can be asked, in clap's terms. Help, completions and the manual page come from here.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use vmtax_core::{
    probe::Probe,
    setting::Backing,
    units::{Bytes, PageSize},
};

/// Measures what virtualization costs memory on this host, proves each setting, and puts the host back.
#[derive(Debug, Parser)]
#[command(name = "vmtax", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Guest page size × host page size against native, on this host: the main job
    Matrix(MatrixArgs),
    /// Print a kept run again
    Show(ShowArgs),
    /// What this host is, what can be measured on it, and what to do about the rest
    Doctor(DoctorArgs),
    /// Put the host back after a crash
    Restore,
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

#[derive(Debug, Args)]
pub struct MatrixArgs {
    /// Memory to walk, such as 512M [default: 1 GiB, or a quarter of available memory where that is less]
    #[arg(long)]
    pub size: Option<Bytes>,
    /// Leaves of the guest's page table; `none` for native alone [default: all]
    #[arg(long, value_delimiter = ',', value_name = "LEAVES")]
    pub guest: Option<Vec<GuestLevel>>,
    /// What the memory stands on [default: all]
    #[arg(long, value_delimiter = ',', value_name = "BACKINGS")]
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
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub vcpus: u32,
    /// CPUs to bind them to, such as 1 or 2,3 [default: none, the kernel chooses]
    #[arg(long, value_delimiter = ',', value_name = "CPUS")]
    pub pin: Vec<usize>,
    /// Make exactly so many blocks [default: until every interval is within ±2 % or the budget is spent]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub blocks: Option<u32>,
    /// Time to spend, such as 60s or 5m; with --blocks there is no limit unless one is given [default: 60s]
    #[arg(long, value_parser = duration)]
    pub budget: Option<Duration>,
    /// Orders and layouts follow from it [default: drawn, and kept with the run]
    #[arg(long, value_parser = clap::value_parser!(u64).range(..1 << 53))]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub form: Form,
    #[command(flatten)]
    pub results: Results,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The run [default: the latest]
    pub run: Option<String>,
    #[command(flatten)]
    pub form: Form,
    #[command(flatten)]
    pub results: Results,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// How results are printed.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct Form {
    /// One JSON object (schema 1)
    #[arg(long)]
    pub json: bool,
    /// Comma-separated values, one line a cell
    #[arg(long)]
    pub csv: bool,
}

/// Where results are kept.
#[derive(Debug, Args)]
pub struct Results {
    /// The results file [default: vmtax/results.db under $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE")]
    pub db: Option<PathBuf>,
}

/// Levels of the guest's leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GuestLevel {
    /// No guest: native alone
    None,
    #[value(name = "4k")]
    Small,
    #[value(name = "2m")]
    Large,
    #[value(name = "1g")]
    Giant,
}

impl GuestLevel {
    /// The leaf; none for native.
    pub fn leaf(self) -> Option<PageSize> {
        match self {
            GuestLevel::None => None,
            GuestLevel::Small => Some(PageSize::Small),
            GuestLevel::Large => Some(PageSize::Large),
            GuestLevel::Giant => Some(PageSize::Giant),
        }
    }
}

/// Levels of the host's backing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HostLevel {
    /// Anonymous memory in 4 KiB pages
    #[value(name = "4k")]
    Small,
    /// Transparent 2 MiB pages
    #[value(name = "thp")]
    Thp,
    /// 2 MiB pages from the hugetlb pool
    #[value(name = "2m")]
    Huge2m,
    /// 1 GiB pages from the hugetlb pool
    #[value(name = "1g")]
    Huge1g,
}

impl HostLevel {
    pub fn backing(self) -> Backing {
        match self {
            HostLevel::Small => Backing::Small,
            HostLevel::Thp => Backing::Thp,
            HostLevel::Huge2m => Backing::Huge2m,
            HostLevel::Huge1g => Backing::Huge1g,
        }
    }
}

/// A probe, by the name and description the core gives it.
#[derive(Debug, Clone, Copy)]
pub struct ProbeName(pub Probe);

impl ValueEnum for ProbeName {
    fn value_variants<'a>() -> &'a [Self] {
        const NAMES: [ProbeName; Probe::ALL.len()] = {
            let mut names = [ProbeName(Probe::Chase); Probe::ALL.len()];
            let mut i = 0;
            while i < names.len() {
                names[i] = ProbeName(Probe::ALL[i]);
                i += 1;
            }
            names
        };
        &NAMES
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()).help(self.0.about()))
    }
}

/// `60s`, `5m`, `1h`, or seconds alone; more than nothing.
fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u64>().map(Duration::from_secs).ok();
    match seconds.or_else(|| humantime::parse_duration(text).ok()) {
        Some(Duration::ZERO) => Err("no time at all; give it some, such as 60s".to_owned()),
        Some(duration) => Ok(duration),
        None => Err("not a time; write 60s, 5m or 1h".to_owned()),
    }
}
