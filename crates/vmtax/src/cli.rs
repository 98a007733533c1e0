//! The command line: what can be asked, in clap's terms. Help, completions and the manual page come from here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

mod huge;
mod image;
mod level;
mod matrix;
mod run;
mod sandbox;
mod studies;
mod touch;
mod translate;
mod value;

pub use huge::{BloatArgs, ReserveArgs, RightsArgs};
pub use image::{AccelChoice, BootArgs, BuildArgs, ImageArgs, ImageCommand, KernelArgs};
pub use level::{GuestLevel, HostLevel, Level, ProbeName};
pub use matrix::MatrixArgs;
pub use run::{CompareArgs, ExportArgs, Format, RunArgs, ShowArgs};
pub use sandbox::SandboxArgs;
pub use studies::{StudiesArgs, StudiesCommand};
pub use touch::{Blocks, TouchArgs, WalkArgs};
pub use translate::{TranslateArgs, VenueChoice};

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
    /// List the built-in studies, or show one with what was published of it
    Studies(StudiesArgs),
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
    /// What guests boot: find or fetch a kernel, try a boot
    Image(ImageArgs),
    /// Run any command of vmtax in an emulated AMD host, whose KVM is real: nothing here is changed
    Sandbox(SandboxArgs),
    /// Follow one address of a guest through both stages: gva, gpa, hva, hpa
    Translate(TranslateArgs),
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }
}
