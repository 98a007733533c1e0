//! `sysbench memory`: blocks of memory read or written, in order or at random.
//!
//! Three traps. Its working set is `block_size`, never `total_size`: every block is the same buffer again (one for all
//! threads, or with scope `local` one each). In mode `rnd` it draws a random number for every 8 bytes, a third of its time
//! with small blocks: `subtract_rng` takes off a run that only draws. And `hugetlb` asks `shmget` for odd sizes ([`asked`]).

use super::{Limit, NEEDS, Report, THREADS, TIME, command, timed};
use crate::{
    experiment::{Better, Finding, Metric},
    factor::Grammar,
    plan::Parameter,
    program::{Huge, Outputs, Program, Script, Site, Unfit, Unreadable, Values, metric, text::number},
    units::{Bytes, KIB, MIB},
};

/// Its row.
pub static PROGRAM: Program = Program {
    name: "sysbench-memory",
    about: "a buffer of block_size read or written again and again",
    needs: NEEDS,
    parameters: &[
        THREADS,
        TIME,
        Parameter { name: "block_size", values: Grammar::Size(Bytes(8)), default: "64M" },
        Parameter { name: "total_size", values: Grammar::Size(Bytes(0)), default: "0" },
        Parameter { name: "oper", values: Grammar::Words(&["read", "write", "none"]), default: "write" },
        Parameter { name: "mode", values: Grammar::Words(&["seq", "rnd"]), default: "seq" },
        Parameter { name: "scope", values: Grammar::Words(&["global", "local"]), default: "local" },
        Parameter { name: "hugetlb", values: Grammar::Switch, default: "off" },
        Parameter { name: "subtract_rng", values: Grammar::Switch, default: "off" },
    ],
    script,
    read,
};

/// Blocks up to this size stay in the caches of many processors.
const CACHED: u64 = 64 * MIB;

/// What `--memory-hugetlb` asks `shmget` for, for each buffer of `block` bytes: sysbench 1.0.20 rounds with the bit of
/// 4 MiB where a mask was meant (`sb_memory.c`, line 485). Seen with strace.
pub fn asked(block: Bytes) -> Bytes {
    const LARGE_PAGE: u64 = 4 * MIB;
    Bytes(((block.0.saturating_sub(1)) & !LARGE_PAGE).saturating_add(LARGE_PAGE))
}

fn script(values: &Values, _: &Site) -> Result<Script, Unfit> {
    let block = values.size("block_size");
    if !block.0.is_power_of_two() {
        return Err(Unfit(format!("`block_size` cannot be {block}: sysbench takes powers of two, such as 2M")));
    }
    let is_random = values.word("mode") == "rnd";
    if values.is_on("subtract_rng") && (!is_random || values.word("oper") == "none") {
        return Err(Unfit("`subtract_rng` is for mode = \"rnd\" with reads or writes: others draw nothing".to_owned()));
    }
    let with = |oper: &str| {
        let mut options = vec![
            format!("--memory-block-size={}", block.0),
            format!("--memory-total-size={}", values.size("total_size").0),
            format!("--memory-oper={oper}"),
            format!("--memory-access-mode={}", values.word("mode")),
            format!("--memory-scope={}", values.word("scope")),
        ];
        if values.is_on("hugetlb") {
            options.push("--memory-hugetlb=on".to_owned());
        }
        command("memory", values, Limit::Seconds, &options)
    };
    let huge = values.is_on("hugetlb").then(|| Huge { buffers: buffers(values), bytes: asked(block) });
    let reference = values.is_on("subtract_rng").then(|| with("none"));
    Ok(Script { reference, huge, ..timed(values, with(values.word("oper"))) })
}

fn buffers(values: &Values) -> u64 {
    if values.word("scope") == "local" { values.count(THREADS.name) } else { 1 }
}

fn read(values: &Values, outputs: &Outputs) -> Result<Finding, Unreadable> {
    let (mut report, rate) = blocks(values, values.word("oper"), outputs.run.stdout)?;
    report.check_rate(rate, 1.0);
    let mut metrics = rates(&report, values, rate)?;
    if values.is_on("subtract_rng") {
        let net = net(values, outputs, rate, &mut report)?;
        metrics.insert(0, net);
    }
    let set = Bytes(values.size("block_size").0.saturating_mul(buffers(values)));
    report.evidence.insert("sysbench.working_set".to_owned(), set.to_string());
    report.caveats.extend(caveats(values, report.events));
    Ok(report.finding(metrics))
}

