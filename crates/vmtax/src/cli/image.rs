//! Arguments of `vmtax image`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use vmtax_core::units::Bytes;

use super::{HostLevel, value};
use crate::{
    guest::machine::{Net, Vhost},
    image::root,
};

#[derive(Debug, Args)]
pub struct ImageArgs {
    #[command(subcommand)]
    pub what: ImageCommand,
}

#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// Find a kernel for guests; without one on this host, take Debian's by apt-get into the cache
    Kernel(KernelArgs),
    /// Make a root file system with QEMU and programs in it, for --image
    Build(BuildArgs),
    /// Boot a guest once, measure a little in it, power it off, and say what was seen
    Boot(BootArgs),
}

/// The kernel of a guest.
#[derive(Debug, Args)]
pub struct KernelArgs {
    /// The kernel, a bzImage [default: the one that runs here, else the cache]
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// Its modules [default: /lib/modules/RELEASE]
    #[arg(long, value_name = "DIR", requires = "kernel")]
    pub modules: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Take this tree, instead of Debian's packages: a directory or a tar archive, which may be compressed
    #[arg(long, value_name = "DIR|TAR", conflicts_with = "include")]
    pub from: Option<PathBuf>,
    /// More packages than qemu-system-x86, rt-tests and sysbench
    #[arg(long, value_name = "PACKAGES", value_delimiter = ',', value_parser = value::package)]
    pub include: Vec<String>,
    /// What to call it
    #[arg(long, value_name = "NAME", default_value = root::DEFAULT, value_parser = value::image_name)]
    pub name: String,
}

#[derive(Debug, Args)]
pub struct BootArgs {
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// What executes the guest; auto tries KVM, and emulates where it does not boot
    #[arg(long, value_enum, default_value_t = AccelChoice::Auto)]
    pub accel: AccelChoice,
    /// Its processors
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub vcpus: u32,
    /// CPUs of this host to bind them to, in order and over again
    #[arg(long, value_name = "CPUS", value_delimiter = ',', value_parser = value::cpu)]
    pub pin: Vec<usize>,
    /// Its memory
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    pub memory: Bytes,
    /// What its memory stands on, on this host
    #[arg(long, value_enum, default_value = "thp")]
    pub host: HostLevel,
    /// Borrow the huge pages that --host needs, and give them back (needs root)
    #[arg(long)]
    pub reserve: bool,
    /// QEMU
    #[arg(long, value_name = "FILE", default_value = "qemu-system-x86_64")]
    pub qemu: PathBuf,
    /// QEMU's name of the board
    #[arg(long, value_name = "NAME", default_value = "q35")]
    pub board: String,
    /// More words for the kernel's command line
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    pub append: String,
    /// QEMU's name of the processor [default: host under KVM, max emulated]
    #[arg(long, value_name = "NAME")]
    pub cpu: Option<String>,
    /// A machine like this domain of libvirt's, a name or an XML file; read only
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["vcpus", "pin", "memory", "host", "qemu", "board", "cpu", "net", "tap", "vhost"]
    )]
    pub domain: Option<String>,
    /// Its network card
    #[arg(long, value_enum, default_value_t = NetChoice::None)]
    pub net: NetChoice,
    /// The tap device, made by an administrator [default: a new one, which needs CAP_NET_ADMIN]
    #[arg(long, value_name = "NAME")]
    pub tap: Option<String>,
    /// Who moves the packets of a tap device: the host's kernel, or QEMU [default: off]
    #[arg(long, value_enum)]
    pub vhost: Option<VhostChoice>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NetChoice {
    /// It has none
    None,
    /// To nowhere but QEMU itself; needs no right
    User,
    /// To a tap device of this host
    Tap,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum VhostChoice {
    /// A thread of this host's kernel
    On,
    /// QEMU
    Off,
}

impl BootArgs {
    /// The card that is asked for.
    ///
    /// # Errors
    /// Words for a tap device, and none is asked for.
    pub fn net(&self) -> Result<Option<Net>, &'static str> {
        let vhost = match self.vhost {
            Some(VhostChoice::On) => Vhost::On,
            Some(VhostChoice::Off) | None => Vhost::Off,
        };
        match (self.net, &self.tap, self.vhost) {
            (NetChoice::Tap, name, _) => Ok(Some(Net::Tap { name: name.clone(), vhost })),
            (NetChoice::None, None, None) => Ok(None),
            (NetChoice::User, None, None) => Ok(Some(Net::User)),
            (NetChoice::None | NetChoice::User, ..) => Err("--tap and --vhost are of a tap device"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AccelChoice {
    /// KVM where a guest boots under it, else emulation
    Auto,
    /// The processor, by /dev/kvm
    Kvm,
    /// Emulation: works anywhere, and its times mean nothing
    Tcg,
}
