//! The command line: what can be asked, in clap's terms. Help, completions and the manual page come from here.

use std::{ffi::OsStr, num::IntErrorKind, path::PathBuf, time::Duration};

use clap::{
    Arg, Args, Parser, Subcommand, ValueEnum,
    builder::{EnumValueParser, PossibleValue, TypedValueParser},
    error::{ContextKind, ContextValue},
};
use vmtax_core::{
    probe::Probe,
    setting::Backing,
    units::{Bytes, PageSize},
};

mod touch;

pub use touch::{Blocks, TouchArgs, WalkArgs};

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
    /// Run an experiment: a plan, or a built-in study
    Run(RunArgs),
    /// List the built-in studies
    Studies,
    /// Print a kept run again
    Show(ShowArgs),
    /// Two runs of one plan, or the levels of a factor in one run
    Compare(CompareArgs),
    /// A kept run for other programs
    Export(ExportArgs),
    /// Cost of the first access to memory: native and in a guest, populated before and not
    Touch(TouchArgs),
    /// Cost per reference over strides, orders and passes, from the first touch on: small pages against huge ones
    Walk(WalkArgs),
    /// What this host is, what can be measured on it, and what to do about the rest
    Doctor(DoctorArgs),
    /// The cost of preparing huge pages, after the memory has been fragmented (needs root)
    Reserve(ReserveArgs),
    /// Which ways to huge pages an ordinary user has, and what would open the others
    Rights(RightsArgs),
    /// Memory really used after touching a few bytes of a large mapping
    Bloat(BloatArgs),
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

#[derive(Debug, Args)]
pub struct RunArgs {
    /// A plan in TOML, or the name of a built-in study (`vmtax studies`)
    #[arg(required_unless_present = "resume", conflicts_with = "resume")]
    pub plan: Option<String>,
    /// Go on with a run that was interrupted, at its next trial
    #[arg(long, value_name = "RUN", conflicts_with_all = ["dry_run", "seed"])]
    pub resume: Option<String>,
    /// Print what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Orders and layouts follow from it [default: the plan's, or one that is drawn and kept with the run]
    #[arg(long, allow_negative_numbers = true, value_parser = seed)]
    pub seed: Option<u64>,
    /// One JSON object a line for each trial (schema 1), as it ends
    #[arg(long, conflicts_with = "dry_run")]
    pub json: bool,
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
pub struct CompareArgs {
    /// A run of a plan
    pub run: String,
    /// A later run of the same plan
    #[arg(required_unless_present = "by", conflicts_with = "by")]
    pub with: Option<String>,
    /// Compare the levels of this factor within the run
    #[arg(long, value_name = "FACTOR")]
    pub by: Option<String>,
    /// Exit 1 when the leading metric of a cell is worse by more than this, with all of its interval
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, value_parser = percent)]
    pub gate: Option<f64>,
    /// One JSON object (schema 1)
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub results: Results,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The run
    pub run: String,
    /// What to write
    #[arg(long, value_enum)]
    pub format: Format,
    /// Where to [default: standard output; a SQLite file needs a name]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub results: Results,
}

