use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::engine::fixtures::{
    Memory, attempted, delivery, deployed, deploying, deployment, ended as sequence_ended, repository, sequence,
    serving, slot, version, web,
};
use crate::manifest::digest;
use crate::model::event::Event;
use crate::model::ids::Destination;
use crate::model::object::{Kind, Location, Object, ObjectKey};
use crate::model::run::DeploymentFailure;
use crate::model::state::{Attempt, Beside, Earlier, Kept, ObjectState, Standing};
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;
use crate::model::wanted::{Progress, Target, Wanted};

/// Version 1 of `web` has served, and all of version 2 is there.
struct World {
    state: ConfigState,
    before: DeploymentRun,
    failing: DeploymentRun,
    objects: Vec<ObjectState>,
}

fn world() -> World {
    let by = deploying(delivery("s2", "b"), 2);
    let state = attempted(serving(1, "a"), "b", &by, None);
    let wanted = Wanted { targets: BTreeMap::from([(2, Target::ALL)]), ..state.wanted.clone() };
    let failing = deployment(2, "b", &by, Phase::Running);
    let failing = DeploymentRun { step: DeploymentStep::Post, previous: Some(1), replicas: 3, ..failing };
    let before = deployment(1, "a", &sequence_ended(delivery("s1", "a"), Outcome::PASS), Phase::Complete);
    World { state: ConfigState { wanted, ..state }, before, failing, objects: Vec::new() }
}

impl World {
    fn ends(self, outcome: Outcome) -> Memory {
        let by = deploying(delivery("s2", "b"), 2);
        let memory = Memory::default().with(repository()).with(slot(Some(&by), &[])).with(sequence(&by));
        let memory = memory.with(self.state).with(deployed(self.before)).with(deployed(self.failing));
        let mut memory = self.objects.into_iter().fold(memory, Memory::with);
        tell(&mut memory, &Event::Cancel { outcome, reason: "exit 3".to_owned() });
        memory
    }

    fn fails(self) -> Memory {
        self.ends(Outcome::FAIL)
    }
}

fn tell(memory: &mut Memory, event: &Event) {
    let told = memory.commit(|transition| {
        transition.tell(web().deployment(2), event.clone());
        Ok(())
    });
    told.expect("it is told");
}

fn run(memory: &Memory, version: u32) -> DeploymentRun {
    let Run::Deployment(run) = memory.get::<Run>(web().deployment(version)) else { unreachable!("a deployment") };
    (**run).clone()
}

/// What serves, the newest version, and what is to run.
fn serves(memory: &Memory) -> (u32, u32, Vec<u32>) {
    let state = memory.get::<ConfigState>(web());
    let serving = state.serving.as_ref().map_or(0, |serving| serving.number);
    (serving, state.latest_version, state.wanted.targets.keys().copied().collect())
}

#[test]
fn what_served_comes_back_as_the_next_version_with_the_cause() {
    let mut memory = world().fails();
    assert_eq!(serves(&memory), (3, 3, vec![3]));
    let (failed, back) = (run(&memory, 2), run(&memory, 3));
    assert_eq!((failed.step, failed.restored_as, failed.ended_at), (DeploymentStep::Restore, Some(3), None));
    assert_eq!(back.cause, "rollback to version 1, because version 2 failed: exit 3");
    assert_eq!(back.causes[..], [Cause::Rollback { by: "launchway".into() }]);
    assert_eq!((back.step, back.phase, back.restored_after), (DeploymentStep::Restore, Phase::Pending, Some(2)));
    assert_eq!((&back.object, back.commit.as_str(), back.replicas), (&run(&memory, 1).object, "c1", 3));
    let progress = Progress { updated: 3, available: 3, old: 0 };
    let (generation, problem, not_listening) = (failed.generation, String::new(), String::new());
    let served = Event::Served { generation, progress, converged: true, problem, not_listening, brought: false };
    tell(&mut memory, &served);
    let told = "version 2 failed: exit 3; version 3 serves, which is version 1 again";
    assert_eq!((run(&memory, 2).phase, &*run(&memory, 2).message), (Phase::Failed, told));
    assert_eq!((run(&memory, 3).phase, &*run(&memory, 3).message), (Phase::Complete, "version 3 serves after 0ms"));
    assert_eq!((serves(&memory), run(&memory, 3).hooks.len()), ((3, 3, vec![3]), 0));
}

#[test]
fn what_is_ended_goes_back_alike_and_says_so() {
    let cause = run(&world().ends(Outcome::SUPERSEDED), 3).cause;
    assert_eq!(cause, "rollback to version 1, because version 2 was ended: exit 3");
}

