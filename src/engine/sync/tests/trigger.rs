//! What a person has delivered.

use super::*;
use crate::error::{Class, Result};
use crate::model::ids::Destination;
use crate::model::plan::Decision;
use crate::plan::under_way::{Reached, UnderWay};

/// `ann` wants what revision `c1` declares to be delivered to a stage, perhaps for one service and by force.
fn triggered(
    memory: &Memory,
    stages: &Stages,
    (stage, service, force): (&str, Option<&str>, Option<&str>),
) -> Result<Made<Vec<RunId>>> {
    let (stage, service) = (stage.into(), service.map(Into::into));
    let asked = Trigger { stage: &stage, service: service.as_ref(), force, by: "ann", incoming: None };
    memory.decide(|it| trigger(it, &watched(), &head("c1", &FILES), stages.clone(), asked))
}

const WEB_IN_DEV: (&str, Option<&str>, Option<&str>) = ("dev", Some("web"), None);

/// Both stages serve what is declared.
fn rests() -> Stages {
    BTreeMap::from([("dev".into(), applied(&serving(1, "b"))), ("production".into(), there("b"))])
}

fn serves() -> Memory {
    let (key, destination) =
        (ConfigKey { stage: "production".into(), ..web() }, Destination::local("shop-production".into()));
    let production = ConfigState { key, destination, ..serving(1, "b") };
    Memory::default().with(repository()).with(serving(1, "b")).with(production)
}

#[test]
fn a_service_is_delivered_although_nothing_differs() {
    let made = triggered(&serves(), &rests(), WEB_IN_DEV).expect("nothing is in its way");
    let [run] = made.started()[..] else { unreachable!("{made:#?}") };
    assert_eq!((&made.answer, starts_in(&made)), (&vec![run.id.clone()], vec!["dev"]));
    assert_eq!((&*run.cause, run.by.as_deref(), &run.forced), ("triggered by ann", Some("ann"), &None));
    let plan = made.plans().next().expect("what was asked for is stored");
    assert_eq!(run.plan.as_ref(), Some(&plan.id));
}

#[test]
fn without_a_service_only_what_differs_is_delivered() {
    let made = triggered(&serves(), &rests(), ("dev", None, None)).expect("nothing is in its way");
    assert!(made.answer.is_empty() && made.started().is_empty() && made.plans().count() == 1);
    let made = triggered(&serves().with(serving(1, "a")), &stages("a"), ("dev", None, None));
    let made = made.expect("nothing is in its way");
    assert_eq!((made.answer.len(), starts_in(&made)), (1, vec!["dev"]));
}

#[test]
fn nothing_is_delivered_by_hand_that_must_not_be() {
    for (memory, stage, service, expected) in [
        (Memory::default(), "dev", "web", "nothing is known of repository `repo`"),
        (serves().with(down()), "dev", "web", DOWN),
        (serves(), "qa", "web", "project `shop` has no stage `qa` (its stages: dev, production)"),
        (serves(), "dev", "api", "stage `dev` has no service `api`"),
        (serves().with(holds(HoldKind::Person)), "dev", "web", HELD),
        (serves().with(holds(HoldKind::Rollback)), "dev", "web", HELD),
    ] {
        assert_eq!(refused(triggered(&memory, &rests(), (stage, Some(service), None))), expected);
    }
    let held = serves().with(serving(1, "a")).with(holds(HoldKind::Person));
    assert_eq!(refused(triggered(&held, &stages("a"), ("dev", None, None))), HELD, "also without a service");
}

#[test]
fn whoever_was_overtaken_by_a_push_may_ask_again() {
    let newer = serves().with(RepositoryState { applied: Some("c2".into()), ..repository() });
    let failure = triggered(&newer, &rests(), WEB_IN_DEV).expect_err("a refusal");
    let expected = (Class::Transient, "a newer revision was applied meanwhile".to_owned());
    assert_eq!((failure.class(), failure.one_line()), expected);
}

#[test]
fn a_revision_without_a_plan_is_not_delivered() {
    let (stage, service) = ("dev".into(), "web".into());
    let broken = Head { declared: Err(Vec::new()), ..head("c1", &FILES) };
    let asked = Trigger { stage: &stage, service: Some(&service), force: None, by: "ann", incoming: None };
    let made = serves().decide(|it| trigger(it, &watched(), &broken, rests(), asked));
    assert_eq!(refused(made), "the last revision has no plan (`launchway status` says why)");
}

