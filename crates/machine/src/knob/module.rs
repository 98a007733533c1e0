//! Nested paging: `ept` of `kvm_intel` or `npt` of `kvm_amd`, which only loading the module sets.
//!
//! Its state is the module's parameters as on a kernel's command line, the one that matters first; the empty text where the
//! module is not loaded, which is what a kill between unloading and loading leaves:
//!
//! ```text
//!     kvm_intel.ept=Y kvm_intel.eptad=Y kvm_intel.nested=Y …
//! ```
//!
//! Putting back passes all of them, whatever the host's modprobe.d says by then. Turning passes all but those which the
//! module derives from the one that matters ([`Vendor::derived`]): `unrestricted_guest` reads N without EPT, and passing
//! that on would keep it off with EPT. Values the module would not take back ("EPT disabled", "???", "(null)") are left out.
//!
//! Only the vendor's module goes; `kvm` and what was set in it stay. A doubt: `/dev/kvm` is made anew, and it is udev that
//! gives it its group and mode again; a host without udev would need them set by hand.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use super::{Error, Host, Switch, vm};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vendor {
    Intel,
    Amd,
}

impl Vendor {
    const ALL: [Vendor; 2] = [Vendor::Intel, Vendor::Amd];

    const fn module(self) -> &'static str {
        match self {
            Vendor::Intel => "kvm_intel",
            Vendor::Amd => "kvm_amd",
        }
    }

    const fn parameter(self) -> &'static str {
        match self {
            Vendor::Intel => "ept",
            Vendor::Amd => "npt",
        }
    }

    /// Parameters that `hardware_setup` changes because of the one that matters (arch/x86/kvm/{vmx/vmx,svm/svm}.c, 6.18).
    const fn derived(self) -> &'static [&'static str] {
        match self {
            Vendor::Intel => &["eptad", "unrestricted_guest", "pml", "allow_smaller_maxphyaddr"],
            Vendor::Amd => &["avic", "vls", "sev", "sev_es", "sev_snp"],
        }
    }

    fn directory(self, host: &Host) -> PathBuf {
        host.sys.join("module").join(self.module())
    }

    /// Its parameters now; none where it is not loaded.
    fn parameters(self, host: &Host) -> Result<BTreeMap<String, String>, Error> {
        let directory = self.directory(host).join("parameters");
        let names = match fs::read_dir(&directory) {
            Ok(entries) => entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(e) => return Err(Error::io("read", &directory, e)),
        };
        // A parameter that nobody may read cannot have been given to us either.
        let value =
            |name: String| Some((name.clone(), host.kernel.read(&directory.join(&name)).ok()?.trim().to_owned()));
        Ok(names.filter_map(value).filter(|(_, value)| is_taken_back(value)).collect())
    }

    /// `kvm_intel.ept=N`, as a kernel's command line has it.
    fn spell(self, name: &str, value: &str) -> String {
        format!("{}.{name}={value}", self.module())
    }

    fn line(self, mut parameters: BTreeMap<String, String>) -> String {
        let Some(first) = parameters.remove(self.parameter()) else { return String::new() };
        let rest = parameters.iter().map(|(name, value)| self.spell(name, value));
        [self.spell(self.parameter(), &first)].into_iter().chain(rest).collect::<Vec<_>>().join(" ")
    }
}

/// `Y` or `N`, of whichever module there is. `npt` was a number before Linux 5.13.
pub(super) fn read(host: &Host) -> Result<String, Error> {
    let vendor = loaded(host)?;
    let path = vendor.directory(host).join("parameters").join(vendor.parameter());
    let text = host.kernel.read(&path).map_err(|e| Error::io("read", &path, e))?;
    let word = match text.trim() {
        "1" => "Y",
        "0" => "N",
        word => word,
    };
    Ok(word.to_owned())
}

