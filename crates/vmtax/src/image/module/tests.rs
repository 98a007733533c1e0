use std::io::Write;

use super::*;

/// The least ELF file with a section `.modinfo`: header, section headers (none, `.modinfo`, names), contents.
fn elf_with(modinfo: &[u8]) -> Vec<u8> {
    let names = b"\0.modinfo\0.shstrtab\0";
    let contents = 64 + 3 * 64_u64;
    let mut file = Vec::new();
    file.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    for half in [1_u16, 62] {
        file.extend(half.to_le_bytes()); // relocatable, x86-64
    }
    file.extend(1_u32.to_le_bytes());
    for word in [0_u64, 0, 64] {
        file.extend(word.to_le_bytes()); // no entry, no segments, sections follow
    }
    file.extend(0_u32.to_le_bytes());
    for half in [64_u16, 0, 0, 64, 3, 2] {
        file.extend(half.to_le_bytes());
    }
    let mut section = |name: u32, kind: u32, at: u64, size: u64| {
        file.extend(name.to_le_bytes());
        file.extend(kind.to_le_bytes());
        for word in [0, 0, at, size, 0, 1, 0] {
            file.extend(u64::to_le_bytes(word));
        }
    };
    section(0, 0, 0, 0);
    section(1, 1, contents, modinfo.len() as u64);
    section(10, 3, contents + modinfo.len() as u64, names.len() as u64);
    file.extend(modinfo);
    file.extend(names);
    file
}

fn tree(files: &[(&str, Vec<u8>)]) -> (tempfile::TempDir, Modules) {
    let directory = tempfile::tempdir().unwrap();
    for (path, bytes) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let modules = Modules::at(directory.path()).unwrap();
    (directory, modules)
}

#[test]
fn each_comes_after_what_it_needs_and_once() {
    let (_directory, modules) = tree(&[
        ("kernel/net/virtio-net.ko", elf_with(b"license=GPL\0depends=virtio_ring,virtio\0")),
        ("kernel/virtio_ring.ko", elf_with(b"depends=virtio\0")),
        ("kernel/virtio.ko", elf_with(b"depends=\0vermagic=6.1\0")),
        ("modules.builtin", b"kernel/drivers/virtio/virtio-pci.ko\n".to_vec()),
    ]);
    let order = modules.in_order(&["virtio_net", "virtio_pci", "no_such", "virtio"]).unwrap();
    let names: Vec<_> = order.iter().map(|module| module.name.as_str()).collect();
    assert_eq!(names, ["virtio", "virtio_ring", "virtio_net"]);
    assert!(modules.has("virtio_pci") && modules.has("virtio_net") && !modules.has("no_such"));
}

#[test]
fn modules_that_need_each_other_end() {
    let (_directory, modules) = tree(&[("a.ko", elf_with(b"depends=b\0")), ("b.ko", elf_with(b"depends=a\0"))]);
    let names: Vec<_> = modules.in_order(&["a"]).unwrap().into_iter().map(|module| module.name).collect();
    assert_eq!(names, ["b", "a"]);
}

#[test]
fn compressed_modules_are_unpacked() {
    let plain = elf_with(b"depends=\0");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(&plain).unwrap();
    let zst = ruzstd::encoding::compress_to_vec(plain.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
    let (_directory, modules) = tree(&[
        ("one.ko.gz", gz.finish().unwrap()),
        ("two.ko.zst", zst),
        ("three.ko.xz", XZ.to_vec()),
        ("four.ko", plain.clone()),
    ]);
    for name in ["one", "two", "four"] {
        let unpacked = modules.in_order(&[name]).unwrap();
        assert_eq!(unpacked, [Module { name: name.to_owned(), bytes: plain.clone() }]);
    }
    let error = modules.in_order(&["three"]).unwrap_err().to_string();
    assert!(error.contains("read the dependencies of"), "{error}: unpacked, but no module");
}

/// `printf 'no module' | xz`
const XZ: &[u8] = &[
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01, 0x16, 0x00, 0x00,
    0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x08, 0x6e, 0x6f, 0x20, 0x6d, 0x6f, 0x64, 0x75, 0x6c, 0x65, 0x00, 0x00,
    0x00, 0x00, 0x9d, 0x29, 0x39, 0x87, 0x1a, 0xaa, 0xb1, 0xf6, 0x00, 0x01, 0x21, 0x09, 0x6c, 0x18, 0xc5, 0xd5, 0x1f,
    0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
];

#[test]
fn a_broken_file_is_named() {
    let (directory, modules) = tree(&[("bad.ko.zst", b"not zstd".to_vec()), ("bad2.ko.xz", b"not xz".to_vec())]);
    for (name, file) in [("bad", "bad.ko.zst"), ("bad2", "bad2.ko.xz")] {
        let error = modules.in_order(&[name]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot unpack {}/{file}: ", directory.path().display())), "{error}");
    }
}
