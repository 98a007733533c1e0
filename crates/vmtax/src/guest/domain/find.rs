//! Where a domain's description comes from: a file, libvirt itself, or libvirt's own file.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{Domain, DomainError, read::read};

/// Where libvirt keeps the domains of the system.
const KEPT: &str = "/etc/libvirt/qemu";

/// The domain of this name, or in this file: what has a `/` or ends in `.xml` is a file.
pub fn find(name_or_path: &str) -> Result<Domain, DomainError> {
    if name_or_path.contains('/') || name_or_path.ends_with(".xml") {
        return in_file(Path::new(name_or_path));
    }
    let name = name_or_path;
    let missing = |why: String| DomainError::Missing { name: name.to_owned(), why };
    // Reading only, it needs no right to change anything.
    let asked = Command::new("virsh")
        .args(["--readonly", "dumpxml", &format!("--domain={name}")])
        .stdin(Stdio::null())
        .output();
    match asked {
        Ok(output) if output.status.success() => {
            read(&format!("virsh dumpxml {name}"), &String::from_utf8_lossy(&output.stdout))
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(missing(format!("virsh: {}", said.lines().next().unwrap_or("it said nothing").trim())))
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let file = PathBuf::from(format!("{KEPT}/{name}.xml"));
            match file.try_exists() {
                Ok(false) => Err(missing(format!("there is neither virsh nor {}", file.display()))),
                Ok(true) | Err(_) => in_file(&file),
            }
        }
        Err(e) => Err(missing(format!("virsh: {e}"))),
    }
}

fn in_file(file: &Path) -> Result<Domain, DomainError> {
    let unreadable = |e: std::io::Error| DomainError::File { file: file.to_owned(), why: e.to_string() };
    read(&file.display().to_string(), &fs::read_to_string(file).map_err(unreadable)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_that_is_nowhere_is_told_where_it_was_looked_for() {
        let error = find("no-such-domain-here").unwrap_err();
        assert!(error.to_string().starts_with("cannot find the domain no-such-domain-here: "), "{error}");
        assert!(error.remedy().unwrap().contains("virsh list"));
        let error = find("./missing.xml").unwrap_err();
        assert!(error.to_string().starts_with("cannot read ./missing.xml: No such file"), "{error}");
    }

    #[test]
    fn a_file_is_read_by_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("vm.xml");
        fs::write(&file, include_str!("fixture/plain.xml")).unwrap();
        assert_eq!(find(&file.display().to_string()).unwrap().name, "plain");
        fs::write(&file, "<domain").unwrap();
        let error = find(&file.display().to_string()).unwrap_err();
        assert!(error.to_string().starts_with(&format!("{}:1: <", file.display())), "{error}");
    }
}
