//! What goes into a sandbox with a command, and what comes out with it.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::{guest::Guest, output, store::Store};

/// Where a command in a sandbox keeps its results, unless it says otherwise.
pub const STATE: &str = "/root/.local/state";

/// Bytes of a file that is sent along at most: plans are small, and a kernel image that is named is not meant to be read.
const LARGEST: u64 = 32 << 20;

/// The files of a command, under the same names on both sides.
#[derive(Debug)]
pub struct Luggage {
    directory: String,
    files: Vec<PathBuf>,
    results: Results,
}

/// The results file.
#[derive(Debug)]
struct Results {
    here: PathBuf,
    there: String,
    /// Whether the command reads runs that were kept before.
    is_read: bool,
}

impl Luggage {
    /// What belongs to a command that is typed here.
    pub fn of(command: &[String]) -> anyhow::Result<Luggage> {
        let directory = env::current_dir().context("cannot tell the current directory")?;
        let results = Results::of(command, &directory)?;
        let is_sent = |path: &PathBuf| {
            *path != results.here && path.metadata().is_ok_and(|at| at.is_file() && at.len() <= LARGEST)
        };
        let files = values(command).map(|value| directory.join(value)).filter(is_sent).collect();
        let directory = directory.to_str().context("the current directory's name is no text")?.to_owned();
        Ok(Luggage { directory, files, results })
    }

    /// Where the command is run.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// Sends it.
    pub fn send(&self, guest: &mut Guest) -> anyhow::Result<()> {
        for path in &self.files {
            let name = path.to_str().with_context(|| format!("the name of {} is no text", path.display()))?;
            let contents = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            guest.send(name, &contents)?;
        }
        if self.results.is_read && self.results.here.exists() {
            let copy = tempfile::NamedTempFile::new().context("cannot make a temporary file")?;
            Store::open_to_read(&self.results.here)?.copy_all(copy.path())?;
            guest.send(&self.results.there, &fs::read(copy.path())?)?;
        }
        Ok(())
    }

    /// Fetches the runs that were kept, and adds them to the results file here.
    pub fn fetch(&self, guest: &mut Guest) -> anyhow::Result<()> {
        let contents = guest.fetch(&self.results.there)?;
        if contents.is_empty() {
            return Ok(());
        }
        let copy = tempfile::NamedTempFile::new().context("cannot make a temporary file")?;
        fs::write(copy.path(), contents).context("cannot keep the results of the sandbox")?;
        for run in Store::open(&self.results.here)?.adopt(copy.path())? {
            output::note(format!("Run {run} of the sandbox is kept in {}.", self.results.here.display()));
        }
        Ok(())
    }
}

impl Results {
    fn of(command: &[String], directory: &Path) -> anyhow::Result<Results> {
        let words = || command.iter().map(String::as_str);
        let after = words().skip_while(|word| *word != "--db").nth(1);
        let named = after.or_else(|| words().find_map(|word| word.strip_prefix("--db=")));
        let is_read = words().any(|word| ["show", "compare", "export", "--resume"].contains(&word));
        Ok(match named {
            Some(file) => {
                let here = directory.join(file);
                let there = here.to_str().context("the name of the results file is no text")?.to_owned();
                Results { here, there, is_read }
            }
            None => Results { here: Store::default_path()?, there: format!("{STATE}/vmtax/results.db"), is_read },
        })
    }
}

/// Words that may name a file: `plan.toml`, `--output=file`.
fn values(command: &[String]) -> impl Iterator<Item = &str> {
    command.iter().map(|word| word.split_once('=').filter(|_| word.starts_with("--")).map_or(&**word, |(_, v)| v))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_takes_the_files_it_names_and_its_results_file_along() {
        let command = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let check = |text: &str, files: &[&str], there: &str, is_read: bool| {
            let luggage = Luggage::of(&command(text)).unwrap();
            let names: Vec<_> = luggage.files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
            assert_eq!(names, files, "{text}");
            assert!(luggage.results.there.ends_with(there), "{:?}", luggage.results);
            assert_eq!(luggage.results.is_read, is_read, "{text}");
        };
        // Tests run in the directory of their crate.
        check("run Cargo.toml --reserve", &["Cargo.toml"], "/root/.local/state/vmtax/results.db", false);
        check("run --resume x --db=a/b.db", &[], "/a/b.db", true);
        check("show --db here.db", &[], "/here.db", true);
        check("matrix --json", &[], "results.db", false);
    }
}
