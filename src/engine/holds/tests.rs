use super::*;
use crate::engine::fixtures::{HELD, Memory, NOW, holds, refused, service};
use crate::model::hold::Lifted;
use crate::model::ids::ServiceName;
use crate::testing::world::config_key;

fn scope(stage: Option<&str>, service: Option<&str>) -> HoldScope {
    HoldScope { project: "shop".into(), stage: stage.map(Into::into), service: service.map(Into::into), context: None }
}

fn lifted(name: &str, by: &str) -> Lifted {
    Lifted { config: config_key("dev", name), by: by.into(), since: NOW }
}

#[test]
fn a_hold_comes_after_those_that_are_there() {
    for (memory, before) in [(Memory::default(), 0), (Memory::default().with(holds(HoldKind::Rollback)), 1)] {
        let place = |transition: &mut Transition<'_>| {
            place(transition, HoldKind::Person, scope(Some("dev"), None), "sale".into(), "ann")
        };
        let made = memory.decide(place).expect("nobody is refused a hold");
        let placed = &made.answer;
        assert_eq!((placed.kind, placed.scope.to_string(), placed.since), (HoldKind::Person, "shop/dev".into(), NOW));
        assert_eq!((placed.by.as_str(), placed.reason.as_str()), ("ann", "sale"));
        let all = &made.only::<ProjectHolds>().holds;
        assert_eq!((all.len(), all.last()), (before + 1, Some(placed)));
    }
}

#[test]
fn two_holds_are_never_the_same_one() {
    let place = |transition: &mut Transition<'_>| {
        let mut one = || place(transition, HoldKind::Person, scope(None, None), "sale".into(), "ann");
        Ok((one()?.id, one()?.id))
    };
    let made = Memory::default().decide(place).expect("nobody is refused a hold");
    assert_ne!(made.answer.0, made.answer.1);
    assert_eq!(made.only::<ProjectHolds>().holds.len(), 2);
}

#[test]
fn what_is_released_holds_nothing_any_more_and_the_rest_stays() {
    let mut memory = Memory::default().with(holds(HoldKind::Person));
    for (release, left, words) in [
        (Release { holds: vec!["other".into()], ..Release::default() }, 1, vec![]),
        (
            Release { paused: vec![lifted("web", "ann"), lifted("api", "ann")], ..Release::default() },
            1,
            vec!["ann", "ann"],
        ),
        (Release { paused: vec![lifted("web", "bob")], ..Release::default() }, 1, vec!["ann", "bob"]),
        (Release { holds: vec!["h1".into()], ..Release::default() }, 0, vec!["ann", "bob"]),
    ] {
        let project = ProjectName::new("shop");
        let decide = |transition: &mut Transition<'_>| super::release(transition, &project, &release, None);
        memory.commit(decide).expect("nobody is refused a release");
        let holds = memory.get::<ProjectHolds>(project.clone());
        let by: Vec<&str> = holds.lifted.iter().map(|lifted| lifted.by.as_str()).collect();
        assert_eq!((holds.holds.len(), by), (left, words), "{release:?}");
        assert!(memory.decide(decide).expect("the same").changes_nothing(), "{release:?} twice");
    }
}

#[test]
fn only_what_a_hold_covers_is_refused() {
    for (scope, dev_web, production_web, dev_api) in [
        (scope(None, None), true, true, true),
        (scope(Some("dev"), None), true, false, true),
        (scope(None, Some("web")), true, true, false),
        (scope(Some("dev"), Some("web")), true, false, false),
        (HoldScope { project: "other".into(), ..scope(None, None) }, false, false, false),
    ] {
        let mut held = holds(HoldKind::Person);
        held.holds[0].scope = scope.clone();
        let memory = Memory::default().with(held);
        let api = ServiceKey { service: ServiceName::new("api"), ..service("dev") };
        for (service, expected) in [(service("dev"), dev_web), (service("production"), production_web), (api, dev_api)]
        {
            let made = memory.decide(|transition| refuse(transition.records, &service));
            assert_eq!(made.is_err(), expected, "{scope} for {service}");
            assert!(!expected || refused(made) == HELD);
        }
    }
}

#[test]
fn without_a_hold_nothing_is_refused() {
    let made = Memory::default().decide(|transition| refuse(transition.records, &service("dev")));
    assert_eq!(made.expect("it is free").transaction.reads.len(), 1, "that there is none is decided on");
}

#[test]
fn a_rollbacks_hold_does_not_count_where_only_a_persons_does() {
    let mut both = holds(HoldKind::Rollback);
    both.holds.push(Hold { id: "h2".into(), kind: HoldKind::Person, ..both.holds[0].clone() });
    for (held, expected) in [
        (holds(HoldKind::Rollback), None),
        (holds(HoldKind::Person), Some(HELD.to_owned())),
        (both, Some(HELD.replace("h1", "h2"))),
    ] {
        let memory = Memory::default().with(held);
        let made = memory.decide(|transition| refuse_by_a_persons(transition.records, &service("dev")));
        assert_eq!(made.err().map(|failure| failure.one_line()), expected);
    }
}