/// The report of a run that did `oper`, and its blocks a second.
fn blocks<'t>(values: &Values, oper: &str, stdout: &'t str) -> Result<(Report<'t>, f64), Unreadable> {
    let report = Report::read("sysbench memory", values, stdout)?;
    let block = values.size("block_size");
    let said = [
        // It prints whole KiB.
        ("block size:", format!("{}KiB", block.0 / KIB)),
        ("operation:", oper.to_owned()),
        ("scope:", values.word("scope").to_owned()),
    ];
    for (label, asked) in said {
        let line = report.text.only(label)?;
        if line.rest != asked {
            return Err(line.not_as_asked(format!("{label} {asked}")));
        }
    }
    let line = report.text.only("Total operations:")?;
    let rate = line.rest.split_once('(').and_then(|(_, rest)| rest.trim().strip_suffix("per second)"));
    let rate = rate.and_then(|rate| number(rate.trim())).filter(|rate| *rate > 0.0);
    let rate = rate.ok_or_else(|| line.otherwise("`N (RATE per second)` with a rate above 0"))?;
    Ok((report, rate))
}

fn rates(report: &Report, values: &Values, rate: f64) -> Result<Vec<Metric>, Unreadable> {
    let blocks = metric("blocks_per_second", rate, "blocks/s", Better::Higher);
    if values.word("oper") == "none" {
        return Ok(vec![blocks]);
    }
    let line = report
        .text
        .lines()
        .find(|line| line.text.contains(" MiB transferred ("))
        .ok_or_else(|| report.text.missing("`MiB transferred`"))?;
    let rate = line.text.split_once('(').and_then(|(_, rest)| number(rest.strip_suffix("MiB/sec)")?.trim()));
    let rate = rate.filter(|rate| *rate > 0.0).ok_or_else(|| line.otherwise("`(RATE MiB/sec)` with a rate above 0"))?;
    Ok(vec![metric("mib_per_second", rate, "MiB/s", Better::Higher), blocks])
}

/// The rate of memory alone: the time of a block less that of its random numbers.
fn net(values: &Values, outputs: &Outputs, rate: f64, report: &mut Report) -> Result<Metric, Unreadable> {
    let program = report.program;
    let reference = outputs.reference.ok_or_else(|| {
        let contradiction = "asked to subtract a run that draws random numbers only, and there was none".to_owned();
        Unreadable::Contradiction { program, contradiction }
    })?;
    let (_, drawing) = blocks(values, "none", reference.stdout)?;
    let share = rate / drawing;
    if share >= 1.0 {
        let contradiction = format!(
            "drawing random numbers alone is no faster ({drawing} blocks/s) than with memory ({rate} blocks/s): longer runs"
        );
        return Err(Unreadable::Contradiction { program, contradiction });
    }
    report.caveats.push(format!(
        "{:.1} % of the time was sysbench's random generator and and is subtracted, as if none of it had run beside the loads",
        share * 100.0
    ));
    let mib = values.size("block_size").0 as f64 / MIB as f64;
    Ok(metric("mib_per_second_less_rng", mib * rate / (1.0 - share), "MiB/s", Better::Higher))
}

fn caveats(values: &Values, events: f64) -> Vec<String> {
    let mut caveats = Vec::new();
    let (block, total) = (values.size("block_size"), values.size("total_size"));
    if block.0 < CACHED {
        caveats.push(format!("block_size is the working set: {block} stay in the caches of many processors"));
    }
    if values.word("scope") == "global" && values.count(THREADS.name) > 1 {
        caveats.push(format!("all threads share one buffer of {block}; scope = \"local\" gives each its own"));
    }
    if values.word("mode") == "rnd" && values.word("oper") != "none" && !values.is_on("subtract_rng") {
        caveats.push(
            "random access includes the random generator, a draw for 8 bytes; subtract_rng = true takes it off"
                .to_owned(),
        );
    }
    if total.0 > 0 && events * block.0 as f64 >= total.0 as f64 {
        caveats.push(format!("ended by total_size = {total}, not by its time"));
    }
    caveats
}
