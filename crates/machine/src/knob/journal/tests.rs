use vmtax_core::units::PageSize;

use super::*;
use crate::knob::{Switch, fake::FakeHost};

const KNOB: Knob = Knob::Pool(PageSize::Large);

fn text(host: &Host) -> String {
    fs::read_to_string(host.journal_path()).unwrap()
}

#[test]
fn what_is_recorded_is_read_again() {
    let fake = FakeHost::new(100, 1);
    let host = fake.host();
    let mut journal = Journal::open(&host).unwrap();
    assert!(!host.journal_path().exists(), "nothing recorded, no file");
    assert_eq!(journal.intend(KNOB, 0.into(), 16.into()).unwrap(), 0);
    journal.append(Record::Got { change: 0, value: 12.into() }).unwrap();
    assert_eq!(journal.intend(Knob::Pool(PageSize::Giant), 1.into(), 2.into()).unwrap(), 1);
    assert_eq!(
        text(&host),
        "{\"record\":\"boot\",\"id\":\"boot-a\"}\n\
         {\"record\":\"intent\",\"change\":0,\"knob\":{\"pool\":\"2m\"},\"old\":0,\"want\":16}\n\
         {\"record\":\"got\",\"change\":0,\"value\":12}\n\
         {\"record\":\"intent\",\"change\":1,\"knob\":{\"pool\":\"1g\"},\"old\":1,\"want\":2}\n"
    );
    let mut again = Journal::open(&host).unwrap();
    assert_eq!(again.changes(), journal.changes());
    assert_eq!(
        again.changes()[0],
        Change { knob: KNOB, old: 0.into(), want: 16.into(), got: Some(12.into()), is_settled: false }
    );

    again.append(Record::GivingBack { change: 0, from: 20.into(), to: 8.into() }).unwrap();
    again.append(Record::Settled { change: 1 }).unwrap();
    let third = Journal::open(&host).unwrap();
    assert_eq!(
        third.changes()[0],
        Change { knob: KNOB, old: 8.into(), want: 20.into(), got: Some(20.into()), is_settled: false },
        "from here on it is a change from 8 to 20"
    );
    assert!(third.changes()[1].is_settled);

    again.discard().unwrap();
    again.discard().unwrap();
    assert!(!host.journal_path().exists());
}

#[test]
fn a_torn_last_line_is_cut_off_at_every_byte() {
    let fake = FakeHost::new(100, 1);
    let host = fake.host();
    let mut journal = Journal::open(&host).unwrap();
    journal.intend(KNOB, 0.into(), 16.into()).unwrap();
    let whole = text(&host).len();
    journal.append(Record::Got { change: 0, value: 16.into() }).unwrap();
    let full = text(&host);
    for cut in whole..full.len() {
        fs::write(host.journal_path(), &full[..cut]).unwrap();
        let mut torn = Journal::open(&host).unwrap();
        assert_eq!(torn.changes()[0].got, None, "cut at {cut}");
        torn.append(Record::Settled { change: 0 }).unwrap();
        assert!(Journal::open(&host).unwrap().changes()[0].is_settled, "cut at {cut}");
    }
    for cut in 0..whole {
        fs::write(host.journal_path(), &full[..cut]).unwrap();
        assert_eq!(Journal::open(&host).unwrap().changes(), [], "cut at {cut}");
        assert!(!host.journal_path().exists());
    }
}

#[test]
fn a_journal_of_another_boot_is_discarded_unread() {
    let fake = FakeHost::new(100, 1);
    let host = fake.host();
    Journal::open(&host).unwrap().intend(KNOB, 0.into(), 16.into()).unwrap();
    fs::write(host.journal_path(), text(&host) + "not even JSON\n").unwrap();
    assert!(Journal::open(&host).is_err());
    fake.set_boot("boot-b");
    assert_eq!(Journal::open(&host).unwrap().changes(), []);
    assert!(!host.journal_path().exists());
}

#[test]
fn a_line_that_is_no_record_is_named() {
    let fake = FakeHost::new(100, 1);
    let host = fake.host();
    let check = |lines: &str, expected: &str| {
        fs::write(host.journal_path(), format!("{{\"record\":\"boot\",\"id\":\"boot-a\"}}\n{lines}\n")).unwrap();
        let error = Journal::open(&host).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{} line 2 is not a record of vmtax: {expected}", host.journal_path().display())
        );
        assert!(host.journal_path().exists(), "kept for whoever has to read it");
    };
    check("{\"record\":\"got\",\"change\":0,\"value\":1}", "it speaks of a change that is not recorded");
    check("{\"record\":\"boot\",\"id\":\"boot-a\"}", "a second boot");
    check(
        "{\"record\":\"intent\",\"change\":3,\"knob\":{\"pool\":\"2m\"},\"old\":0,\"want\":16}",
        "a change is missing before it",
    );
}

#[test]
fn a_word_is_kept_as_the_kernel_spells_it_and_two_turns_become_one() {
    let fake = FakeHost::new(0, 0);
    let host = fake.host();
    let thp = Knob::Switch(Switch::Thp);
    let mut journal = Journal::open(&host).unwrap();
    journal.intend(thp, "madvise".into(), "never".into()).unwrap();
    journal.append(Record::Got { change: 0, value: "never".into() }).unwrap();
    journal.intend(thp, "never".into(), "always".into()).unwrap();
    journal.append(Record::Got { change: 1, value: "always".into() }).unwrap();
    journal.append(Record::Joined { change: 1, earlier: 0 }).unwrap();
    let knob = "{\"switch\":\"thp\"}";
    assert_eq!(
        text(&host).lines().nth(1).unwrap(),
        format!("{{\"record\":\"intent\",\"change\":0,\"knob\":{knob},\"old\":\"madvise\",\"want\":\"never\"}}")
    );
    let again = Journal::open(&host).unwrap();
    assert!(again.changes()[0].is_settled);
    assert_eq!(again.changes()[1].old, "madvise".into());
}
