//! The arguments of `vmtax run`, and of what is done with kept runs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{
    Form, Results,
    value::{cpu, percent, seed},
};

#[derive(Debug, Args)]
pub struct RunArgs {
    /// A plan in TOML, or the name of a built-in study (`vmtax studies`)
    #[arg(required_unless_present = "resume", conflicts_with = "resume")]
    pub plan: Option<String>,
    /// Go on with a run that was interrupted, at its next trial
    #[arg(long, value_name = "RUN", conflicts_with_all = ["dry_run", "seed"])]
    pub resume: Option<String>,
    /// Make the plan's guests like a domain of libvirt's: its name, or a file of its XML
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    pub domain: Option<String>,
    /// Print what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Borrow the hugetlb pages that the plan's memory needs, and give them back (needs root)
    #[arg(long)]
    pub reserve: bool,
    /// CPUs to bind threads and vCPUs to, such as 1 or 2,3 [default: none, the kernel chooses]
    #[arg(long, value_delimiter = ',', value_name = "CPUS", value_parser = cpu)]
    pub pin: Vec<usize>,
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
