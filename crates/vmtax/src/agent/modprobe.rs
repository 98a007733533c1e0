//! `modprobe`, for a guest that has no other: `/sbin/modprobe` of the image is this binary. The kernel calls it for modules
//! that it wants, and [`vmtax_machine::knob`] where it loads KVM's again.

use std::{
    env,
    ffi::CString,
    fs::{self, File},
    io,
    path::Path,
    process::ExitCode,
};

use rustix::{io::Errno, system::finit_module};

use crate::{image::initramfs::MODULES, output};

/// Loads a module, if this process was started as modprobe.
pub fn dispatch() -> Option<ExitCode> {
    let mut arguments = env::args();
    if Path::new(&arguments.next()?).file_name()? != "modprobe" {
        return None;
    }
    let mut words = arguments.filter(|word| !word.starts_with('-'));
    let Some(module) = words.next() else { return Some(ExitCode::FAILURE) };
    let parameters: Vec<String> = words.collect();
    Some(match load(&module, &parameters.join(" ")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(format_args!("cannot load {module}: {error}"));
            ExitCode::FAILURE
        }
    })
}

/// Loads a module of the image, unless it is loaded. What it depends on is loaded: init has seen to that.
pub fn load(module: &str, parameters: &str) -> io::Result<()> {
    let file = File::open(format!("{MODULES}/{}.ko", module.replace('-', "_")))?;
    match finit_module(&file, &CString::new(parameters)?, 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What the kernel's command line says of a module: `kvm_amd.npt=0` is `npt=0` to `kvm_amd`.
pub fn parameters(module: &str) -> String {
    of_command_line(&fs::read_to_string("/proc/cmdline").unwrap_or_default(), module)
}

fn of_command_line(line: &str, module: &str) -> String {
    let own = |word: &str| {
        let (name, parameter) = word.split_once('.')?;
        (name.replace('-', "_") == module && parameter.contains('=')).then(|| parameter.to_owned())
    };
    line.split_whitespace().filter_map(own).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_hears_its_own_parameters() {
        let check = |module, expected| {
            assert_eq!(of_command_line("quiet kvm-amd.npt=0 kvm_amd.nested=1 kvm.x=2 a.b", module), expected);
        };
        check("kvm_amd", "npt=0 nested=1");
        check("kvm", "x=2");
        check("a", "");
    }
}
