//! A file copied through a buffer again and again, from its begin to its end, over the copy.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, Write},
    path::Path,
    time::Duration,
};

use vmtax_core::{os::Buffer, units::KIB};

use super::{Count, timer};

/// KiB copied, in the working directory.
pub(super) fn copied(buffer: Buffer, time: Duration) -> io::Result<Count> {
    let [from, to] = ["copied-from", "copied-to"].map(Path::new);
    let counted = copy(buffer, time, [from, to]);
    for path in [from, to] {
        let _ = fs::remove_file(path);
    }
    let Count { operations, elapsed } = counted?;
    Ok(Count { operations: operations / KIB, elapsed })
}

/// Bytes copied.
fn copy(buffer: Buffer, time: Duration, [from, to]: [&Path; 2]) -> io::Result<Count> {
    let make = |path| File::options().read(true).write(true).create(true).truncate(true).open(path);
    let (mut from, mut to) = (make(from)?, make(to)?);
    let mut block = vec![0x5a; buffer.bytes().0 as usize];
    for _ in 0..buffer.file().0.div_ceil(buffer.bytes().0) {
        from.write_all(&block)?;
    }
    // On disk and in the page cache: what the copy finds does not depend on what was before.
    from.sync_all()?;
    from.rewind()?;
    while from.read(&mut block)? > 0 {}
    from.rewind()?;
    timer::count(time, || match from.read(&mut block)? {
        0 => {
            from.rewind()?;
            to.rewind()?;
            Ok(0)
        }
        n => {
            to.write_all(&block[..n])?;
            Ok(n as u64)
        }
    })
}
