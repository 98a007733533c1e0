use super::*;
use crate::knob::{Contention, Lease, Outcome, fake::FakeHost, restore};

const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const KSM: &str = "sys/kernel/mm/ksm/run";

fn host() -> FakeHost {
    let fake = FakeHost::new(0, 0);
    fake.file(THP, "always [madvise] never\n");
    fake.file("sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled", "always inherit madvise [never]\n");
    fake.file(KSM, "0\n");
    fake.file("sys/module/kvm/parameters/nx_huge_pages", "N\n");
    fake
}

fn lease(fake: &FakeHost) -> Lease {
    Lease::unguarded(fake.host(), Contention::Refuse).unwrap()
}

fn texts(outcomes: &[Outcome]) -> Vec<String> {
    outcomes.iter().map(Outcome::to_string).collect()
}

#[test]
fn a_switch_is_turned_read_back_and_put_back() {
    let check = |switch: Switch, from: &str, to: &str, said: &str| {
        let fake = host();
        let mut lease = lease(&fake);
        let turn = lease.turn(switch, to).unwrap();
        assert_eq!((turn.from.as_str(), turn.to.as_str()), (from, to));
        assert_eq!(switch.read(&fake.host()).unwrap(), to);
        assert_eq!(texts(&lease.release().unwrap()), [said]);
        assert_eq!(switch.read(&fake.host()).unwrap(), from);
        assert!(!fake.journal().exists());
    };
    let small = Mthp::new(vmtax_core::units::Bytes(64 * KIB)).unwrap();
    check(Switch::Thp, "madvise", "never", "transparent huge pages: never put back to madvise");
    check(Switch::Mthp(small), "never", "madvise", "transparent 64 KiB pages: madvise put back to never");
    check(Switch::Ksm, "0", "1", "KSM: 1 put back to 0");
    check(Switch::NxHugePages, "N", "Y", "nx_huge_pages: Y put back to N");
}

#[test]
fn many_turns_are_put_back_by_one_write_to_what_was_before_the_first() {
    let fake = host();
    let mut lease = lease(&fake);
    for word in ["never", "always", "never", "never", "always"] {
        lease.turn(Switch::Thp, word).unwrap();
    }
    assert_eq!(texts(&lease.release().unwrap()), ["transparent huge pages: always put back to madvise"]);
    assert_eq!(fake.text(THP), "always [madvise] never\n");
}

#[test]
fn turned_back_by_hand_there_is_nothing_left_to_put_back() {
    let fake = host();
    let mut lease = lease(&fake);
    lease.turn(Switch::Ksm, "2").unwrap();
    lease.turn(Switch::Ksm, "0").unwrap();
    assert_eq!(texts(&lease.release().unwrap()), [""; 0]);
    assert_eq!(fake.text(KSM), "0\n");
}

#[test]
fn what_somebody_else_has_set_since_is_left_alone() {
    let fake = host();
    let mut lease = lease(&fake);
    lease.turn(Switch::Thp, "never").unwrap();
    fake.file(THP, "[always] madvise never\n");
    assert_eq!(
        texts(&lease.release().unwrap()),
        [
            "transparent huge pages: left alone at always; vmtax left never, somebody set it since; it was madvise before"
        ]
    );
    assert_eq!(fake.text(THP), "[always] madvise never\n");
}

#[test]
fn the_next_start_puts_back_the_switch_of_a_killed_run() {
    let fake = host();
    let mut killed = lease(&fake);
    killed.turn(Switch::Thp, "never").unwrap();
    killed.turn(Switch::Thp, "always").unwrap();
    killed.forget();
    let outcomes = restore(&fake.host(), Contention::Refuse).unwrap();
    assert_eq!(texts(&outcomes), ["transparent huge pages: always put back to madvise"]);
}

#[test]
fn what_cannot_be_turned_is_refused_before_anything_is_written() {
    let fake = host();
    let mut lease = lease(&fake);
    let mut check = |switch: Switch, word: &str, text: &str, remedy: &str| {
        let error = lease.turn(switch, word).unwrap_err();
        let text = text.replace("ROOT", &fake.host().sys.display().to_string());
        assert_eq!((error.to_string(), error.remedy().unwrap()), (text, remedy.to_owned()));
    };
    check(
        Switch::Thp,
        "off",
        "`off` is nothing transparent huge pages can be set to: always, madvise, never",
        "one of always, madvise, never",
    );
    check(
        Switch::Mthp("thp-32k".parse().unwrap()),
        "always",
        "cannot turn transparent 32 KiB pages: \
         there is no ROOT/kernel/mm/transparent_hugepage/hugepages-32kB/enabled",
        "Linux 6.8 or later, and a size that this CPU has",
    );
    fake.file("sys/module/kvm/parameters/nx_huge_pages", "never\n");
    check(
        Switch::NxHugePages,
        "Y",
        "cannot turn nx_huge_pages: it is set to `never`, which the kernel does not take back",
        "boot without kvm.nx_huge_pages=never",
    );
    fake.file("sys/module/kvm/parameters/nx_huge_pages", "N\n");
    let path = fake.host().sys.join("module/kvm/parameters/nx_huge_pages");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    check(
        Switch::NxHugePages,
        "Y",
        "cannot turn nx_huge_pages: this kernel keeps ROOT/module/kvm/parameters/nx_huge_pages read-only",
        "boot with kvm.nx_huge_pages=force",
    );
    assert!(!fake.journal().exists());
}

#[test]
fn this_hosts_switches_are_read_or_said_to_be_missing() {
    let host = Host::default();
    for switch in [Switch::Thp, Switch::Ksm, Switch::NxHugePages, Switch::NestedPaging] {
        match switch.read(&host) {
            Ok(word) => assert!(switch.words().contains(&word.as_str()) || word == "never", "{switch}: {word}"),
            Err(error) => assert!(error.remedy().is_some(), "{error}"),
        }
    }
}
