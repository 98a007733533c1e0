//! What host and agent say to each other, as JSON in frames. The host asks; the agent answers each question once, in order.

use serde::{Deserialize, Serialize};
use vmtax_core::{
    experiment::Finding,
    host::Host,
    setting::Backing,
    units::{Bytes, PageSize},
};

use super::blob::Blob;

/// A question of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Its number; the answer bears it.
    pub id: u64,
    /// What is asked.
    pub ask: Ask,
}

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Who are you?
    Hello,
    /// What is the guest, seen from inside?
    Facts,
    /// Make these pages available, and set transparent huge pages so. What an earlier one set is put back first.
    Set(Wish),
    /// Measure this.
    Trial(Trial),
    /// Take memory, touch it, and tell where an address of it lies. What an earlier one took is given back first.
    Place(Place),
    /// Write a file; its directory is made.
    Write {
        /// Where.
        path: String,
        /// What.
        contents: Blob,
    },
    /// Tell a piece of a file, from this byte on.
    Read {
        /// Which.
        path: String,
        /// Where the piece begins.
        from: u64,
    },
    /// Run vmtax with these arguments. Until it has ended, its output is told in many answers.
    Run(Order),
    /// Send SIGINT to what runs. Has no answer of its own.
    Interrupt,
    /// Power off.
    PowerOff,
}

/// How the guest should be set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Pages that have to be available in pools.
    pub pools: Vec<(PageSize, u64)>,
    /// Who gets transparent huge pages: `always`, `madvise` or `never`; none to leave it.
    pub thp: Option<String>,
}

/// A trial, as the smallest plan that says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// A plan of one workload in one setting, natively: natively to the guest.
    pub plan: String,
    /// What layout and order follow from.
    pub seed: u64,
}

/// Memory of a process in the guest, and an address in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// How much.
    pub bytes: Bytes,
    /// What it stands on, in the guest.
    pub backing: Backing,
    /// How far into it the address lies.
    pub at: u64,
}

/// Where an address lies, by the guest's own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// The guest-virtual address.
    pub gva: u64,
    /// The guest-physical one (`/proc/self/pagemap` of the guest).
    pub gpa: u64,
    /// The page of the guest that both lie in.
    pub page: PageSize,
}

/// A vmtax command to be run in the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its arguments, without the name of the program.
    pub arguments: Vec<String>,
    /// Where it is run; made if there is no such place.
    pub directory: String,
    /// What it finds in its environment.
    pub environment: Vec<(String, String)>,
    /// What its standard error is.
    pub errors: Errors,
}

/// What standard error is to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Errors {
    /// No terminal.
    Pipe,
    /// A terminal of this size, so that progress is drawn.
    Terminal {
        /// Lines.
        rows: u16,
        /// Characters in a line.
        columns: u16,
    },
}

/// One of the streams that a command writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
}

/// The answer to the request of the same number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The request's.
    pub id: u64,
    /// What is said.
    pub say: Say,
}

/// What can be answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Say {
    /// To [`Ask::Hello`].
    Hello(Hello),
    /// To [`Ask::Facts`].
    Facts(Box<Host>),
    /// To [`Ask::Set`].
    Set(Got),
    /// To [`Ask::Trial`].
    Found(Finding),
    /// To [`Ask::Place`].
    Placed(Placed),
    /// To [`Ask::Write`].
    Written,
    /// To [`Ask::Read`]: a piece, empty at the end of the file.
    Piece(Blob),
    /// To [`Ask::Run`], and not the last.
    Wrote {
        /// Where to.
        stream: Stream,
        /// What.
        bytes: Blob,
    },
    /// To [`Ask::Run`]: its exit code, or 128 and the signal that ended it.
    Ended(u8),
    /// To [`Ask::PowerOff`]: the last words.
    Bye,
    /// It could not be done; why.
    Failed(String),
}

/// Who the agent is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// vmtax's version.
    pub version: String,
    /// SHA-256 of the binary, from the image's manifest.
    pub binary: String,
    /// The kernel's release.
    pub kernel: String,
    /// CPUs that it may run on.
    pub cpus: u32,
    /// Memory of the guest (`MemTotal`).
    pub memory: Bytes,
    /// Modules that would not load, with the reason.
    pub unloaded: Vec<String>,
}

/// What the guest is set to, read back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Got {
    /// Pages available in the pools that were asked for.
    pub pools: Vec<(PageSize, u64)>,
    /// The word of transparent huge pages; none where the kernel has none.
    pub thp: Option<String>,
}

impl Say {
    /// Its kind, for messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Say::Hello(_) => "hello",
            Say::Facts(_) => "facts",
            Say::Set(_) => "set",
            Say::Found(_) => "found",
            Say::Placed(_) => "placed",
            Say::Written => "written",
            Say::Piece(_) => "piece",
            Say::Wrote { .. } => "wrote",
            Say::Ended(_) => "ended",
            Say::Bye => "bye",
            Say::Failed(_) => "failed",
        }
    }
}