#[test]
fn what_the_stage_before_has_not_passed_is_started_only_by_force_which_is_said() {
    let asked = |force| ("production", Some("web"), force);
    let hint = "`--force REASON` starts it all the same, and says so";
    let expected = format!("stage `dev` has not passed what `web` declares ({hint})");
    let content = build::content_of(&project(&FILES).stages[0], &"web".into());
    let has_failed = serves().with(delivered(content.clone()));
    assert_eq!(refused(triggered(&has_failed, &rests(), asked(None))), expected);
    let has_passed = serves().with(passed(PassedKey { service: service("dev"), content }));
    for (memory, force, expected) in [
        (has_failed, Some("urgent"), Some("ann although dev has not passed it: urgent")),
        (has_passed.clone(), Some("urgent"), None),
        (has_passed, None, None),
    ] {
        let made = triggered(&memory, &rests(), asked(force)).expect("it is let go on");
        assert_eq!(made.started()[0].forced.as_deref(), expected);
    }
}

#[test]
fn a_delivery_that_is_under_way_is_not_started_twice_and_a_person_reads_how_it_ends() {
    let made = triggered(&serves(), &rests(), WEB_IN_DEV).expect("nothing is in its way");
    let run = made.started()[0].clone();
    let run = SequenceRun { state: SequenceState::Running { task: 0 }, ended_at: None, outcome: None, ..run };
    let delivery = run.delivery.as_ref().expect("it delivers");
    let place = (run.procedure.value.clone(), &run.destination);
    let under_way = UnderWay::new(&run.commit, (&delivery.content, &delivery.changes), place, Reached::Slot);
    let seen = Applied { under_way: [("web".into(), under_way)].into(), ..applied(&serving(1, "b")) };
    let stages = BTreeMap::from([("dev".into(), seen), ("production".into(), there("b"))]);
    let memory = serves().with(sequence(&run)).with(slot(Some(&run), &[]));
    let way_out = "delivery of c1 at `deployment` is under way: `launchway rollout cancel dc/web -s dev` ends it";
    let expected = format!("a delivery of what is declared is under way already ({way_out})");
    assert_eq!(refused(triggered(&memory, &stages, WEB_IN_DEV)), expected);
}

#[test]
fn what_a_task_before_its_deployment_has_stopped_is_planned_again_where_a_person_names_it() {
    let stopped = || {
        let never_deployed = [("web".into(), "`delivery` ended before its deployment".to_owned())].into();
        BTreeMap::from([("dev".into(), Applied { never_deployed, ..applied(&serving(1, "a")) })])
    };
    let memory = serves().with(serving(1, "a"));
    for (service, expected) in [(Some("web"), Decision::Deploy), (None, Decision::None)] {
        let made = triggered(&memory, &stopped(), ("dev", service, None)).expect("nothing is in its way");
        let plan = made.plans().next().expect("what was asked for is stored");
        assert_eq!(plan.stages[0].services[0].changes[0].decision, expected, "{service:?}");
    }
}

#[test]
fn what_is_under_way_in_the_stage_before_is_not_under_way_in_the_next() {
    let made = triggered(&serves(), &rests(), WEB_IN_DEV).expect("nothing is in its way");
    let run = made.started()[0].clone();
    let delivery = run.delivery.as_ref().expect("it delivers");
    let coming = |here| {
        let place = (run.procedure.value.clone(), &run.destination);
        UnderWay::new(
            &run.commit,
            (&delivery.content, &delivery.changes),
            place,
            if here { Reached::Slot } else { Reached::Nothing },
        )
    };
    let seen = |here, image| Applied { under_way: [("web".into(), coming(here))].into(), ..there(image) };
    let stages = || BTreeMap::from([("dev".into(), seen(true, "b")), ("production".into(), seen(false, "a"))]);
    let asked = |force| triggered(&serves(), &stages(), ("production", Some("web"), force));
    assert!(refused(asked(None)).starts_with("stage `dev` has not passed what `web` declares"));
    let made = asked(Some("urgent")).expect("a person takes it upon them");
    assert_eq!(starts_in(&made), ["production"]);
}
