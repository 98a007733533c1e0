//! A writer of cpio archives in the format `newc`, the one that the kernel unpacks (Documentation/driver-api/early-userspace/
//! buffer-format.rst): 110 bytes of header in hexadecimal, the name, the contents, each padded to 4 bytes.
//!
//! Its own, because the format is forty lines and its bytes must depend on nothing but what is in it: no times, no owners,
//! inode numbers in order.

/// An archive being written.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

/// What an entry is, with its permissions; numbers as in `st_mode`.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Directory,
    File { mode: u32 },
    Character { major: u32, minor: u32 },
    Link,
    End,
}

impl Archive {
    /// A directory that all can enter. Parents come before children.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, Kind::Directory, &[]);
    }

    /// A file with its permissions.
    pub fn file(&mut self, path: &str, mode: u32, contents: &[u8]) {
        self.entry(path, Kind::File { mode }, contents);
    }

    /// A symbolic link.
    pub fn link(&mut self, path: &str, to: &str) {
        self.entry(path, Kind::Link, to.as_bytes());
    }

    /// A character device, for root alone.
    pub fn character(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, Kind::Character { major, minor }, &[]);
    }

    /// The archive with its end mark.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", Kind::End, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, kind: Kind, contents: &[u8]) {
        self.entries += 1;
        let (mode, links, (major, minor)) = match kind {
            Kind::Directory => (0o040_755, 2, (0, 0)),
            Kind::File { mode } => (0o100_000 | mode, 1, (0, 0)),
            Kind::Character { major, minor } => (0o020_600, 1, (major, minor)),
            Kind::Link => (0o120_777, 1, (0, 0)),
            Kind::End => (0, 1, (0, 0)),
        };
        let size = u32::try_from(contents.len()).expect("an initramfs holds no file of 4 GiB");
        let name = u32::try_from(path.len() + 1).expect("a path is short");
        let owner = [0, 0];
        let time = 0;
        let on_device = [0, 0];
        let no_checksum = 0;
        let header = [
            self.entries,
            mode,
            owner[0],
            owner[1],
            links,
            time,
            size,
            on_device[0],
            on_device[1],
            major,
            minor,
            name,
            no_checksum,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in header {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_bytes_that_the_kernel_reads() {
        let mut archive = Archive::default();
        archive.directory("dev");
        archive.file("dev/x", 0o644, b"abcde");
        archive.character("dev/console", 5, 1);
        let text = String::from_utf8(archive.finish()).unwrap().replace('\0', ".");
        let expected = concat!(
            "070701",
            "00000001",
            "000041ed",
            "00000000",
            "00000000",
            "00000002",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000004",
            "00000000",
            "dev...",
            "070701",
            "00000002",
            "000081a4",
            "00000000",
            "00000000",
            "00000001",
            "00000000",
            "00000005",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000006",
            "00000000",
            "dev/x.",
            "abcde...",
            "070701",
            "00000003",
            "00002180",
            "00000000",
            "00000000",
            "00000001",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000005",
            "00000001",
            "0000000c",
            "00000000",
            "dev/console...",
            "070701",
            "00000004",
            "00000000",
            "00000000",
            "00000000",
            "00000001",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "0000000b",
            "00000000",
            "TRAILER!!!....",
        );
        assert_eq!(text, expected);
    }
}
