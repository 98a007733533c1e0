//! Files of the guest, written and read in pieces.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use anyhow::Context;

use super::blob::Blob;

/// Bytes in a piece: with the third that base 64 adds, well below the limit of a frame.
const PIECE: u64 = 4 << 20;

/// Writes a file, in a directory that is made if need be.
pub fn write(path: &str, contents: &[u8]) -> anyhow::Result<()> {
    if let Some(directory) = Path::new(path).parent() {
        fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    }
    fs::write(path, contents).with_context(|| format!("cannot write {path}"))
}

/// A piece from byte `from` on; empty at the end, and where there is no file.
pub fn read(path: &str, from: u64) -> anyhow::Result<Blob> {
    let mut piece = Vec::new();
    if Path::new(path).exists() {
        let mut file = File::open(path).with_context(|| format!("cannot read {path}"))?;
        file.seek(SeekFrom::Start(from))?;
        file.take(PIECE).read_to_end(&mut piece).with_context(|| format!("cannot read {path}"))?;
    }
    Ok(Blob(piece))
}
