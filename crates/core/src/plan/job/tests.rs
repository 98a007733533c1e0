use super::*;
use crate::{
    plan::Plan,
    units::{KIB, MIB},
};

fn plan(text: &str) -> Plan {
    Plan::parse("plan.toml", text).unwrap()
}

fn job(text: &str) -> Job {
    let plan = plan(text);
    plan.job(&plan.cells()[0]).unwrap()
}

#[test]
fn a_cell_is_a_probe_on_memory_in_a_venue() {
    let plan = plan(
        "[factors]\nvenue = [\"native\", \"microvm\"]\nguest = [\"2m\"]\nhost = [\"thp\"]\n\
         [[workload]]\nprobe = \"random\"\nsize = \"64M\"\nvcpus = 2\n[baseline]\nvenue = \"native\"\n",
    );
    let jobs: Vec<Job> = plan.cells().iter().map(|cell| plan.job(cell).unwrap()).collect();
    let native = Setting::native(Backing::Thp);
    let guest = Setting::microvm(PageSize::Large, Backing::Thp);
    let (size, stride) = (Bytes(64 * MIB), Bytes(4 * KIB));
    let job = |setting| Job::Probe(Sweep { probe: Probe::Random, setting, size, stride, vcpus: 2 });
    assert_eq!(jobs, [native, guest, native].map(job));
}

#[test]
fn every_kind_is_a_job_with_its_defaults() {
    for kind in super::super::KINDS {
        let job = job(&format!("[[workload]]\nprobe = \"{}\"\n", kind.name));
        assert!(job.expected_seconds() > 0.0, "{job:?}");
        assert!(job.layout().is_ok(), "{job:?}");
        let is_on_memory = kind.ground == super::super::Ground::Memory;
        assert_eq!((job.setting().is_some(), job.memory().0 > 0), (is_on_memory, is_on_memory), "{job:?}");
    }
}

#[test]
fn parameters_of_a_job_are_those_of_the_plan() {
    let reserve =
        "[[workload]]\nprobe = \"reserve\"\npage = \"1g\"\npages = 3\nrounds = 2\ncompact = true\nkept = \"1.5%\"\n";
    let expected =
        Reserve { page: PageSize::Giant, pages: 3, rounds: 2, compact: Compact::Before, stress: 0.5, kept: 0.015 };
    assert_eq!(job(reserve), Job::Reserve(expected));
    let Job::Touch(touch) = job("[[workload]]\nprobe = \"touch\"\npopulate = true\nsize = \"64M\"\n") else { panic!() };
    assert_eq!((touch.populated, touch.size), (Populated::Before, Bytes(64 * MIB)));
}

#[test]
fn a_walk_makes_every_pass_unless_the_plan_limits_its_references() {
    let walk = |rest: &str| {
        let text = format!("[[workload]]\nprobe = \"walk\"\nsize = \"128M\"\npasses = 64\n{rest}");
        let Job::Walk(walk) = job(&text) else { panic!() };
        walk
    };
    assert_eq!(walk("stride = 4\n").passes_made(), 64);
    assert_eq!(walk("stride = 4\n").pass_counts(), [1, 2, 4, 8, 16, 32, 64]);
    let limited = |stride: u64| walk(&format!("stride = {stride}\nreferences = 33554432\n")).pass_counts().pop();
    assert_eq!([4, 64, 256, 2 * MIB].map(limited), [Some(1), Some(16), Some(64), Some(64)]);
}

#[test]
fn a_region_is_walked_in_whole_pages_of_its_backing() {
    let walk =
        |host| job(&format!("[factors]\nhost = [\"{host}\"]\n[[workload]]\nprobe = \"walk\"\nsize = \"128M\"\n"));
    assert_eq!(["4k", "2m", "1g"].map(|host| walk(host).memory().to_string()), ["128 MiB", "128 MiB", "1 GiB"]);
}