/// What other programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A line a cell and metric
    Csv,
    /// One object (schema 1)
    Json,
    /// Tables in Markdown
    Md,
    /// A results file with this run alone
    Sqlite,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

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
    /// Compact memory before
    #[arg(long)]
    pub compact: bool,
    /// The stress follows from it
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RightsArgs {
    /// Borrow a page of each pool that is empty, and give it back (needs root)
    #[arg(long)]
    pub reserve: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BloatArgs {
    /// The mapping
    #[arg(long, default_value = "1G")]
    pub size: Bytes,
    /// One byte is touched in each so many
    #[arg(long, value_delimiter = ',', default_values = ["64K", "2M", "64M"], value_parser = positive)]
    pub gap: Vec<Bytes>,
    /// What the memory stands on [default: all]
    #[arg(long, value_delimiter = ',', value_name = "BACKINGS")]
    pub host: Option<Vec<HostLevel>>,
    /// Borrow hugetlb pages for the run, and give them back (needs root)
    #[arg(long)]
    pub reserve: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
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

/// A size of at least a byte.
fn positive(text: &str) -> Result<Bytes, String> {
    match text.parse::<Bytes>() {
        Ok(Bytes(0)) => Err("no bytes at all; give it some, such as 2M".to_owned()),
        outcome => outcome.map_err(|e| e.to_string()),
    }
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
    /// 4 KiB pages
    #[value(name = "4k")]
    Small,
    /// 2 MiB pages
    #[value(name = "2m")]
    Large,
    /// 1 GiB pages
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

/// Reads the level of a factor. Of names that are nearly right clap tells the nearest; of page sizes that do not exist, this.
#[derive(Debug, Clone)]
pub struct Level<L: ValueEnum + Clone + Send + Sync + 'static>(EnumValueParser<L>);

impl<L: ValueEnum + Clone + Send + Sync + 'static> Level<L> {
    pub(crate) fn parser() -> Self {
        Level(EnumValueParser::new())
    }

    /// The page size nearest to a size that is none, by ratio: `2m` for `3m`.
    fn nearest(&self, value: &OsStr) -> Option<String> {
        let size = |text: &str| text.parse::<Bytes>().ok().filter(|size| size.0 > 0).map(|size| (size.0 as f64).ln());
        let asked = size(value.to_str()?)?;
        let names = L::value_variants().iter().filter_map(L::to_possible_value);
        let sizes = names.filter_map(|name| Some((name.get_name().to_owned(), (size(name.get_name())? - asked).abs())));
        sizes.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(name, _)| name)
    }
}

impl<L: ValueEnum + Clone + Send + Sync + 'static> TypedValueParser for Level<L> {
    type Value = L;

    fn parse_ref(&self, command: &clap::Command, arg: Option<&Arg>, value: &OsStr) -> Result<L, clap::Error> {
        self.0.parse_ref(command, arg, value).map_err(|mut error| {
            if error.get(ContextKind::SuggestedValue).is_none()
                && let Some(nearest) = self.nearest(value)
            {
                error.insert(ContextKind::SuggestedValue, ContextValue::String(nearest));
            }
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// A number of things, of which there must be one.
fn count(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(0) => Err("write 1 or more".to_owned()),
        Ok(n) => Ok(n),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err(format!("write {} at most", u32::MAX)),
        Err(_) => Err("write a whole number, such as 1".to_owned()),
    }
}

/// `5%` as a fraction.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    let percent = number.filter(|percent| (0.0..100.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or_else(|| "write per cent from 0 to below 100, such as 5%".to_owned())
}

fn cpu(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "write numbers of CPUs, such as 0,2".to_owned())
}

/// JSON readers keep whole numbers exactly only below 2^53 (RFC 8259, 6).
fn seed(text: &str) -> Result<u64, String> {
    let seed = text.parse().ok().filter(|&seed: &u64| seed < 1 << 53);
    seed.ok_or_else(|| format!("write a whole number below {}", 1_u64 << 53))
}

/// `60s`, `5m`, `1h`, or seconds alone; more than nothing, and no more than anybody waits.
fn duration(text: &str) -> Result<Duration, String> {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let seconds = text.parse::<u64>().map(Duration::from_secs).ok();
    match seconds.or_else(|| humantime::parse_duration(text).ok()) {
        Some(Duration::ZERO) => Err("no time at all; give it some, such as 60s".to_owned()),
        Some(duration) if duration > YEAR => Err("more than a year; write 60s, 5m or 1h".to_owned()),
        Some(duration) => Ok(duration),
        None => Err("not a time; write 60s, 5m or 1h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_budget_is_seconds_or_has_its_unit() {
        let check = |text, expected: Result<u64, &str>| {
            assert_eq!(duration(text), expected.map(Duration::from_secs).map_err(str::to_owned), "{text}");
        };
        check("60", Ok(60));
        check("60s", Ok(60));
        check("5m", Ok(300));
        check("1h 30m", Ok(5400));
        check("0", Err("no time at all; give it some, such as 60s"));
        check("-1", Err("not a time; write 60s, 5m or 1h"));
        check("18446744073709551615", Err("more than a year; write 60s, 5m or 1h"));
    }

    #[test]
    fn an_unknown_page_size_is_answered_with_the_nearest() {
        let check = |text: &str, expected: Option<&str>| {
            let nearest = Level::<GuestLevel>::parser().nearest(OsStr::new(text));
            assert_eq!(nearest.as_deref(), expected, "{text}");
        };
        check("3m", Some("2m"));
        check("64k", Some("4k"));
        check("4194304", Some("2m"));
        check("512m", Some("1g"));
        check("huge", None);
        check("0", None);
    }
}
