use vmtax_core::published::Verdict;

use super::*;
use crate::fixture::is_kept;

const PUBLISHED: &str = include_str!("../../../../studies/hugepage-walk/published.toml");
const PLAN: &str = "title = \"A small plan\"\n[factors]\nhost = [\"4k\", \"2m\"]\nstride = [\"64\", \"4K\"]\n\
    [[workload]]\nprobe = \"walk\"\nsize = \"128M\"\n[baseline]\nhost = \"4k\"\nstride = \"64\"\n";

fn judged() -> Vec<Judged> {
    let published = Published::parse("published.toml", PUBLISHED).unwrap();
    let none = || Verdict::NotTested { reason: "it takes pages 5000, the plan has 512".to_owned() };
    let found = [
        (String::new(), none()),
        ("small pages win from 31.2 KiB on [28.0 KiB, 36.1 KiB]".to_owned(), Verdict::Confirmed),
        ("one pass, 64 KiB to 2 MiB, 2 MiB pages over 4 KiB ones: −12 % [−14, −10]".to_owned(), Verdict::Contradicted),
        (
            "2 MiB over 4 KiB pages, all passes against one: −2.0 % [−5.1, +1.2]".to_owned(),
            Verdict::Undecided { reason: "the interval holds the bound: more blocks".to_owned() },
        ),
    ];
    let statements = published.statements.iter().zip(found);
    statements.map(|(statement, found)| statement.judged(Ok(found))).collect()
}

#[test]
fn the_table_of_statements_fits_a_terminal_and_says_why_where_it_does_not_say() {
    let text = table(&judged());
    is_kept("published.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(table(&[]), "");
}

#[test]
fn a_document_has_the_same_statements() {
    let text = markdown(&judged());
    assert_eq!(text.lines().filter(|line| line.starts_with("| ")).count(), 5, "{text}");
    assert!(text.contains("| it takes pages 5000, the plan has 512 | not tested here |"), "{text}");
}

#[test]
fn a_study_is_shown_with_its_plan_and_what_was_published() {
    let plan = Plan::parse("plan.toml", PLAN).unwrap();
    let published = Published::parse("published.toml", PUBLISHED).unwrap();
    let text = study("small", &plan, Some(&published));
    is_kept("study.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}
