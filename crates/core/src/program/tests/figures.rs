//! Successes, with exact figures.

use super::{super::*, Recorded, recorded};

/// Metrics as `name value unit`, and caveats.
#[track_caller]
fn check(recorded: Recorded, metrics: &[&str], caveats: &[&str]) {
    let finding = recorded.read().unwrap();
    let got: Vec<String> = finding.metrics.iter().map(|m| format!("{} {} {}", m.name, m.value, m.unit)).collect();
    assert_eq!((got, finding.caveats), (owned(metrics), owned(caveats)));
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn sysbench_cpu_is_read() {
    check(
        recorded!("sysbench-cpu", "sysbench/cpu", threads = "2"),
        &[
            "events_per_second 8766.61 events/s",
            "latency_avg_ms 0.23 ms",
            "latency_max_ms 2.69 ms",
            "latency_p95_ms 0.25 ms",
        ],
        &[],
    );
    check(
        recorded!("sysbench-cpu", "sysbench/cpu-report", max_prime = "20000"),
        &[
            "events_per_second 1590.06 events/s",
            "latency_avg_ms 0.63 ms",
            "latency_max_ms 4.7 ms",
            "latency_p95_ms 0.63 ms",
        ],
        &[],
    );
    check(
        recorded!("sysbench-cpu", "sysbench/cpu-no-percentile"),
        &["events_per_second 3999.4 events/s", "latency_avg_ms 0.25 ms", "latency_max_ms 5.45 ms"],
        &[],
    );
    check(
        recorded!("sysbench-cpu", "sysbench/1.0.11-cpu", max_prime = "20000"),
        &[
            "events_per_second 393.65 events/s",
            "latency_avg_ms 2.54 ms",
            "latency_max_ms 9.25 ms",
            "latency_p95_ms 3.25 ms",
        ],
        &[],
    );
    let german = recorded!("sysbench-cpu", "sysbench/cpu-de").read().unwrap();
    assert_eq!(german.value("events_per_second"), Some(2987.84), "sysbench prints no commas under a German locale");
}

#[test]
fn sysbench_memory_is_read_with_its_traps() {
    let cached = |size: &str| format!("block_size is the working set: {size} stay in the caches of many processors");
    check(
        recorded!(
            "sysbench-memory",
            "sysbench/memory-read",
            block_size = "1M",
            total_size = "2G",
            oper = "read",
            scope = "global"
        ),
        &[
            "mib_per_second 51318.61 MiB/s",
            "blocks_per_second 51318.61 blocks/s",
            "latency_avg_ms 0.02 ms",
            "latency_max_ms 0.15 ms",
            "latency_p95_ms 0.02 ms",
        ],
        &[&cached("1 MiB"), "ended by total_size = 2 GiB, not by its time"],
    );
    check(
        recorded!("sysbench-memory", "sysbench/memory-time", block_size = "1M", scope = "global"),
        &[
            "mib_per_second 30107.44 MiB/s",
            "blocks_per_second 30107.44 blocks/s",
            "latency_avg_ms 0.03 ms",
            "latency_max_ms 4.11 ms",
            "latency_p95_ms 0.03 ms",
        ],
        &[&cached("1 MiB")],
    );
    // Two operations in 0.0008 s are 2,500 a second.
    let short = recorded!(
        "sysbench-memory",
        "sysbench/memory-short",
        block_size = "1M",
        total_size = "2M",
        oper = "read",
        scope = "global"
    );
    let caveats = short.read().unwrap().caveats;
    assert_eq!(
        caveats[0],
        "sysbench's rate is 50 % below its events over its total time of 0.0008 s: the run is too short for it"
    );
    check(
        recorded!("sysbench-memory", "sysbench/1.0.11-memory", block_size = "8K", total_size = "2G", scope = "global"),
        &["mib_per_second 9486.21 MiB/s", "blocks_per_second 1214234.75 blocks/s", "latency_max_ms 4.1 ms"],
        &[&cached("8 KiB"), "ended by total_size = 2 GiB, not by its time"],
    );
}

#[test]
fn the_random_generator_of_sysbench_memory_is_subtracted_on_request() {
    let given = [("threads", "2"), ("block_size", "16M"), ("total_size", "256M"), ("oper", "read"), ("mode", "rnd")];
    let of = |subtract| super::values("sysbench-memory", &[&given[..], &[("subtract_rng", subtract)]].concat());
    let rnd = include_str!("../../../testdata/programs/sysbench/memory-rnd.txt");
    let none = include_str!("../../../testdata/programs/sysbench/memory-none.txt");
    let read = |values: &Values, reference: Option<&str>| {
        let reference = reference.map(|stdout| Outputs::printed(stdout).run);
        (sysbench::memory::PROGRAM.read)(values, &Outputs { reference, ..Outputs::printed(rnd) })
    };
    let raw = read(&of("off"), None).unwrap();
    assert_eq!(raw.metrics[0].value, 452.14);
    assert!(raw.caveats.iter().any(|caveat| caveat.starts_with("random access includes the random generator")));
    let net = read(&of("on"), Some(none)).unwrap();
    // 28.26 blocks/s with memory and 362.66 without: 16 MiB in 1/28.26 - 1/362.66 s.
    let expected: f64 = 16.0 / (1.0 / 28.26 - 1.0 / 362.66);
    assert_eq!(net.metrics[0].name, "mib_per_second_less_rng");
    assert!((net.metrics[0].value - expected).abs() < 1e-9 && (expected - 490.37).abs() < 0.01, "{expected}");
    assert!(net.caveats.iter().any(|caveat| caveat.starts_with("7.8 % of the time was")), "{:?}", net.caveats);
    let absent = read(&of("on"), None).unwrap_err().to_string();
    assert_eq!(absent, "sysbench memory: asked to subtract a run that draws random numbers only, and there was none");
    let same = none.replace("362.66", "28.26");
    let slow = read(&of("on"), Some(&same)).unwrap_err().to_string();
    assert!(slow.starts_with("sysbench memory: drawing random numbers alone is no faster"), "{slow}");
}

#[test]
fn sysbench_fileio_gives_what_its_mode_does() {
    let cached = "through the page cache: 16 MiB of files that fit it are memory, not disk; direct = on goes past it";
    check(
        recorded!("sysbench-fileio", "sysbench/fileio-seqrd", mode = "seqrd", total_size = "16M"),
        &["reads_per_second 502826.64 reads/s", "read_mib_per_second 7856.67 MiB/s", "latency_max_ms 8.06 ms"],
        &[cached],
    );
    check(
        recorded!("sysbench-fileio", "sysbench/fileio-seqwr", mode = "seqwr", total_size = "16M"),
        &[
            "writes_per_second 14714.38 writes/s",
            "written_mib_per_second 229.91 MiB/s",
            "fsyncs_per_second 295.28 fsyncs/s",
            "latency_avg_ms 0.07 ms",
            "latency_max_ms 19.2 ms",
            "latency_p95_ms 0.01 ms",
        ],
        &[cached],
    );
    let direct = recorded!("sysbench-fileio", "sysbench/fileio-direct", mode = "rndrd", direct = "on").read().unwrap();
    assert_eq!(direct.caveats, Vec::<String>::new());
    let old = recorded!("sysbench-fileio", "sysbench/1.0.11-fileio", threads = "2").read().unwrap();
    let rates = ["reads_per_second", "writes_per_second", "fsyncs_per_second", "read_mib_per_second"];
    assert_eq!(rates.map(|name| old.value(name)), [419.84, 279.9, 889.67, 6.56].map(Some));
}

#[test]
fn sysbench_mutex_and_threads_are_read() {
    check(
        recorded!("sysbench-mutex", "sysbench/1.0.11-mutex", threads = "2"),
        &["seconds 0.2955 s", "latency_avg_ms 288.37 ms", "latency_max_ms 290.87 ms", "latency_p95_ms 292.6 ms"],
        &[],
    );
    let threads = recorded!("sysbench-threads", "sysbench/1.0.11-threads", threads = "2").read().unwrap();
    assert_eq!(threads.value("events_per_second"), Some(365_419.0 / 10.0001));
    assert_eq!(threads.evidence["sysbench.version"], "1.0.11");
}

#[test]
fn hackbench_is_read_in_its_three_forms() {
    check(recorded!("hackbench", "hackbench/process", groups = "2"), &["seconds 0.386 s"], &[]);
    check(recorded!("hackbench", "hackbench/threads", groups = "2", tasks = "threads"), &["seconds 0.378 s"], &[]);
    check(recorded!("hackbench", "hackbench/pipe", groups = "2", pipe = "on"), &["seconds 0.128 s"], &[]);
    check(recorded!("hackbench", "hackbench/old", groups = "15", form = "old"), &["seconds 6.578 s"], &[]);
    check(recorded!("perf-messaging", "perf-messaging/process", groups = "2"), &["seconds 0.428 s"], &[]);
    check(
        recorded!("perf-messaging", "perf-messaging/threads-pipe", groups = "2", tasks = "threads", pipe = "on"),
        &["seconds 0.136 s"],
        &[],
    );
}

#[test]
fn netperf_is_read_as_table_and_by_key() {
    check(recorded!("netperf", "netperf/stream"), &["mbit_per_second 9036.28 Mbit/s"], &[]);
    check(recorded!("netperf", "netperf/manual-stream"), &["mbit_per_second 25375.66 Mbit/s"], &[]);
    check(
        recorded!("netperf", "netperf/manual-rr", test = "tcp_rr"),
        &["transactions_per_second 29150.15 trans/s"],
        &[],
    );
    check(recorded!("netperf", "netperf/demo"), &["mbit_per_second 15745.77 Mbit/s"], &[]);
    check(recorded!("netperf", "netperf/stream-keys"), &["mbit_per_second 11758.19 Mbit/s"], &[]);
    check(recorded!("netperf", "netperf/rr", test = "tcp_rr"), &["transactions_per_second 50103.93 trans/s"], &[]);
    check(
        recorded!("netperf", "netperf/no-headers", test = "tcp_rr"),
        &["transactions_per_second 73410.45 trans/s"],
        &[],
    );
    check(
        recorded!("netperf", "netperf/rr-keys", test = "tcp_rr"),
        &["transactions_per_second 51109.43 trans/s", "latency_avg_us 19.52 us", "latency_p99_us 44 us"],
        &[],
    );
}

#[test]
fn a_confidence_that_netperf_missed_is_said() {
    let missed = |width| {
        format!("netperf did not reach the confidence asked for: the interval of its throughput is {width} % wide")
    };
    let table = recorded!("netperf", "netperf/stream-confidence", confidence = "on");
    check(table, &["mbit_per_second 16834.67 Mbit/s"], &[&missed("142.252")]);
    check(
        recorded!("netperf", "netperf/rr-confidence-keys", test = "tcp_rr", confidence = "on"),
        &["transactions_per_second 69075.68 trans/s", "latency_avg_us 14.43 us", "latency_p99_us 19 us"],
        &[&missed("70.636")],
    );
}

#[test]
fn iperf3_and_sockperf_are_read() {
    check(recorded!("iperf3", "iperf3/stream", seconds = "1"), &["mbit_per_second 21192.436738141532 Mbit/s"], &[]);
    check(
        recorded!("iperf3", "iperf3/reverse", seconds = "1", reverse = "on", streams = "2"),
        &["mbit_per_second 17447.348217226325 Mbit/s"],
        &[],
    );
    check(
        recorded!("sockperf", "sockperf/ping-pong"),
        &[
            "latency_avg_us 9.964 us",
            "latency_p50_us 6.81 us",
            "latency_p99_us 10.275 us",
            "latency_p99_9_us 1497.089 us",
        ],
        &[],
    );
}

#[test]
fn ab_is_read_when_every_request_succeeded() {
    check(
        recorded!("ab", "ab/plain", requests = "200", concurrency = "4"),
        &["requests_per_second 554.91 requests/s", "request_ms 7.208 ms"],
        &[],
    );
    check(
        recorded!("ab", "ab/quiet-keepalive", requests = "200", concurrency = "2", keep_alive = "on"),
        &["requests_per_second 1512.58 requests/s", "request_ms 1.322 ms"],
        &["the server kept no connection alive: every request opened one"],
    );
}

#[test]
fn lines_that_a_later_ab_adds_are_no_obstacle() {
    let recorded = recorded!("ab", "ab/plain", requests = "200", concurrency = "4");
    let later = recorded
        .stdout
        .replace("Complete requests:", "Number of workers:      2\nRampup delay:           0\nComplete requests:");
    assert_eq!(recorded.read_as(&later), recorded.read());
    let doubtful = "WARNING: The median and mean for the total time are not within a normal deviation\nPercentage of";
    let finding = recorded.read_as(&recorded.stdout.replace("Percentage of", doubtful)).unwrap();
    assert_eq!(finding.caveats, ["ab finds median and mean of its times too far apart: they are not reliable"]);
}

#[test]
fn stress_ng_is_read_also_beside_other_stressors() {
    let caveat = &["bogus operations compare only with the same stressor of the same version"];
    check(recorded!("stress-ng", "stress-ng/vm"), &["bogo_ops_per_second 37740.84 ops/s"], caveat);
    check(
        recorded!("stress-ng", "stress-ng/metrics", stressor = "cpu"),
        &["bogo_ops_per_second 1759.95 ops/s"],
        caveat,
    );
    check(
        recorded!("stress-ng", "stress-ng/two", stressor = "switch"),
        &["bogo_ops_per_second 67440.42 ops/s"],
        caveat,
    );
    check(recorded!("stress-ng", "stress-ng/vm-de"), &["bogo_ops_per_second 18668.54 ops/s"], caveat);
}

#[test]
fn unixbench_leads_with_its_index() {
    let finding = recorded!("unixbench", "unixbench/ept-on").read().unwrap();
    assert_eq!(format!("{:.1}", finding.metrics[0].value), "1146.3");
    assert_eq!((finding.metrics.len(), finding.value("syscall_lps")), (13, Some(968_740.3)));
}

#[test]
fn versions_are_read_where_programs_tell_them() {
    let check = |program: &str, answer: &str, expected: Option<&str>| {
        assert_eq!(Program::named(program).unwrap().needs.read_version(answer).as_deref(), expected, "{program}");
    };
    check("sysbench-cpu", include_str!("../../../testdata/programs/sysbench/version.txt"), Some("1.0.20"));
    check("hackbench", include_str!("../../../testdata/programs/hackbench/version.txt"), Some("2.40"));
    check("perf-messaging", include_str!("../../../testdata/programs/perf-messaging/version.txt"), Some("6.1.192"));
    check("netperf", include_str!("../../../testdata/programs/netperf/version.txt"), Some("2.7.0"));
    check("iperf3", include_str!("../../../testdata/programs/iperf3/version.txt"), Some("3.12"));
    check("sockperf", include_str!("../../../testdata/programs/sockperf/version.txt"), Some("3.7-no.git"));
    check("ab", include_str!("../../../testdata/programs/ab/version.txt"), Some("2.3"));
    check("stress-ng", include_str!("../../../testdata/programs/stress-ng/version.txt"), Some("0.15.06"));
    check("kernbench", "GNU Make 4.3\nBuilt for x86_64-pc-linux-gnu\n", Some("4.3"));
    check("unixbench", "This is perl 5, version 36, subversion 0 (v5.36.0) built for x86_64\n", Some("5.36.0"));
    check("sysbench-cpu", "sysbench: command not found\n", None);
}
