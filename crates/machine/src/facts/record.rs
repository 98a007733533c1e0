//! Records this machine, so that its facts can be replayed where it is not.
//!
//! Only files that were read are written, and nothing in them says whose machine it is: of `/proc/stat` the first line, of
//! `/proc/cpuinfo` the first CPU, of an ACPI table the header, of control groups the limits without their paths.

use std::{fs, io, path::Path};

use vmtax_core::units::Bytes;

use super::{Answers, Leaves, Tree, read};

/// Bytes of a binary file that are kept: the header of an ACPI table.
const HEADER: usize = 36;

/// Writes what [`super::host`] sees into a directory that [`super::recorded`] reads.
///
/// # Errors
/// The directory cannot be written.
pub fn record(directory: &Path) -> io::Result<()> {
    let (tree, leaves, answers) = (Tree::machine(), Leaves::of_this_cpu(), Answers::of_this_kernel());
    let host = read(&tree, &leaves, &answers);
    write(directory, "cpuid", leaves.to_string())?;
    write(directory, "answers", answers.to_string())?;
    let ours = |path: &String| !path.starts_with("sys/fs/cgroup") && path != "proc/self/cgroup";
    for path in tree.seen().iter().filter(|path| ours(path)) {
        match path.as_str() {
            "proc/stat" => write(directory, path, lines(&tree, path, |text| text.lines().next()))?,
            "proc/cpuinfo" => write(directory, path, lines(&tree, path, |text| text.split("\n\n").next()))?,
            _ if path.starts_with("sys/firmware") => {
                write(directory, path, tree.head(path, HEADER).unwrap_or_default())?
            }
            _ => write(directory, path, lines(&tree, path, |text| Some(text)))?,
        }
    }
    write(directory, "proc/self/cgroup", "0::/\n")?;
    let limits = [
        ("memory.max", host.limits.memory),
        ("hugetlb.2MB.max", host.limits.hugetlb_2m),
        ("hugetlb.1GB.max", host.limits.hugetlb_1g),
    ];
    for (name, limit) in limits {
        if let Some(Bytes(bytes)) = limit {
            write(directory, &format!("sys/fs/cgroup/{name}"), format!("{bytes}\n"))?;
        }
    }
    Ok(())
}

fn lines(tree: &Tree, path: &str, part: impl Fn(&str) -> Option<&str>) -> String {
    let text = tree.text(path).unwrap_or_default();
    format!("{}\n", part(&text).unwrap_or_default())
}

fn write(directory: &Path, path: &str, content: impl AsRef<[u8]>) -> io::Result<()> {
    let file = directory.join(path);
    fs::create_dir_all(file.parent().unwrap_or(directory))?;
    fs::write(file, content)
}
