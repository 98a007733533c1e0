//! Pipes: through one and back to the same process, or over two to another process and back.

use std::{io, os::fd::OwnedFd, time::Duration};

use rustix::{
    io::{read, write},
    pipe::pipe,
};

use super::{Count, spawn, timer};

/// Bytes that go through a pipe at once.
const BLOCK: usize = 512;

pub(super) fn through_one(time: Duration) -> io::Result<Count> {
    let (reader, writer) = pipe()?;
    let mut block = [0; BLOCK];
    timer::count(time, || {
        whole(write(&writer, &block)?, BLOCK)?;
        whole(read(&reader, &mut block)?, BLOCK)?;
        Ok(1)
    })
}

pub(super) fn between_two(time: Duration) -> io::Result<Count> {
    let (there, to) = pipe()?;
    let (from, back) = pipe()?;
    // SAFETY: this process has one thread.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {
            drop((to, from));
            let code = if answer(&there, &back).is_ok() { 0 } else { 1 };
            // SAFETY: ends the child without running anything of its parent's.
            unsafe { libc::_exit(code) }
        }
        child => child,
    };
    drop((there, back));
    let mut number = 0u64;
    let counted = timer::count(time, || {
        let mut answer = [0; 8];
        whole(write(&to, &number.to_ne_bytes())?, 8)?;
        whole(read(&from, &mut answer)?, 8)?;
        if u64::from_ne_bytes(answer) != number {
            return Err(io::Error::other("context: another number came back than was sent"));
        }
        number += 1;
        Ok(1)
    });
    // The other process ends when nobody can write to it any more.
    drop((to, from));
    spawn::wait(child)?;
    counted
}

/// Sends back what comes, until nothing does. It ends well also where the parent was gone before it read the answer.
fn answer(from: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    let mut number = [0; 8];
    loop {
        match read(from, &mut number)? {
            0 => return Ok(()),
            n => whole(n, 8)?,
        }
        match write(to, &number) {
            Err(rustix::io::Errno::PIPE) => return Ok(()),
            written => whole(written?, 8)?,
        }
    }
}

fn whole(n: usize, expected: usize) -> io::Result<()> {
    if n == expected { Ok(()) } else { Err(io::Error::other(format!("a pipe took {n} of {expected} bytes"))) }
}
