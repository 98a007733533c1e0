//! Made-up runs for tests: hosts from `testdata/machines`, plausible times, noise from a fixed seed.

use std::{env, fs, path::Path};

use vmtax_core::{
    availability::{Demand, Reserve, availability, matrix},
    experiment::{self, Missing, Record},
    host::Host,
    plan::{Cell as PlanCell, Job, Plan},
    probe::Probe,
    request::Request,
    run::{Ending, Run},
    schedule,
    setting::{Backing, Cell, Setting},
    trial::{Caveat, Evidence, Interference, KvmCounts, Measurement, Outcome, Trial},
    units::{Bytes, GIB, MIB, PageSize},
};

const SEED: u64 = 2_971_215_073;

pub fn host(machine: &str) -> Host {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/machines");
    serde_json::from_str(&fs::read_to_string(machines.join(machine).join("host.json")).unwrap()).unwrap()
}

/// A run on this host of everything that can be measured there.
pub fn run(host: Host, blocks: u32, reserve: Reserve) -> Run {
    let demand = Demand { arena: Bytes(GIB), tables: Bytes(2 * MIB), vcpus: 1, reserve };
    let available = availability(&host, &matrix(), demand);
    let settings: Vec<Setting> = available.available().collect();
    let cells = schedule::cells(&settings);
    let trials = (0..blocks).flat_map(|block| {
        let order = schedule::block(SEED, block, &cells).into_iter().flat_map(|plot| plot.cells);
        order.enumerate().map(move |(place, cell)| trial(block, place as u32, cell)).collect::<Vec<_>>()
    });
    Run {
        id: "20260102-030405".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        request: Request {
            probe: Probe::Chase,
            size: demand.arena,
            stride: Bytes(4096),
            settings: matrix(),
            vcpus: 1,
            pin: Vec::new(),
            blocks: None,
            budget_seconds: Some(60.0),
            seed: SEED,
            reserve: reserve == Reserve::Yes,
        },
        ending: Some(Ending::Done),
        seconds: Some(8.2 * f64::from(blocks)),
        trials: trials.collect(),
        unavailable: available.unavailable().cloned().collect(),
        host,
    }
}

/// Nanoseconds an access as on a processor that walks two page tables.
fn level(Setting { guest, host }: Setting) -> f64 {
    let on = |small, thp, large, giant| match host {
        Backing::Small => small,
        Backing::Thp => thp,
        Backing::Huge2m => large,
        Backing::Huge1g => giant,
    };
    match guest {
        None => on(95.2, 76.3, 75.8, 72.1),
        Some(PageSize::Small) => on(161.0, 128.0, 127.0, 124.0),
        Some(PageSize::Large) => on(131.0, 84.9, 83.6, 80.2),
        Some(PageSize::Giant) => on(129.0, 82.7, 81.9, 74.0),
    }
}

fn trial(block: u32, place: u32, cell: Cell) -> Trial {
    // Every block of its own speed, every trial within a per cent or so of it.
    let drift = 1.0 + 0.03 * (f64::from(block) * 1.7).sin();
    let noise = 1.0 + 0.012 * (f64::from(block * 31 + place) * 12.9898).sin();
    let ns = level(cell.setting) * drift * noise;
    let Setting { guest, host } = cell.setting;
    let page = host.page();
    let leaf = guest.map_or(page, |leaf| leaf.min(page));
    let leaves = |size: PageSize| if leaf == size { GIB / size.bytes() } else { 0 };
    let small = leaves(PageSize::Small) + 19;
    let kvm = KvmCounts {
        pages_4k: small,
        pages_2m: leaves(PageSize::Large),
        pages_1g: leaves(PageSize::Giant),
        faults: small + leaves(PageSize::Large) + leaves(PageSize::Giant),
        exits: small + 40,
        steady_faults: 0,
        nx_lpage_splits: Some(0),
    };
    let (kernel_page_kb, thp_coverage) = match host {
        Backing::Small => (4, 0.0),
        Backing::Thp => (4, 1.0),
        Backing::Huge2m | Backing::Huge1g => (page.bytes() / 1024, 0.0),
    };
    let fill = if guest.is_some() && leaf == PageSize::Small { 900.0 } else { 4.0 };
    let measurement = Measurement {
        batches_ns: vec![ns * 0.998, ns, ns * 1.003],
        first_pass_ns: ns + fill,
        evidence: Evidence { kernel_page_kb, thp_coverage, kvm: guest.map(|_| kvm) },
        interference: Interference::default(),
        caveats: Vec::new(),
    };
    Trial { block, place, cell, outcome: Outcome::Ok(measurement) }
}

/// Changes the trials of one setting.
pub fn change(run: &mut Run, setting: Setting, mut change: impl FnMut(u32, &mut Outcome)) {
    for trial in run.trials.iter_mut().filter(|trial| trial.cell.setting == setting) {
        change(trial.block, &mut trial.outcome);
    }
}

/// Adds a caveat to the trials of one setting.
pub fn warn(run: &mut Run, setting: Setting, caveat: impl Fn(u32) -> Option<Caveat>) {
    change(run, setting, |block, outcome| {
        if let Outcome::Ok(measurement) = outcome {
            measurement.caveats.extend(caveat(block));
        }
    });
}

/// A run of seven blocks of a plan in which every cell finds what `found` says of it, but those that are missing.
pub fn record(
    text: &str,
    missing: Vec<Missing>,
    found: impl Fn(&PlanCell, &Job, u32) -> experiment::Outcome,
) -> Record {
    let plan = Plan::parse("vmtax", text).unwrap();
    let cells = plan.cells();
    let here = || cells.iter().filter(|cell| missing.iter().all(|missing| missing.cell != cell.name()));
    let trial = |block, (place, cell): (usize, &PlanCell)| experiment::Trial {
        block,
        place: place as u32,
        cell: cell.name(),
        outcome: found(cell, &plan.job(cell).unwrap(), block),
    };
    let trials = (0..7).flat_map(|block| here().enumerate().map(move |placed| (block, placed)));
    Record {
        id: "20260102-030405".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        name: "vmtax".to_owned(),
        seed: 7,
        host: host("amd-npt"),
        ending: Some(Ending::Done),
        seconds: Some(59.7),
        trials: trials.map(|(block, placed)| trial(block, placed)).collect(),
        missing: missing.clone(),
        plan: plan.clone(),
    }
}

/// Compares a text with the one in `testdata`; `VMTAX_UPDATE=1` writes it anew.
#[track_caller]
pub fn is_kept(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name);
    if env::var_os("VMTAX_UPDATE").is_some() {
        fs::write(&file, text).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    assert_eq!(text, kept, "{}", file.display());
}