#[test]
fn both_end_whatever_ends_the_way_back() {
    let mut memory = world().fails();
    tell(&mut memory, &Event::Disowned { reason: "version 4 has taken over".to_owned() });
    assert_eq!((run(&memory, 2).phase, run(&memory, 3).phase), (Phase::Failed, Phase::Complete));
    let told = "version 3 is to serve: 0 of 1 pods were available after 0ms";
    assert_eq!((run(&memory, 3).ended_at.is_some(), &*run(&memory, 3).message), (true, told));
}

#[test]
fn it_comes_back_under_its_number_where_it_is_not_gone_or_cannot_be_another() {
    let plain = world();
    let state = |change: fn(&mut ConfigState)| {
        let mut world = world();
        change(&mut world.state);
        world
    };
    let blue_green = || {
        let mut world = world();
        let strategy = json!({"type": "BlueGreen", "blueGreenParams": {"keep": "5m"}});
        world.failing.spec.strategy = serde_json::from_value(strategy).expect("a strategy");
        world
    };
    let failed_before = || {
        let mut world = world();
        let (step, message) = (DeploymentStep::Post, "exit 1".to_owned());
        world.before.failure = Some(DeploymentFailure { step, outcome: Outcome::FAIL, message });
        world
    };
    let stands = |state: &mut ConfigState| {
        let standing = Standing::Spare(Timestamp(i64::MAX));
        state.beside = Some(Beside { version: version(7, "z"), standing });
    };
    for (what, world, expected) in [
        ("it has served alone", plain, 3),
        ("its strategy keeps it", blue_green(), 1),
        ("another one stood beside it", state(stands), 1),
        ("it had failed itself", failed_before(), 1),
        ("another life of the store left it", state(|state| state.inherited = Some(Timestamp(i64::MAX))), 1),
    ] {
        let memory = world.fails();
        assert_eq!(serves(&memory).0, expected, "{what}");
        assert_eq!(run(&memory, 2).restored_as, (expected == 3).then_some(3), "{what}");
    }
}

#[test]
fn what_was_taken_out_of_its_hands_stays_where_it_is() {
    let mut world = world();
    let next = Version { commit: "c".into(), ..version(3, "c") };
    world.state.wanted.owner = Some(web().deployment(3));
    world.state.attempted = Some(Attempt { version: next, run: "s3".into(), outcome: None });
    world.state.latest_version = 3;
    let memory = world.fails();
    assert_eq!((serves(&memory).0, run(&memory, 2).restored_as), (1, None));
}

/// A `Service` that the push has changed, or declares no longer, as it was for version 1.
fn service(selector: serde_json::Value, is_declared: bool) -> World {
    let object = |selector| {
        let content = json!({"spec": {"selector": selector}});
        let key = ObjectKey { kind: Kind::Service, name: "front".into() };
        let (service, location, digest) = ("web".into(), Location::default(), digest::of(&content));
        Object { key, service, location, digest, content: content.into(), autoscaled_at: None }
    };
    let mut world = world();
    let now = object(if is_declared { json!({"app": "other"}) } else { selector.clone() });
    let key = now.key.clone();
    let (place, destination) = (("shop".into(), "dev".into()), Destination::local("shop-dev".into()));
    let mut front = ObjectState::new(place, destination, "repo".into(), now.into());
    let (config, by) = ("web".to_owned(), "s2".into());
    let earlier = Earlier { config, version: 1, by, went_back: false, object: object(selector).into() };
    front.earlier.extend(is_declared.then_some(earlier));
    front.kept_by.extend((!is_declared).then(|| "web".to_owned()));
    world.objects.push(front);
    world.state.keeps.push(Kept { key, since: 1 });
    world
}

#[test]
fn what_objects_were_for_it_they_are_for_its_next_version_unless_they_lead_to_its_number() {
    for (selector, is_declared, expected) in [
        (json!({"deploymentconfig": "web"}), true, (3, vec![3])),
        (json!({"deployment": "web-1"}), true, (1, vec![1])),
        (json!({"app": "nothing"}), true, (3, vec![3])),
        (json!({"deploymentconfig": "web"}), false, (3, vec![])),
        (json!({"deployment": "web-1"}), false, (1, vec![])),
    ] {
        let world = service(selector.clone(), is_declared);
        let place = ObjectPlace::from(&world.objects[0]);
        let memory = world.fails();
        let object = memory.get::<ObjectState>(place);
        let versions: Vec<u32> = object.earlier.iter().map(|it| it.version).collect();
        assert_eq!((serves(&memory).0, versions), expected, "{selector} {is_declared}");
        assert_eq!(object.kept_by.is_empty(), is_declared, "{selector}");
    }
}
