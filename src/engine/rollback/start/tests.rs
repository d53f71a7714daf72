use serde_json::json;

use super::*;
use crate::engine::fixtures::{
    DOWN, HELD, Made, Memory, attempted, delivery, deployed, deploying, deployment, down, ended, holds, refused,
    repository, sequence, service, serving, slot, web,
};
use crate::model::hold::{HoldKind, ProjectHolds};
use crate::model::outcome::Outcome;
use crate::model::rollback::RollbackParts;
use crate::model::run::Phase;
use crate::testing::world::deployment_config;

/// Version 4 of a deployment config serves; 3 has failed, and 2 is the last that was complete before.
fn history_of(memory: Memory, name: &str) -> Memory {
    let rename = |object: &Arc<Object>| {
        let image = object.content.at("/spec/template/spec/containers/0/image").expect("an image");
        Arc::new(deployment_config(name, image.as_str().expect("text"), 1, json!({})))
    };
    let key = ConfigKey { name: name.into(), ..web() };
    let mut state = serving(4, "d");
    state.object = rename(&state.object);
    state.service = name.into();
    let version = state.serving.as_mut().expect("it serves");
    version.object = rename(&version.object);
    state.key = key.clone();
    let run = |number, image: &str, phase| {
        let mut run = deployment(number, image, &ended(delivery("s0", image), Outcome::PASS), phase);
        run.object = rename(&run.object);
        (run.id, run.config, run.service) = (key.deployment(number), key.clone(), name.into());
        deployed(run)
    };
    let memory = memory.with(state).with(run(4, "d", Phase::Complete)).with(run(3, "c", Phase::Failed));
    memory.with(run(2, "b", Phase::Complete)).with(run(1, "a", Phase::Complete))
}

fn history() -> Memory {
    history_of(Memory::default().with(repository()), "web")
}

fn asked(name: &str, to: RollbackTo) -> Rollback {
    let config = ConfigKey { name: name.into(), ..web() };
    Rollback { config, to, parts: RollbackParts::ALL, notes: String::new(), may_be_absent: false }
}

fn back(memory: &Memory, asked: &[Rollback]) -> Result<Made<Started>, Failure> {
    memory.decide(|transition| roll_back(transition, asked, "ann"))
}

fn last() -> Vec<Rollback> {
    vec![asked("web", RollbackTo::LastComplete)]
}

fn left(made: &Made<Started>) -> Vec<&str> {
    made.answer.left.iter().map(String::as_str).collect()
}

#[test]
fn it_becomes_a_new_version_under_a_hold() {
    let mut memory = history();
    let notes = Rollback { notes: "I messed up my app".into(), ..last().remove(0) };
    let made = memory.commit(|transition| roll_back(transition, std::slice::from_ref(&notes), "ann"));
    let made = made.expect("version 2 was complete");
    let [member] = &made.answer.members[..] else { unreachable!("{made:#?}") };
    assert_eq!((member.to, member.version, member.never_served), (2, 5, false));
    let [run] = made.started()[..] else { unreachable!("{made:#?}") };
    assert_eq!((&*run.cause, &run.group), ("rollback to version 2 by ann: I messed up my app", &None));
    assert_eq!((run.commit.as_str(), run.is_rollback), ("bbbbbbb", true), "its result is 2's");
    let state = memory.get::<ConfigState>(web());
    assert_eq!((state.latest_version, &state.object), (5, &member.object));
    let [hold] = &made.only::<ProjectHolds>().holds[..] else { unreachable!("{made:#?}") };
    assert_eq!((hold.kind, hold.scope.to_string()), (HoldKind::Rollback, "shop/dev/web".into()));
    assert_eq!(&*hold.reason, "a rollback of web to version 2; release it when Git says what should run");
}

#[test]
fn what_cannot_go_back_says_why_and_nothing_changes() {
    let first = Memory::default().with(repository()).with(serving(1, "a"));
    let paused = deployment_config("web", "d", 1, json!({"paused": true}));
    let paused = history().with(ConfigState { object: paused.into(), ..serving(4, "d") });
    let hint = "(`launchway history dc/web -s dev` lists what there is)";
    let chosen = "(`--to-version N` chooses another version; `launchway history` lists them)";
    let version = |number| vec![asked("web", RollbackTo::Version(number))];
    let parts = RollbackParts { labels: false, ..RollbackParts::CONFIG };
    let nothing = Rollback { parts: RollbackParts { strategy: false, ..parts }, ..last().remove(0) };
    for (memory, asked, expected) in [
        (history(), version(9), format!("there is no version 9 of `web` {hint}")),
        (first, last(), "no previous deployment exists for `web`".into()),
        (Memory::default(), last(), "deployment config `web` does not exist in stage dev".into()),
        (history(), version(4), format!("version 4 of `web` serves already {chosen}")),
        (history().with(down()), last(), DOWN.into()),
        (history().with(holds(HoldKind::Person)), last(), HELD.into()),
        (
            paused,
            last(),
            "cannot rollback a paused deployment config (`launchway rollout resume dc/web -s dev` lets it go on; then go back)".into(),
        ),
        (history(), Vec::new(), "there is nothing to go back".into()),
        (history(), [last(), version(1)].concat(), "`web` is named twice".into()),
        (
            history(),
            vec![nothing],
            "nothing of `web` is to come back (ask for its configuration, its application, or both)".into(),
        ),
    ] {
        assert_eq!(refused(back(&memory, &asked)), expected);
    }
}

