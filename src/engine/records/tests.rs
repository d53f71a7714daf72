use proptest::prelude::*;

use super::*;
use crate::engine::fixtures::{
    declared, delivery, down, holds, object, passed, plan, project, refused_by, repository, sequence, service, slot,
    web,
};
use crate::model::hold::HoldKind;
use crate::model::ids::Destination;
use crate::model::time::Timestamp;

fn stored<V>(value: V) -> Option<Versioned<V>> {
    Some(Versioned { version: 7, value })
}

fn missing<T>(decided: Result<T, Undecided>) -> Vec<Need> {
    match decided {
        Err(Undecided::Needs(needs)) => needs,
        Err(Undecided::Refused(_)) | Ok(_) => Vec::new(),
    }
}

fn known<T>(decided: Result<T, Undecided>) -> T {
    decided.expect("everything was read")
}

#[test]
fn what_was_not_read_is_asked_for_however_it_is_used() {
    let mut records = Records::default();
    let asked = [Need::Record(RecordKey::Config(web()))];
    assert_eq!(missing(records.configs.get(&web())), asked);
    assert_eq!(missing(records.configs.get_mut(&web())), asked);
    assert_eq!(missing(records.configs.put(&web(), None)), asked, "nobody writes what he has not read");
    let attempts = Lookup::Attempts("repo".into(), "c1".into(), service("dev"), None);
    assert_eq!(missing(records.number(attempts.clone())), [Need::Lookup(Box::new(attempts))]);
    assert_eq!(missing(records.fresh_id()), [Need::Id]);
}

#[test]
fn what_is_absent_was_read_too() {
    let mut records = Records::default();
    records.configs.read(web(), None);
    assert_eq!(known(records.configs.get(&web())), None);
    assert_eq!(known(records.configs.get_mut(&web())), None);
    let (reads, writes) = records.into_sets();
    assert_eq!(reads, [Read { key: RecordKey::Config(web()), version: 0 }]);
    assert!(writes.is_empty(), "{writes:?}");
}

#[test]
fn a_change_is_seen_until_the_decision_begins_again() {
    let mut records = Records::default();
    records.repositories.read("repo".into(), stored(repository()));
    records.runs.read("s1".into(), stored(sequence(&delivery("s1", "a"))));
    known(records.repositories.put(&"repo".into(), Some(down())));
    known(records.runs.put(&"s1".into(), None));
    assert_eq!(known(records.repositories.get(&"repo".into())), Some(&down()));
    assert_eq!(records.known_runs().count(), 0);
    records.forget_changes();
    assert_eq!(known(records.repositories.get(&"repo".into())), Some(&repository()));
    assert_eq!(records.known_runs().count(), 1);
}

#[test]
fn an_identity_stays_the_same_however_often_the_decision_begins_again() {
    let mut records = Records::default();
    for id in ["one", "two"] {
        records.add_id(id.into());
    }
    records.configs.read(web(), None);
    for forget in [Records::forget_changes, Records::forget] {
        assert_eq!((known(records.fresh_id()), known(records.fresh_id())), ("one".into(), "two".into()));
        assert_eq!(missing(records.fresh_id()), [Need::Id], "each is given once");
        forget(&mut records);
    }
    assert_eq!(known(records.fresh_id()), "one");
    assert!(!missing(records.configs.get(&web())).is_empty(), "what has moved is read again");
}

#[test]
fn a_lookup_answers_with_what_it_found() {
    let mut records = Records::default();
    let newest = Lookup::NewestPlanOf("shop".into(), "web".into());
    let found = plan(&project(&["shipyard dev", "declare web image=a"]), "c1", &BTreeMap::new());
    for (answer, expected) in [(None, None), (Some(Arc::new(found.clone())), Some(&found))] {
        records.found(newest.clone(), Found::Plan(answer));
        assert_eq!(known(records.plan(newest.clone())), expected);
    }
    records.found(Lookup::NewestVersion(web()), Found::Number(4));
    assert_eq!(known(records.number(Lookup::NewestVersion(web()))), 4);
}

#[test]
fn what_several_decisions_miss_is_asked_for_at_once() {
    let mut needs = Needs::default();
    let records = Records::default();
    assert_eq!(known(needs.of(Ok(1))), Some(1));
    assert_eq!(known(needs.of(records.configs.get(&web()))), None);
    assert_eq!(known(needs.of(records.slots.get(&service("dev")))), None);
    let both = [RecordKey::Config(web()), RecordKey::Slot(service("dev"))].map(Need::Record);
    assert_eq!(missing(needs.none()), both);
    known(Needs::default().none());
}

#[test]
fn a_refusal_needs_nothing_that_is_still_missing() {
    let mut needs = Needs::default();
    let records = Records::default();
    known(needs.of(records.configs.get(&web())));
    let no: Result<(), Undecided> = Err(Failure::stalled("no").into());
    assert_eq!(refused_by(needs.of(no)), "no");
}

