//! `sysbench fileio`: files read and written. Through the page cache, hence a test of memory, unless `direct` is on.

use super::{Limit, NEEDS, Report, THREADS, TIME, command, timed};
use crate::{
    experiment::{Better, Finding},
    factor::Grammar,
    plan::Parameter,
    program::{Outputs, Program, Script, Site, Unfit, Unreadable, Values, metric},
    units::{Bytes, KIB, MIB},
};

/// Its row.
pub static PROGRAM: Program = Program {
    name: "sysbench-fileio",
    about: "files read and written, through the page cache or past it",
    needs: NEEDS,
    parameters: &[
        THREADS,
        TIME,
        Parameter { name: "mode", values: Grammar::Words(MODES), default: "rndrw" },
        Parameter { name: "total_size", values: Grammar::Size(Bytes(MIB)), default: "1G" },
        Parameter { name: "files", values: Grammar::Count(1, 100_000), default: "128" },
        Parameter { name: "block_size", values: Grammar::Size(Bytes(KIB)), default: "16K" },
        Parameter { name: "direct", values: Grammar::Switch, default: "off" },
    ],
    script,
    read,
};

const MODES: &[&str] = &["seqrd", "seqwr", "seqrewr", "rndrd", "rndwr", "rndrw"];

fn script(values: &Values, _: &Site) -> Result<Script, Unfit> {
    let (total, files, block) = (values.size("total_size"), values.count("files"), values.size("block_size"));
    if total.0 / files < block.0 {
        return Err(Unfit(format!(
            "{files} files of {total} together are smaller than a block of {block}: fewer files"
        )));
    }
    let mut options = vec![
        format!("--file-num={files}"),
        format!("--file-total-size={}", total.0),
        format!("--file-block-size={}", block.0),
    ];
    let step = |name: &str, options: &[String]| {
        [&["sysbench".to_owned(), "fileio".to_owned()], options, &[name.to_owned()]].concat()
    };
    let (prepare, cleanup) = (step("prepare", &options), step("cleanup", &options));
    options.push(format!("--file-test-mode={}", values.word("mode")));
    if values.is_on("direct") {
        options.push("--file-extra-flags=direct".to_owned());
    }
    let run = timed(values, command("fileio", values, Limit::Seconds, &options));
    Ok(Script { prepare: vec![prepare], cleanup: vec![cleanup], disk: total, open_files: files + 64, ..run })
}

fn read(values: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    let mut report = Report::read("sysbench fileio", values, outputs.run.stdout)?;
    let text = report.text;
    let flags = text.only("Extra file open flags:")?;
    if flags.rest.contains("direct") != values.is_on("direct") {
        return Err(flags.not_as_asked(if values.is_on("direct") { "direct = on" } else { "direct = off" }));
    }
    text.only(doing(values.word("mode")))?;
    let rates = [
        ("reads/s:", "reads_per_second", "reads/s"),
        ("writes/s:", "writes_per_second", "writes/s"),
        ("read, MiB/s:", "read_mib_per_second", "MiB/s"),
        ("written, MiB/s:", "written_mib_per_second", "MiB/s"),
        ("fsyncs/s:", "fsyncs_per_second", "fsyncs/s"),
    ];
    let mut metrics = Vec::new();
    for (label, name, unit) in rates {
        let line = text.only(label)?;
        // What the mode does not do is 0 and no figure; what it does is not 0.
        if does(values.word("mode"), name) {
            metrics.push(metric(name, line.positive(0, "")?, unit, Better::Higher));
        } else if line.not_negative(0, "")? > 0.0 {
            return Err(line.not_as_asked(format!("mode = {}", values.word("mode"))));
        }
    }
    if !values.is_on("direct") {
        let size = values.size("total_size");
        report.caveats.push(format!(
            "through the page cache: {size} of files that fit it are memory, not disk; direct = on goes past it"
        ));
    }
    Ok(report.finding(metrics))
}

fn does(mode: &str, metric: &str) -> bool {
    let (reads, writes) = (matches!(mode, "seqrd" | "rndrd" | "rndrw"), !matches!(mode, "seqrd" | "rndrd"));
    if metric.starts_with("read") { reads } else { writes }
}

fn doing(mode: &str) -> &'static str {
    match mode {
        "seqrd" => "Doing sequential read test",
        "seqwr" => "Doing sequential write (creation) test",
        "seqrewr" => "Doing sequential rewrite test",
        "rndrd" => "Doing random read test",
        "rndwr" => "Doing random write test",
        _ => "Doing random r/w test",
    }
}
