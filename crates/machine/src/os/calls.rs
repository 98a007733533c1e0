//! System calls that do next to nothing: `dup` and `close` of standard input, `getpid`, `getuid`, `umask`.

use std::{hint::black_box, io, time::Duration};

use rustix::{
    fs::Mode,
    io::dup,
    process::{getpid, getuid, umask},
};

use super::{Count, timer};

pub(super) fn count(time: Duration) -> io::Result<Count> {
    let stdin = io::stdin();
    timer::count(time, || {
        drop(dup(&stdin)?);
        // Each enters the kernel: rustix keeps no copy of what they return.
        black_box(getpid());
        black_box(getuid());
        umask(Mode::WGRP | Mode::WOTH);
        Ok(1)
    })
}
