//! What is measured is these bytes: a toolchain that assembles a probe otherwise must not go unseen.
//!
//! `VMTAX_UPDATE=1 cargo test -p vmtax-machine --test probe_bytes` writes `testdata/probes/*.hex` anew. A change there
//! makes figures of before and after two different things: say so in the commit and in CHANGELOG.md.

use std::{env, fs, path::Path};

use vmtax_core::probe::Probe;
use vmtax_machine::probe;

/// Sixteen bytes a line, so that a difference shows where it is.
fn hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ") + "\n";
    bytes.chunks(16).map(line).collect()
}

#[test]
fn every_probe_is_the_bytes_that_are_kept() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/probes");
    for probe in Probe::ALL {
        let file = directory.join(format!("{probe}.hex"));
        let bytes = hex(probe::code(probe).bytes);
        if env::var_os("VMTAX_UPDATE").is_some() {
            fs::create_dir_all(&directory).unwrap();
            fs::write(&file, &bytes).unwrap();
        }
        let kept = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        assert_eq!(bytes, kept, "{}", file.display());
    }
}
