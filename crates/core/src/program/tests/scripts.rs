//! What is run, in words.

use super::{super::*, values};
use crate::{
    factor::{Grammar, Level},
    units::{Bytes, GIB, KIB, MIB, PageSize},
};

fn site() -> Site {
    let tree = Some("/src/linux".to_owned());
    Site { directory: "/tmp/run".to_owned(), host: "10.0.2.15".to_owned(), port: 5201, tree }
}

fn script(program: &str, given: &[(&str, &str)]) -> Script {
    (Program::named(program).unwrap().script)(&values(program, given), &site()).unwrap()
}

#[track_caller]
fn run(program: &str, given: &[(&str, &str)], expected: &str) {
    assert_eq!(script(program, given).run.join(" "), expected);
}

#[test]
fn commands_follow_from_parameters() {
    let sysbench =
        |test: &str, rest: &str| format!("sysbench {test} --threads=1 --time=10 --events=0 --rand-seed=1 {rest} run");
    run("sysbench-cpu", &[("max_prime", "20000")], &sysbench("cpu", "--cpu-max-prime=20000"));
    run(
        "sysbench-threads",
        &[("yields", "100"), ("locks", "4")],
        &sysbench("threads", "--thread-yields=100 --thread-locks=4"),
    );
    run(
        "sysbench-mutex",
        &[("threads", "2")],
        "sysbench mutex --threads=2 --time=0 --events=0 --rand-seed=1 --mutex-num=4096 --mutex-locks=50000 \
         --mutex-loops=10000 run",
    );
    run(
        "sysbench-memory",
        &[("block_size", "2M"), ("mode", "rnd"), ("hugetlb", "on")],
        &sysbench(
            "memory",
            "--memory-block-size=2097152 --memory-total-size=0 --memory-oper=write --memory-access-mode=rnd \
             --memory-scope=local --memory-hugetlb=on",
        ),
    );
    run("hackbench", &[("groups", "50"), ("loops", "50"), ("form", "old")], "hackbench 50 process 50");
    run("hackbench", &[("pipe", "on"), ("tasks", "threads")], "hackbench -g 10 -l 100 -s 100 -T -p");
    run("perf-messaging", &[("tasks", "threads")], "perf bench sched messaging -t -g 10 -l 100");
    run("kernbench", &[("jobs", "8"), ("target", "vmlinux")], "make -s -C /src/linux O=/tmp/run -j8 vmlinux");
    run(
        "netperf",
        &[("test", "tcp_rr")],
        "netperf -H 10.0.2.15 -p 5201 -t TCP_RR -l 10 -j -- -r 1,1 -k \
         THROUGHPUT,THROUGHPUT_UNITS,MEAN_LATENCY,P99_LATENCY,CONFIDENCE_ITERATION,THROUGHPUT_CONFID,ELAPSED_TIME",
    );
    run("iperf3", &[("reverse", "on")], "iperf3 -c 10.0.2.15 -4 -p 5201 -t 10 -P 1 -R -J");
    run("sockperf", &[], "sockperf ping-pong --tcp -i 10.0.2.15 -p 5201 -t 10 --msg-size 14");
    run("ab", &[], "ab -q -n 100000 -c 100 http://10.0.2.15:5201/index.html");
    run("unixbench", &[], "env UB_TMPDIR=/tmp/run UB_RESULTDIR=/tmp/run /src/linux/Run -c 1 -i 10 index");
    run("stress-ng", &[], "stress-ng --vm 1 --vm-bytes 268435456 --timeout 10s --metrics-brief");
}

#[test]
fn fileio_prepares_its_files_and_removes_them() {
    let script = script("sysbench-fileio", &[("total_size", "16M"), ("files", "2"), ("direct", "on")]);
    let files = "--file-num=2 --file-total-size=16777216 --file-block-size=16384";
    assert_eq!(script.prepare[0].join(" "), format!("sysbench fileio {files} prepare"));
    assert_eq!(script.cleanup[0].join(" "), format!("sysbench fileio {files} cleanup"));
    assert!(script.run.join(" ").ends_with(&format!("{files} --file-test-mode=rndrw --file-extra-flags=direct run")));
    assert_eq!(script.disk, Bytes(16 * MIB));
}