pub(super) fn state(host: &Host) -> Result<String, Error> {
    for vendor in Vendor::ALL {
        let line = vendor.line(vendor.parameters(host)?);
        if !line.is_empty() {
            return Ok(line);
        }
    }
    Ok(String::new())
}

pub(super) fn target(host: &Host, word: &str) -> Result<String, Error> {
    let vendor = loaded(host)?;
    let mut parameters = vendor.parameters(host)?;
    parameters.retain(|name, _| !vendor.derived().contains(&name.as_str()));
    let is_number = parameters.get(vendor.parameter()).is_some_and(|value| value == "0" || value == "1");
    let value = match (word, is_number) {
        ("Y", true) => "1",
        (_, true) => "0",
        (word, false) => word,
    };
    parameters.insert(vendor.parameter().to_owned(), value.to_owned());
    Ok(vendor.line(parameters))
}

/// Whether the module could be unloaded now.
pub(super) fn check(host: &Host, word: &str) -> Result<(), Error> {
    let vendor = loaded(host)?;
    let module = vendor.module();
    let remedy = format!("boot with {}", vendor.spell(vendor.parameter(), if word == "Y" { "1" } else { "0" }));
    let unavailable = |reason| Err(Error::Unavailable { switch: Switch::NestedPaging, reason, remedy });
    // Only a module that was loaded has a state of loading (kernel/module/sysfs.c).
    if !vendor.directory(host).join("initstate").exists() {
        return unavailable(format!("{module} is built into this kernel"));
    }
    let users = vm::users(&host.proc);
    if !users.is_empty() {
        return Err(Error::VmsRunning { module, users });
    }
    let references = host.kernel.read(&vendor.directory(host).join("refcnt")).unwrap_or_default();
    match references.trim() {
        "" | "0" => Ok(()),
        count => unavailable(format!("{module} is in use {count} times, by no process that can be seen")),
    }
}

/// Reloads the module with the parameters of `line`. Not undone here when it fails: the journal has the old ones.
pub(super) fn write(host: &Host, line: &str) -> Result<(), Error> {
    let vendor = Vendor::ALL.into_iter().find(|vendor| line.starts_with(&format!("{}.", vendor.module())));
    let vendor = vendor.ok_or_else(|| missing("the journal names no module of KVM", "sudo modprobe kvm_intel"))?;
    let (module, directory) = (vendor.module(), vendor.directory(host));
    if directory.exists() {
        host.kernel.unload(module).map_err(|source| match source.raw_os_error() {
            Some(libc::EWOULDBLOCK | libc::EBUSY) => Error::VmsRunning { module, users: vm::users(&host.proc) },
            _ => Error::io("unload", &directory, source),
        })?;
    }
    let prefix = format!("{module}.");
    let parameters: Vec<&str> = line.split_whitespace().filter_map(|word| word.strip_prefix(&prefix)).collect();
    host.kernel.load(module, &parameters).map_err(|e| Error::io("load", &directory, e))
}

fn loaded(host: &Host) -> Result<Vendor, Error> {
    let has = |module: &str| host.sys.join("module").join(module).exists();
    let found = Vendor::ALL.into_iter().find(|v| v.directory(host).join("parameters").join(v.parameter()).exists());
    found.ok_or_else(|| match (has("kvm_pvm"), has("kvm")) {
        (true, _) => missing(
            "this host's KVM is kvm_pvm, which translates in software and has no nested paging",
            "a host with Intel VT-x or AMD-V that its hypervisor passes on",
        ),
        (false, true) => missing("neither kvm_intel nor kvm_amd is loaded", "sudo modprobe kvm_intel, or kvm_amd"),
        (false, false) => missing("KVM is not loaded", "sudo modprobe kvm_intel, or kvm_amd"),
    })
}

fn missing(reason: &str, remedy: &str) -> Error {
    Error::Unavailable { switch: Switch::NestedPaging, reason: reason.to_owned(), remedy: remedy.to_owned() }
}

fn is_taken_back(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ',' | '.'))
}

#[cfg(test)]
mod tests;