#[test]
fn transparent_pages_of_every_size_count_as_thp() {
    let small = plan("[factors]\nhost = [\"4k\", \"thp-64k\"]\n[[workload]]\nprobe = \"chase\"\n");
    let cell = small.cell("chase host=thp-64k").unwrap();
    assert_eq!(small.job(&cell).unwrap().setting(), Some(Setting::native(Backing::Thp)));
}

#[test]
fn what_cannot_be_run_is_named() {
    let bloat = plan("[factors]\nvenue = [\"native\", \"microvm\"]\n[[workload]]\nprobe = \"bloat\"\nsize = \"64M\"\n");
    let cell = bloat.cell("bloat venue=microvm").unwrap();
    assert!(bloat.job(&cell).unwrap_err().contains("the micro-VM has none"));
}

const VENUES: &str = "[factors]\nvenue = [\"native\", \"microvm\", \"guest\"]\nhost = [\"4k\", \"2m\"]\n";

#[test]
fn a_program_has_its_parameters_and_runs_natively_alone() {
    let plan = plan(&format!("{VENUES}[[workload]]\nprogram = \"sysbench-cpu\"\nseconds = 3\n"));
    let cells = plan.cells();
    // What memory stands on means nothing to a process of this host.
    let native = plan.cell("sysbench-cpu venue=native").unwrap();
    let Job::Program(job) = plan.job(&native).unwrap() else { panic!() };
    assert!(job.script().unwrap().run.contains(&"--time=3".to_owned()));
    assert_eq!(plan.job(&native).unwrap().expected_seconds(), 3.0);
    assert_eq!(plan.memory(&native), Default::default());
    for (cell, reason) in [("microvm", "the micro-VM has none"), ("guest host=2m", "no other program")] {
        let cell = cells.iter().find(|c| c.name() == format!("sysbench-cpu venue={cell}")).unwrap();
        assert!(plan.job(cell).unwrap_err().contains(reason), "{}", cell.name());
    }
}

#[test]
fn a_test_of_the_system_runs_in_a_guest_as_it_does_natively() {
    let text = format!("{VENUES}[[workload]]\nname = \"copy\"\nprobe = \"filecopy\"\nbuffer = 256\nvcpus = 2\n");
    let plan = plan(&text);
    let cell = plan.cell("copy venue=guest host=2m").unwrap();
    let guest = plan.guest(&cell).unwrap().unwrap();
    assert_eq!((guest.vcpus, guest.host), (2, Backing::Huge2m));
    assert_eq!(plan.memory(&cell).to_string(), "host=2m");
    let inside = Plan::parse("trial", &plan.inside(&cell)).unwrap();
    let native = plan.cell("copy venue=native").unwrap();
    assert_eq!(inside.job(&inside.cells()[0]), plan.job(&native));
    let Job::Os(os) = plan.job(&native).unwrap() else { panic!() };
    assert_eq!((os.test.name(), os.vcpus, os.time.as_secs()), ("filecopy-256", 2, 10));
}

#[test]
fn a_command_is_run_as_its_author_wrote_it() {
    let job = job(
        "[[workload]]\ncommand = [\"/opt/bench\", \"two words\"]\ntimeout = 60\n[[workload.metric]]\nname = \"rate\"\n\
         unit = \"ops/s\"\nbetter = \"higher\"\njson = \"/rate\"\n",
    );
    let Job::Command(own) = job else { panic!() };
    assert_eq!((own.command.command[1].as_str(), own.timeout.as_secs()), ("two words", 60));
    assert_eq!(own.command.metrics[0].name, "rate");
}

#[test]
fn a_program_that_runs_in_a_tree_is_given_one() {
    let check = |tree: &str, expected: (bool, bool)| {
        let Job::Program(job) = job(&format!("[[workload]]\nprogram = \"kernbench\"\n{tree}")) else { panic!() };
        assert_eq!((job.lacks_tree(), job.script().is_ok()), expected);
    };
    check("", (true, false));
    check("tree = \"/usr/src/linux\"\n", (false, true));
}
