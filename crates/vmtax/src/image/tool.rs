//! Programs of the host that images are made with: run in plain English, their complaint told in one line.

use std::{
    env,
    ffi::OsString,
    io::{self, Read},
    process::{Command, Output, Stdio},
};

/// Characters of a complaint that are told: apt's go on with the command line that failed.
const LONGEST: usize = 300;

/// What a tool printed, or in words why it failed.
pub fn run(command: &mut Command) -> Result<Vec<u8>, String> {
    let name = name(command);
    let output = plain(command).stdin(Stdio::null()).output();
    succeeded(&name, output)
}

/// As [`run`], for a tool that reads `input` to its end.
pub fn feed(command: &mut Command, input: &mut impl Read) -> Result<(), String> {
    let name = name(command);
    let failed = |e: io::Error| format!("{name}: {e}");
    let mut child =
        plain(command).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let mut theirs = child.stdin.take().expect("piped");
    let fed = io::copy(input, &mut theirs);
    drop(theirs);
    // A tool that complains stops reading; its complaint says more than a broken pipe.
    succeeded(&name, child.wait_with_output())?;
    fed.map(|_| ()).map_err(failed)
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn plain(command: &mut Command) -> &mut Command {
    // Times of files are the same in every image of the same packages (https://reproducible-builds.org/specs/source-date-epoch).
    command.env("LC_ALL", "C").env("SOURCE_DATE_EPOCH", "0").env("PATH", path())
}

/// What is installed needs sbin, which is not everybody's.
fn path() -> OsString {
    let mut path = env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

fn succeeded(name: &str, output: io::Result<Output>) -> Result<Vec<u8>, String> {
    let output = output.map_err(|e| format!("{name}: {e}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(format!("{name}: {}", complaint(&String::from_utf8_lossy(&output.stderr))))
}

/// The line that matters.
fn complaint(stderr: &str) -> String {
    let marked = |mark| stderr.lines().find_map(|line: &str| line.strip_prefix(mark));
    let line = marked("E: ").or_else(|| marked("FATAL ERROR: ")).unwrap_or(stderr.trim());
    let mut told: String = line.chars().take(LONGEST).collect();
    if told.len() < line.len() {
        told.push('…');
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_complains_of_is_told_in_a_line() {
        assert_eq!(complaint("W: odd\nE: no such package\nE: failed\n"), "no such package");
        assert_eq!(complaint("FATAL ERROR: nothing to do\n"), "nothing to do");
        assert_eq!(complaint("oh\n"), "oh");
        assert_eq!(complaint(&format!("E: {}", "x".repeat(400))), "x".repeat(LONGEST) + "…");
    }

    #[test]
    fn a_tool_that_stops_reading_is_heard_all_the_same() {
        let refusing = feed(Command::new("sh").args(["-c", "echo E: enough >&2; exit 1"]), &mut io::repeat(0));
        assert_eq!(refusing.unwrap_err(), "sh: enough");
        let missing = run(&mut Command::new("no-such-tool")).unwrap_err();
        assert!(missing.starts_with("no-such-tool: No such file"), "{missing}");
    }
}
