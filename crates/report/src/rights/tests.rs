use vmtax_core::{experiment::Outcome, rights::finding};

use super::*;
use crate::{
    experiment,
    fixture::{is_kept, record},
    wrap::WIDTH,
};

fn made_up() -> Record {
    let plan = "title = \"Ways to huge pages\"\n[[workload]]\nprobe = \"rights\"\n[replication]\nblocks = 7\n";
    record(plan, Vec::new(), |_, _, _| {
        let all = PAGES.into_iter().flat_map(|page| PERSONS.map(|person| WAYS.map(|way| (person, way, page))));
        let answer = |(person, way, page)| {
            let (said, remedy) = match (person, way) {
                ("ordinary", "shmget") => ("EPERM (shmget)", Some("sudo sysctl vm.hugetlb_shm_group=GID")),
                (_, "file") => ("not tested: no hugetlbfs is mounted", Some("sudo mount -t hugetlbfs none DIRECTORY")),
                (_, _) => (GRANTED, None),
            };
            Answer { person, way, page, said: said.to_owned(), remedy: remedy.map(str::to_owned) }
        };
        Outcome::Ok(finding(&all.flatten().map(answer).collect::<Vec<_>>()))
    })
}

#[test]
fn facts_are_a_table_and_shut_ways_have_a_remedy() {
    let text = experiment::text(&made_up(), &[]);
    is_kept("rights.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
}

#[test]
fn a_run_without_figures_can_be_exported_and_compared() {
    let record = made_up();
    assert_eq!((record.sheets().len(), record.against(&record).len()), (0, 0));
    assert!(experiment::json(&record, &[]).unwrap().contains("ordinary.shmget.2m"));
    assert_eq!(experiment::csv(&record).unwrap(), "");
    assert!(experiment::markdown(&record, &[]).starts_with("# Ways to huge pages"));
    let document: serde_json::Value = serde_json::from_str(&json(&record, &[])).unwrap();
    assert_eq!(document["attempts"].as_array().unwrap().len(), 16);
}
