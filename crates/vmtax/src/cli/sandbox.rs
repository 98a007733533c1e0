//! Arguments of `vmtax sandbox`.

use std::path::PathBuf;

use clap::Args;
use vmtax_core::units::Bytes;

use super::KernelArgs;
use crate::image::root;

#[derive(Debug, Args)]
pub struct SandboxArgs {
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// Its processors
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub cpus: u32,
    /// Its memory
    #[arg(long, value_name = "SIZE", default_value = "3G")]
    pub memory: Bytes,
    /// With QEMU and programs in it, so that guests boot: an image by its name or directory (see vmtax image build) [default
    /// without a value: default]
    #[arg(long, value_name = "NAME|DIR", num_args = 0..=1, default_missing_value = root::DEFAULT)]
    pub image: Option<PathBuf>,
    /// More words for its kernel's command line, such as hugepages=512 or kvm_amd.npt=0
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    pub append: String,
    /// QEMU
    #[arg(long, value_name = "FILE", default_value = "qemu-system-x86_64")]
    pub qemu: PathBuf,
    /// What to run in it: a command of vmtax with its arguments, after --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
