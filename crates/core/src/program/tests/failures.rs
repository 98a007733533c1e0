//! What cannot be used is answered with the line that says why.

use super::{Recorded, recorded};

#[track_caller]
fn refuse(recorded: Recorded, expected: &str) {
    assert_eq!(recorded.read().unwrap_err().to_string(), expected);
}

#[test]
fn what_a_program_says_of_its_failure_is_passed_on() {
    refuse(
        recorded!("sysbench-memory", "sysbench/memory-hugetlb-none", hugetlb = "on"),
        "sysbench memory failed: `FATAL: Failed to allocate 4195327 bytes from HugeTLB memory. errno = 1 (Operation not \
         permitted)`; reserve pages for every buffer, and join the group in vm.hugetlb_shm_group",
    );
    refuse(
        recorded!("sysbench-memory", "sysbench/memory-bad-block"),
        "sysbench memory failed: `FATAL: Invalid value for memory-block-size: 3`; block_size is a power of two",
    );
    refuse(
        recorded!("sysbench-fileio", "sysbench/fileio-unprepared"),
        "sysbench fileio failed: `FATAL: Cannot open file 'test_file.0' errno = 2 (No such file or directory)`; prepare \
         the files first, in the directory of the run",
    );
    let files = include_str!("../../../testdata/programs/hackbench/no-files.err");
    refuse(
        Recorded { stderr: files, ..recorded!("hackbench", "hackbench/no-files", tasks = "threads") },
        "hackbench failed: `Creating fdpair (error: Too many open files)`; fewer groups, or a higher ulimit -n",
    );
    refuse(
        recorded!("iperf3", "iperf3/refused"),
        "iperf3 failed: `unable to connect to server: Connection refused`; is iperf3 -s running there, and the port open?",
    );
    refuse(
        recorded!("sockperf", "sockperf/refused"),
        "sockperf failed: `sockperf: ERROR: Can`t connect socket (errno=111 Connection refused)`; is sockperf server \
         --tcp running there, and the port open?",
    );
    refuse(
        recorded!("netperf", "netperf/refused"),
        "netperf failed: `establish control: are you sure there is a netserver listening on 127.0.0.1 at port 12999?`; is \
         netserver running there, and the port open?",
    );
    let refused = include_str!("../../../testdata/programs/ab/refused.err");
    refuse(
        Recorded { stderr: refused, ..recorded!("ab", "ab/refused", requests = "10") },
        "ab failed: `apr_socket_recv: Connection refused (111)`; is the web server running there, and the port open?",
    );
}

#[test]
fn a_rate_that_counts_failed_requests_is_no_rate() {
    refuse(
        recorded!("ab", "ab/failed", requests = "200", concurrency = "2"),
        "ab failed: `Failed requests:        160`; a page of one fixed length, and a server that can take so many at once",
    );
    refuse(
        recorded!("ab", "ab/missing", requests = "50", concurrency = "2"),
        "ab failed: `Non-2xx responses:      50`; the server must have /index.html",
    );
}

#[test]
fn a_run_that_was_not_as_asked_is_no_trial() {
    refuse(
        recorded!("sysbench-cpu", "sysbench/cpu"),
        "sysbench cpu ran with another setting: asked for 1 threads, it says `Number of threads: 2`",
    );
    refuse(
        recorded!("sysbench-memory", "sysbench/memory-read", block_size = "2M", oper = "read", scope = "global"),
        "sysbench memory ran with another setting: asked for block size: 2048KiB, it says `block size: 1024KiB`",
    );
    refuse(
        recorded!("sysbench-fileio", "sysbench/fileio-direct", mode = "rndrd"),
        "sysbench fileio ran with another setting: asked for direct = off, it says `Extra file open flags: directio`",
    );
    refuse(
        recorded!("hackbench", "hackbench/process", groups = "4"),
        "hackbench ran with another setting: asked for in process mode with 4 groups using 40 file descriptors each (== \
         160 tasks), it says `Running in process mode with 2 groups using 40 file descriptors each (== 80 tasks)`",
    );
    refuse(
        recorded!("perf-messaging", "perf-messaging/process", groups = "2", tasks = "threads"),
        "perf bench sched messaging ran with another setting: asked for # 2 groups == 80 threads run, it says `# 2 groups \
         == 80 processes run`",
    );
    refuse(
        recorded!("iperf3", "iperf3/stream"),
        "iperf3 ran with another setting: asked for /start/test_start/duration = 10, it says `1`",
    );
    refuse(
        recorded!("unixbench", "unixbench/ept-on", copies = "20"),
        "UnixBench ran with another setting: asked for 20 copies; versions before 6.0 run 16 at most, it says `running 1 \
         parallel copies of tests`",
    );
}

#[test]
fn other_forms_and_other_programs_are_refused() {
    refuse(
        recorded!("sysbench-memory", "sysbench/0.4-memory", block_size = "1K"),
        "sysbench memory: expected sysbench 1.0 or later, since older ones measure otherwise in line 1, found `sysbench \
         0.4.12:  multi-threaded system evaluation benchmark`",
    );
    refuse(
        recorded!("perf-messaging", "perf-messaging/simple"),
        "perf bench sched messaging: no complete line with `# Running 'sched/messaging' benchmark:`; the output ends with \
         `0.437`",
    );
    refuse(
        recorded!("iperf3", "iperf3/text"),
        "iperf3: expected JSON (expected value at line 1 column 1) in line 1, found `Connecting to host 127.0.0.1, port \
         15201`",
    );
    refuse(
        recorded!("netperf", "netperf/rr"),
        "netperf ran with another setting: asked for TCP STREAM TEST, it says `MIGRATED TCP REQUEST/RESPONSE TEST from \
         0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.1 () port 0 AF_I…`",
    );
    refuse(
        recorded!("stress-ng", "stress-ng/vm", stressor = "fork"),
        "stress-ng: no complete line with the metrics of `fork`; the output ends with `stress-ng: info:  [27169] \
         successful run completed in 1.00s`",
    );
    refuse(
        recorded!("sockperf", "sockperf/throughput"),
        "sockperf: no complete line with `sockperf: Summary: Latency is`; the output ends with `sockperf: Summary: \
         BandWidth is 5.928 MBps (47.427 Mbps)`",
    );
}

#[test]
fn a_figure_of_zero_or_with_a_comma_is_shown_not_used() {
    let cpu = recorded!("sysbench-cpu", "sysbench/cpu", threads = "2");
    for (figure, expected) in
        [("0.00", "a number above 0"), ("8766,61", "a number"), ("nan", "a number"), ("", "a number")]
    {
        let error = cpu.read_as(&cpu.stdout.replace("8766.61", figure)).unwrap_err().to_string();
        let line = format!("events per second:  {figure}");
        assert_eq!(error, format!("sysbench cpu: expected {expected} in line 15, found `{}`", line.trim()));
    }
}
