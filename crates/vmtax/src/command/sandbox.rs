//! `vmtax sandbox`: any command of vmtax inside an emulated AMD host, whose KVM, pools and modules are real.
//!
//! The command finds itself where it was typed: in a directory of the same name, with the files that its arguments name. Its
//! output comes out as it is written, and the runs that it kept are added to the results file here. With an image the host has
//! QEMU, other programs and a kernel, so that guests boot in it, nested.

use std::{
    env,
    io::{self, Write},
    iter,
    process::ExitCode,
    sync::atomic::AtomicBool,
};

use anyhow::Context;
use clap::Parser;
use rustix::{
    stdio,
    termios::{isatty, tcgetwinsize},
};

use self::luggage::Luggage;
use super::image;
use crate::{
    agent::message::{Errors, Order, Stream},
    cli::{Cli, SandboxArgs},
    guest::{
        Accel, Guest, Machine, Patience,
        machine::{Access, Disk, Populated},
    },
    image::{Initramfs, Kernel, Role, Root},
    output,
    signal::Signals,
};

mod luggage;

/// A processor with all that QEMU emulates, AMD's virtualization with nested paging included.
const CPU: &str = "max,+svm";

/// Where programs are in an image; without one, only vmtax is there.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Boots the host, runs the command, fetches its results; its exit code.
pub fn run(args: &SandboxArgs) -> anyhow::Result<ExitCode> {
    // A slip is answered here, not after a boot.
    if let Err(answer) = Cli::try_parse_from(iter::once("vmtax").chain(args.command.iter().map(String::as_str))) {
        answer.print().context("cannot tell what is wrong with the command")?;
        return Ok(ExitCode::from(u8::try_from(answer.exit_code())?));
    }
    let luggage = Luggage::of(&args.command)?;
    let kernel = Kernel::find(&image::source(&args.kernel))?;
    let root = args.image.as_deref().map(Root::find).transpose()?;
    let initramfs = match root {
        None => Initramfs::build(&kernel, Role::Host)?,
        Some(_) => Initramfs::with_programs(&kernel, Role::Host)?,
    };
    let disk = root.map(|root| Disk { file: root.disk(), access: Access::ReadOnly });
    let machine = Machine {
        qemu: args.qemu.clone(),
        cpu: Some(CPU.to_owned()),
        vcpus: args.cpus,
        memory: args.memory,
        append: args.append.clone(),
        disks: disk.into_iter().collect(),
        populated: Populated::OnTouch,
        ..Machine::new(Accel::Tcg)
    };
    let mut guest = Guest::boot(machine, &kernel, &initramfs, Patience::default())?;
    output::note(format!(
        "Sandbox ready in {:.1} s: an emulated AMD host, {} CPUs, {}.\nMechanisms are real in it, times are not.",
        guest.timing().agent.as_secs_f64(),
        args.cpus,
        args.memory
    ));
    // From here on a signal is the command's to end by, with what it measured kept.
    let signals = Signals::catch()?;
    luggage.send(&mut guest)?;
    let code = run_in(&mut guest, &luggage, &args.command, signals.stop())?;
    luggage.fetch(&mut guest)?;
    guest.shut_down()?;
    Ok(ExitCode::from(code))
}

fn run_in(guest: &mut Guest, luggage: &Luggage, command: &[String], stop: &AtomicBool) -> anyhow::Result<u8> {
    let order = Order {
        arguments: command.to_vec(),
        directory: luggage.directory().to_owned(),
        environment: environment(),
        errors: errors(),
    };
    let mut heard = Ok(());
    let code = guest.run(order, stop, |stream, bytes| {
        if heard.is_ok() {
            heard = pass_on(stream, bytes);
        }
    })?;
    heard.context("cannot pass on what the command wrote")?;
    Ok(code)
}

/// Writes what the command wrote, to where it wrote it.
fn pass_on(stream: Stream, bytes: &[u8]) -> io::Result<()> {
    match stream {
        Stream::Output => io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()),
        Stream::Errors => {
            // A terminal that has gone is no reason to stop.
            let _ = io::stderr().write_all(bytes);
            Ok(())
        }
    }
}

/// What a command may know of the place where it was typed.
fn environment() -> Vec<(String, String)> {
    let own = [("HOME", "/root"), ("XDG_STATE_HOME", luggage::STATE), ("PATH", PATH)];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let passed = ["NO_COLOR", "TERM"].into_iter().filter_map(|name| Some((name.to_owned(), env::var(name).ok()?)));
    own.into_iter().chain(passed).collect()
}

fn errors() -> Errors {
    let stderr = stdio::stderr();
    match tcgetwinsize(stderr) {
        Ok(size) if isatty(stderr) => Errors::Terminal { rows: size.ws_row, columns: size.ws_col },
        Ok(_) | Err(_) => Errors::Pipe,
    }
}
