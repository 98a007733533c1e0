//! Whose a file is, from its first bytes: before SQLite, which takes a file of less than 512 bytes for an empty database and
//! overwrites it, and which undoes an interrupted commit wherever it finds one, has seen it.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use super::{APPLICATION_ID, SCHEMA, StoreError};

/// The header of a SQLite file (<https://www.sqlite.org/fileformat.html>, 1.3).
///
/// ```text
///   0                16           60              64           68              72        100
///   │ SQLite format 3\0 │ ... │ user_version │ ... │ application_id │ ... │
/// ```
const HEADER: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";
const USER_VERSION: usize = 60;
const APPLICATION: usize = 68;

/// Whose a file is, where we may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Nobody's: there is none, or it is empty.
    Nobody,
    /// Ours, of a schema we know.
    Vmtax,
}

impl Owner {
    /// Refuses files of others and of newer versions.
    pub fn of(path: &Path) -> Result<Owner, StoreError> {
        let header = match header(path) {
            Ok(header) => header,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Owner::Nobody),
            Err(source) => return Err(StoreError::Open { path: path.to_owned(), source }),
        };
        let number = |at: usize| {
            let bytes = header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, i32::from_be_bytes)
        };
        match &header[..] {
            [] => Ok(Owner::Nobody),
            bytes if !bytes.starts_with(MAGIC) || number(APPLICATION) != APPLICATION_ID => {
                Err(StoreError::Foreign(path.to_owned()))
            }
            _ if number(USER_VERSION) > SCHEMA => {
                Err(StoreError::Newer { path: path.to_owned(), found: number(USER_VERSION) })
            }
            _ => Ok(Owner::Vmtax),
        }
    }
}

/// The first bytes of a regular file; of anything else the look alone could block or take something away.
fn header(path: &Path) -> io::Result<Vec<u8>> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut header = Vec::with_capacity(HEADER);
    File::open(path)?.take(HEADER as u64).read_to_end(&mut header)?;
    Ok(header)
}