#[test]
fn huge_pages_for_sysbench_are_those_that_it_asks_for() {
    // Seen with strace on sysbench 1.0.20: what shmget was asked for, and the pages of 2 MiB which that takes.
    let check = |block: u64, bytes: u64, pages: u64| {
        let huge = Huge { buffers: 1, bytes: sysbench::memory::asked(Bytes(block)) };
        assert_eq!((huge.bytes.0, huge.pages(PageSize::Large)), (bytes, pages), "{}", Bytes(block));
    };
    check(KIB, 4_195_327, 3);
    check(4 * KIB, 4_198_399, 3);
    check(MIB, 5_242_879, 3);
    check(2 * MIB, 6_291_455, 3);
    check(4 * MIB, 8_388_607, 4);
    check(8 * MIB, 8_388_607, 4);
    check(16 * MIB, 16_777_215, 8);
    check(GIB, GIB - 1, 512);
    let script = script("sysbench-memory", &[("hugetlb", "on"), ("threads", "4"), ("block_size", "2M")]);
    assert_eq!(script.huge.unwrap().pages(PageSize::Large), 12);
    assert_eq!(script.huge.unwrap().pages(PageSize::Giant), 4);
}

#[test]
fn what_cannot_be_run_says_what_to_write() {
    let check = |program: &str, given: &[(&str, &str)], expected: &str| {
        let site = Site { tree: None, ..site() };
        let row = Program::named(program).unwrap();
        assert_eq!((row.script)(&values(program, given), &site).unwrap_err().to_string(), expected);
    };
    check(
        "sysbench-memory",
        &[("block_size", "3K")],
        "`block_size` cannot be 3 KiB: sysbench takes powers of two, such as 2M",
    );
    check(
        "sysbench-memory",
        &[("subtract_rng", "on")],
        "`subtract_rng` is for mode = \"rnd\" with reads or writes: others draw nothing",
    );
    check("ab", &[("requests", "10")], "100 requests at once of 10 in all: more requests");
    check(
        "sysbench-fileio",
        &[("total_size", "1M")],
        "128 files of 1 MiB together are smaller than a block of 16 KiB: fewer files",
    );
    check(
        "kernbench",
        &[],
        "kernbench builds a kernel and was given no tree; apt-get install linux-source, and unpack it",
    );
}

#[test]
fn parameters_are_taken_as_they_are_or_refused_with_the_accepted_form() {
    let ab = Program::named("ab").unwrap();
    let refusal = |given: &[(&str, Level)]| Values::new(ab, given).unwrap_err().to_string();
    assert_eq!(refusal(&[("urls", Level::Count(1))]), "ab has no `urls`, but: requests, concurrency, keep_alive");
    assert_eq!(
        refusal(&[("concurrency", Level::Count(0))]),
        "`concurrency` cannot be 0: a whole number from 1 to 20000"
    );
}

#[test]
fn every_row_is_complete_and_every_script_can_be_made_of_every_word() {
    for (at, program) in PROGRAMS.iter().enumerate() {
        assert!(PROGRAMS[..at].iter().all(|other| other.name != program.name), "{}", program.name);
        assert!(!program.about.is_empty() && !program.needs.remedy().is_empty(), "{}", program.name);
        for parameter in program.parameters {
            let words: &[&str] = match parameter.values {
                Grammar::Words(words) => words,
                Grammar::Switch => &["on", "off"],
                Grammar::Size(_) | Grammar::Count(..) | Grammar::Share(_) | Grammar::Text => &[parameter.default],
            };
            for word in words {
                let set = values(program.name, &[(parameter.name, word)]);
                match (program.script)(&set, &site()) {
                    Ok(script) => {
                        let commands = script.prepare.iter().chain(&script.cleanup).chain([&script.run]);
                        assert!(commands.flatten().all(|word| !word.is_empty()), "{script:?}");
                    }
                    Err(unfit) => assert_eq!(parameter.name, "subtract_rng", "{unfit}"),
                }
            }
        }
    }
}
