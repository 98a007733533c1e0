//! What goes to the standard streams, and how errors read.

use std::{
    error::Error,
    io::{self, Write},
};

use vmtax_core::plan::Diagnostics;
use vmtax_machine::knob;

use crate::{guest::GuestError, image::ImageError};

/// Prints results.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Tells the user something beside the results. A terminal that has gone is no reason to stop.
pub fn note(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Whether the reader of our output has gone, as in `vmtax matrix | head -1`: nothing is wrong then.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io_error = error.downcast_ref::<io::Error>();
    io_error.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// `error: what: why`, each fact once, and `help:` with the way out where one is known.
pub fn explained(error: &anyhow::Error) -> String {
    if let Some(diagnostics) = error.downcast_ref::<Diagnostics>() {
        // They say `error:` themselves, each before its excerpt.
        return diagnostics.to_string();
    }
    let mut text = format!("error: {error}");
    let mut last = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !last.contains(&cause) {
            text.push_str(&format!(": {cause}"));
        }
        last = cause;
    }
    match error.chain().find_map(remedy) {
        Some(remedy) => format!("{text}\nhelp: {remedy}"),
        None => text,
    }
}

fn remedy(error: &(dyn Error + 'static)) -> Option<String> {
    let refusal = error.downcast_ref::<crate::command::Refusal>().and_then(|refusal| refusal.help.clone());
    let knob = || error.downcast_ref::<knob::Error>().and_then(knob::Error::remedy);
    let image = || error.downcast_ref::<ImageError>().and_then(ImageError::remedy);
    let guest = || error.downcast_ref::<GuestError>().and_then(GuestError::remedy);
    refusal.or_else(knob).or_else(image).or_else(guest)
}
