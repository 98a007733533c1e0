//! Files as they are, or compressed in one of the ways that Linux distributions use.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// The contents of a file, unpacked as its name asks for.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let file = File::open(path)?;
    Ok(match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz" | "tgz") => Box::new(flate2::read::MultiGzDecoder::new(file)),
        Some("xz" | "txz") => Box::new(lzma_rust2::XzReader::new(file, true)),
        Some("zst") => Box::new(ruzstd::decoding::StreamingDecoder::new(file).map_err(io::Error::other)?),
        Some(_) | None => Box::new(file),
    })
}