#[test]
fn an_attempt_that_failed_has_gone_back_by_itself() {
    let failed = ended(delivery("s1", "e"), Outcome::FAIL);
    let memory = history().with(attempted(serving(4, "d"), "e", &failed, Some(Outcome::FAIL)));
    let expected = "version 4 of `web` serves already: version 5 was attempted and is not what runs";
    assert!(refused(back(&memory, &last())).starts_with(expected));
    let further = back(&memory, &[asked("web", RollbackTo::Version(2))]).expect("version 2 is there");
    assert_eq!(further.answer.members[0].version, 6);
}

#[test]
fn an_attempt_that_is_under_way_gives_way() {
    let by = deploying(delivery("s1", "e"), 5);
    let memory = history().with(attempted(serving(4, "d"), "e", &by, None)).with(sequence(&by));
    let memory = memory.with(deployed(deployment(5, "e", &by, Phase::New))).with(slot(Some(&by), &[]));
    let made = back(&memory, &last()).expect("version 4 serves");
    assert_eq!((made.answer.members[0].to, made.answer.members[0].version), (4, 6));
    assert!(made.started()[0].started_at.is_some(), "its turn has come");
}

#[test]
fn a_rollback_may_go_further_back_under_its_own_hold() {
    let made = back(&history().with(holds(HoldKind::Rollback)), &[asked("web", RollbackTo::Version(1))]);
    assert_eq!(made.expect("it is an emergency").answer.members[0].to, 1);
}

#[test]
fn several_go_back_in_one_transaction_in_the_order_of_their_slots() {
    let names = ["web", "api", "cart"];
    let memory = names.iter().fold(Memory::default().with(repository()), |memory, name| history_of(memory, name));
    let asked: Vec<Rollback> = names.iter().map(|name| asked(name, RollbackTo::LastComplete)).collect();
    let made = back(&memory, &asked).expect("all can");
    let mut started = made.started();
    started.sort_by_key(|run| run.id.clone());
    let services: Vec<&str> = started.iter().map(|run| run.service.service.as_str()).collect();
    assert_eq!(services, ["api", "cart", "web"]);
    let runs: Vec<RunId> = started.iter().map(|run| run.id.clone()).collect();
    for run in &started {
        let group = run.group.as_ref().expect("a part");
        assert_eq!((&group.runs, group.before[0].number), (&runs, 4));
        assert!(run.started_at.is_some());
    }
    assert_eq!(made.only::<ProjectHolds>().holds.len(), 3);
}

#[test]
fn none_goes_back_where_one_cannot() {
    let memory = history_of(history(), "api");
    let both = [asked("web", RollbackTo::Version(9)), asked("api", RollbackTo::LastComplete)];
    let told = refused(back(&memory, &both));
    assert!(told.contains("nothing goes back") && told.contains("web: there is no version 9"), "{told}");
    // What runs it already has nothing to do, and keeps nobody.
    let both = [asked("web", RollbackTo::Version(4)), asked("api", RollbackTo::LastComplete)];
    let made = back(&memory, &both).expect("one goes back");
    assert_eq!((made.answer.members.len(), left(&made)), (1, vec!["version 4 of `web` serves already"]));
    let then = RollbackTo::Revision("0000000".into());
    let absent = [Rollback { may_be_absent: true, ..asked("web", then) }, asked("api", RollbackTo::LastComplete)];
    let made = back(&memory, &absent).expect("the other one goes back");
    assert_eq!(left(&made), ["nothing of `web` was deployed when 0000000 had been applied"]);
}

#[test]
fn two_of_one_service_go_back_in_one_run() {
    let mut memory = history_of(history(), "api");
    let key = ConfigKey { name: "api".into(), ..web() };
    let state = ConfigState { service: "web".into(), ..memory.get::<ConfigState>(key).clone() };
    memory = memory.with(state);
    let both = [asked("web", RollbackTo::Version(1)), asked("api", RollbackTo::LastComplete)];
    let made = back(&memory, &both).expect("both can");
    let [run] = made.started()[..] else { unreachable!("{made:#?}") };
    assert_eq!((&run.service, run.changes().len(), &*run.cause), (&service("dev"), 2, "rollback of api, web by ann"));
    let [hold] = &made.only::<ProjectHolds>().holds[..] else { unreachable!("{made:#?}") };
    assert!(hold.reason.starts_with("a rollback of api to version 2 and a rollback of web to version 1;"));
}