/// One record of each kind.
fn all() -> Records {
    let mut records = Records::default();
    let of = PassedKey { service: service("dev"), content: "sha256:1".into() };
    let place = ObjectPlace { project: "shop".into(), stage: "dev".into(), key: object("a").key.clone() };
    let destination = Destination::local("shop-dev".into());
    let other = ObjectState::new(("shop".into(), "dev".into()), destination, "repo".into(), object("a"));
    let name = UniqueName::Project("shop".into());
    let owner = NameOwner {
        name: name.clone(),
        repository: "repo".into(),
        project: "shop".into(),
        stage: None,
        claimants: [].into(),
    };
    records.runs.read("s1".into(), stored(sequence(&delivery("s1", "a"))));
    records.configs.read(web(), stored(declared("a")));
    records.objects.read(place, stored(other));
    records.repositories.read("repo".into(), stored(repository()));
    records.slots.read(service("dev"), stored(slot(None, &[])));
    records.passed.read(of.clone(), stored(passed(of)));
    records.holds.read("shop".into(), stored(holds(HoldKind::Person)));
    records.names.read(name, stored(owner));
    records
}

#[test]
fn what_was_only_read_is_part_of_what_was_decided_on() {
    let (reads, writes) = all().into_sets();
    assert!(writes.is_empty() && reads.iter().all(|read| read.version == 7), "{reads:?}");
    let read: Vec<String> = reads.iter().map(|read| read.key.to_string()).collect();
    let (web, map) = ("shop/dev/web", "shop/dev/DeploymentConfig/web");
    let (slot, passed) = ("slot shop/dev/web", "sha256:1 in shop/dev/web");
    assert_eq!(read, ["s1", web, map, "repo", slot, passed, "holds of shop", "project `shop`"]);
}

#[test]
fn what_vanishes_is_removed_at_the_version_that_was_read() {
    let mut records = all();
    let key = PassedKey { service: service("dev"), content: "sha256:1".into() };
    let place = ObjectPlace { project: "shop".into(), stage: "dev".into(), key: object("a").key.clone() };
    known(records.configs.put(&web(), None));
    known(records.objects.put(&place, None));
    known(records.passed.put(&key, None));
    known(records.names.put(&UniqueName::Project("shop".into()), None));
    known(records.repositories.put(&"repo".into(), None));
    let (reads, writes) = records.into_sets();
    let is_removal = |write: &Write| match write {
        Write::RemoveConfig(it) => it.version == 7,
        Write::RemoveObject(it) => it.version == 7,
        Write::RemovePassed(it) => it.version == 7,
        Write::RemoveRepository(it) => it.version == 7,
        Write::FreeName(it) => it.version == 7,
        _ => false,
    };
    assert!(writes.len() == 5 && writes.iter().all(is_removal), "{writes:?}");
    assert_eq!(reads.len(), 3, "{reads:?}");
}

/// What a decision may do with a record.
#[derive(Clone, Debug)]
enum Use {
    Get,
    Edit(i64),
    Put(Option<i64>),
}

fn uses() -> impl Strategy<Value = Use> {
    prop_oneof![Just(Use::Get), (0_i64..3).prop_map(Use::Edit), proptest::option::of(0_i64..3).prop_map(Use::Put),]
}

proptest! {
    #[test]
    fn a_record_is_written_if_it_has_become_another_and_else_was_read(
        before in proptest::option::of(0_i64..3), uses in prop::collection::vec(uses(), 0..6),
    ) {
        let key = PassedKey { service: service("dev"), content: "sha256:1".into() };
        let at = |at: i64| PassedState { at: Timestamp(at), ..passed(key.clone()) };
        let (mut records, mut now) = (Records::default(), before);
        records.passed.read(key.clone(), before.and_then(|value| stored(at(value))));
        for step in uses {
            match step {
                Use::Get => {}
                Use::Put(value) => {
                    known(records.passed.put(&key, value.map(at)));
                    now = value;
                }
                Use::Edit(value) => {
                    let state = known(records.passed.get_mut(&key));
                    prop_assert_eq!(state.is_some(), now.is_some());
                    state.into_iter().for_each(|state| state.at = Timestamp(value));
                    now = now.and(Some(value));
                }
            }
            prop_assert_eq!(known(records.passed.get(&key)).map(|state| state.at.0), now);
        }
        let version = if before.is_some() { 7 } else { 0 };
        let (reads, writes) = records.into_sets();
        match (&reads[..], &writes[..]) {
            ([read], []) => prop_assert!(now == before && read.version == version),
            ([], [Write::Passed(it)]) => {
                prop_assert_ne!(now, before);
                prop_assert_eq!((Some(it.value.at.0), it.version), (now, version));
            }
            ([], [Write::RemovePassed(it)]) => prop_assert!(now.is_none() && before.is_some() && it.version == version),
            other => prop_assert!(false, "neither read nor written once: {other:?}"),
        }
    }
}

#[test]
fn what_was_read_of_a_service_counts_once_the_decision_is_about_it_or_asks_for_it() {
    let other = || ConfigKey { name: "other".into(), ..web() };
    let read = |decide: &dyn Fn(&mut Records)| {
        let mut records = Records::default();
        records.configs.read_of(Some("web".into()), web(), stored(declared("a")));
        records.configs.read_of(Some("other".into()), other(), None);
        decide(&mut records);
        let reads = records.into_sets().0;
        reads.into_iter().map(|read| read.key).collect::<Vec<_>>()
    };
    let both = [other(), web()].map(RecordKey::Config);
    assert_eq!(read(&|_| {}), []);
    assert_eq!(read(&|records| records.count_on(|service| service.as_str() == "web")), both[1..]);
    assert_eq!(read(&|records| assert!(known(records.configs.get(&other())).is_none())), both[..1]);
    assert_eq!(read(&|records| records.count_on(|_| true)), both);
}
