//! What is read of ELF files: how much of a program is ever loaded, and what a kernel module says of itself.

use object::{
    Endianness, Object, ObjectSection,
    elf::{FileHeader64, PT_LOAD},
    read::elf::{FileHeader, ProgramHeader},
};

/// Where a 64-bit file header says where its section headers are, how large one is, how many, and which holds their names
/// (`e_shoff`, `e_shentsize`, `e_shnum`, `e_shstrndx`; System V ABI, chapter 4).
const SECTION_FIELDS: [std::ops::Range<usize>; 2] = [0x28..0x30, 0x3a..0x40];

/// A program without what no loader reads: everything behind its last loaded byte, which is where linkers put symbols and
/// debug information. Three quarters of a build with debug information.
pub fn loaded_part(program: &[u8]) -> object::Result<Vec<u8>> {
    let header = FileHeader64::<Endianness>::parse(program)?;
    let endian = header.endian()?;
    let segments = header.program_headers(endian, program)?;
    let loaded = segments.iter().filter(|segment| segment.p_type(endian) == PT_LOAD);
    let ends = loaded.map(|segment| segment.p_offset(endian).saturating_add(segment.p_filesz(endian)));
    let table = header.e_phoff(endian) + size_of_val(segments) as u64;
    let end = ends.fold(table, u64::max).min(program.len() as u64);
    let mut kept = program[..end as usize].to_vec();
    for field in SECTION_FIELDS {
        kept[field].fill(0);
    }
    Ok(kept)
}

/// The modules that a kernel module needs, in its own words (`depends=` in `.modinfo`, written by modpost).
pub fn depends(module: &[u8]) -> object::Result<Vec<String>> {
    let file = object::File::parse(module)?;
    let Some(section) = file.section_by_name(".modinfo") else { return Ok(Vec::new()) };
    let entries = section.data()?.split(|byte| *byte == 0);
    let named = entries.filter_map(|entry| entry.strip_prefix(b"depends=")).flat_map(|list| list.split(|b| *b == b','));
    Ok(named.filter(|name| !name.is_empty()).map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, process::Command};

    use super::*;

    #[test]
    fn a_program_runs_without_what_is_not_loaded() {
        let whole = fs::read(std::env::current_exe().unwrap()).unwrap();
        let part = loaded_part(&whole).unwrap();
        assert!(part.len() < whole.len(), "{} of {}", part.len(), whole.len());
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("copy");
        fs::write(&copy, part).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        let listed = Command::new(copy).arg("--list").output().unwrap();
        let name = "a_program_runs_without_what_is_not_loaded";
        assert!(String::from_utf8(listed.stdout).unwrap().contains(name));
    }

    #[test]
    fn what_is_no_program_is_refused() {
        assert!(loaded_part(b"#!/bin/sh\n").is_err());
        assert!(loaded_part(&[]).is_err());
        assert!(depends(b"no module").is_err());
    }
}
