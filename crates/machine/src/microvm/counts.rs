//! KVM's binary statistics of one VM (`Documentation/virt/kvm/api.rst`, 4.133, KVM_GET_STATS_FD; Linux 5.14).
//!
//! ```text
//!   header │ id string │ descriptor, name │ descriptor, name │ … │ data: u64 values
//! ```

use std::{
    fs::File,
    io,
    os::{
        fd::{AsRawFd, FromRawFd},
        unix::fs::FileExt,
    },
};

use kvm_ioctls::{VcpuFd, VmFd};
use vmtax_core::trial::KvmCounts;

/// The counters of one VM and its vCPUs.
#[derive(Debug)]
pub(super) struct Counters {
    vm: Block,
    vcpus: Vec<Block>,
}

/// One statistics file: where each named value stands in it.
#[derive(Debug)]
struct Block {
    file: File,
    values: Vec<(String, u64)>,
}

impl Counters {
    /// Opens them; none where this KVM has none.
    pub(super) fn open<'v>(vm: &VmFd, vcpus: impl Iterator<Item = &'v VcpuFd>) -> Option<Self> {
        Some(Counters {
            vm: Block::open(vm).ok()?,
            vcpus: vcpus.map(|vcpu| Block::open(vcpu).ok()).collect::<Option<_>>()?,
        })
    }

    /// Reads them now.
    pub(super) fn read(&self) -> Option<KvmCounts> {
        let vcpus = |name: &str| self.vcpus.iter().map(|vcpu| vcpu.value(name).unwrap_or(0)).sum();
        Some(KvmCounts {
            pages_4k: self.vm.value("pages_4k")?,
            pages_2m: self.vm.value("pages_2m")?,
            pages_1g: self.vm.value("pages_1g")?,
            faults: vcpus("pf_taken"),
            exits: vcpus("exits"),
            steady_faults: 0,
            nx_lpage_splits: self.vm.value("nx_lpage_splits"),
        })
    }
}

impl Block {
    fn open(fd: &impl AsRawFd) -> io::Result<Self> {
        /// `_IO(KVMIO, 0xce)`: `include/uapi/linux/kvm.h`. Not in kvm-ioctls 0.25.
        const KVM_GET_STATS_FD: libc::c_ulong = 0xaece;
        // SAFETY: this ioctl takes no argument and returns a new descriptor or -1.
        let stats = unsafe { libc::ioctl(fd.as_raw_fd(), KVM_GET_STATS_FD) };
        if stats < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        let file = unsafe { File::from_raw_fd(stats) };
        let values = descriptors(&file)?;
        Ok(Block { file, values })
    }

    fn value(&self, name: &str) -> Option<u64> {
        let (_, offset) = self.values.iter().find(|(known, _)| known == name)?;
        let mut value = [0; 8];
        self.file.read_exact_at(&mut value, *offset).ok()?;
        Some(u64::from_ne_bytes(value))
    }
}

/// Names and offsets of all values in a statistics file.
fn descriptors(file: &File) -> io::Result<Vec<(String, u64)>> {
    let mut header = [0; 24];
    file.read_exact_at(&mut header, 0)?;
    let word = |bytes: &[u8], at: usize| {
        u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("a slice of four bytes is an array of four"))
    };
    let [name_size, number, descriptors, data] = [4, 8, 16, 20].map(|at| word(&header, at));
    // flags u32, exponent i16, size u16, offset u32, bucket_size u32, then the name.
    const FIXED: usize = 16;
    let stride = FIXED + name_size as usize;
    let mut table = vec![0; stride * number as usize];
    file.read_exact_at(&mut table, descriptors.into())?;
    Ok(table
        .chunks_exact(stride)
        .map(|entry| {
            let name = entry[FIXED..].split(|&b| b == 0).next().unwrap_or_default();
            (String::from_utf8_lossy(name).into_owned(), u64::from(data) + u64::from(word(entry, 8)))
        })
        .collect())
}
