use serde_json::json;

use super::*;
use crate::engine::fixtures::{delivery, deployment};
use crate::model::ids::{CommitId, ConfigKey, Destination, PodName, ServiceKey};
use crate::model::object::{Kind, Location, ObjectKey};
use crate::model::plan::{ServicePlan, StagePlan, StageStart};
use crate::model::pod::{PodId, PodPhase};
use crate::model::project::{Procedures, StatusDetail};
use crate::model::run::{Phase, TrialPart, Waits};
use crate::model::slot::Delivered;
use crate::model::state::{Attempt, Version};
use crate::model::wanted::{Fallback, Target, Wanted};

fn key() -> ConfigKey {
    ConfigKey { project: "p".into(), stage: "s".into(), name: "web".into() }
}

fn object(image: &str) -> Object {
    let content = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}});
    Object {
        key: ObjectKey { kind: Kind::DeploymentConfig, name: "web".into() },
        service: "web".into(),
        digest: digest::of(&content),
        content: content.into(),
        location: Location::default(),
        autoscaled_at: None,
    }
}

fn version(number: u32, image: &str) -> Version {
    Version { number, commit: CommitId::new("c"), object: object(image).into() }
}

fn recreate(version: &mut Version) {
    let mut object = Object::clone(&version.object);
    let mut content = object.content.value();
    content["spec"]["strategy"] = json!({"type": "Recreate"});
    object.content = content.into();
    version.object = object.into();
}

/// `replicas` of version 2 take the place of version 1.
fn state(serving: Option<Version>, attempted: Option<Version>, replicas: u32) -> ConfigState {
    let target = attempted.as_ref().or(serving.as_ref()).map(|version| (version.number, Target::ALL));
    let fallback = attempted.as_ref().and(serving.as_ref());
    let destination = Destination::local("p-s".into());
    let declared = ConfigState::new(key(), destination, "repo".into(), object("a").into(), "c".into());
    ConfigState {
        latest_version: 2,
        wanted: Wanted {
            targets: target.into_iter().collect(),
            fallback: fallback.map(|version| Fallback { version: version.number, replicas }),
            replicas,
            ..Wanted::default()
        },
        serving,
        attempted: attempted.map(|version| Attempt { version, run: "run".into(), outcome: None }),
        ..declared
    }
}

fn left(version: u32, number: u32, image: &str) -> ObservedPod {
    ObservedPod {
        id: PodId { namespace: "p-s".into(), name: PodName::new(format!("web-{version}-{number}")) },
        owner: PodOwner::Version { config: key(), version, template: template_digest(&object(image)) },
        origin: Origin::Stranger,
        labels: BTreeMap::new().into(),
        phase: PodPhase::Ready { since: Timestamp(0) },
        restarts: 0,
        message: String::new(),
        created_at: Timestamp(i64::from(number)),
        ended_at: None,
    }
}

fn adopted(state: &ConfigState, pods: &[ObservedPod]) -> Vec<(String, u32)> {
    let observed = Observed::count(pods, &state.key, 0, Timestamp(0));
    let adopted = adopt(state, pods, &observed);
    adopted.into_iter().map(|(pod, version)| (pod.name.to_string(), version)).collect()
}

#[test]
fn pods_are_taken_over_by_what_they_run_and_not_by_their_number() {
    let pods = [left(3, 0, "a"), left(3, 1, "b")];
    assert_eq!(adopted(&state(Some(version(1, "a")), None, 2), &pods), [("web-3-0".into(), 1)]);
    let other_content = state(Some(version(3, "c")), None, 2);
    assert!(adopted(&other_content, &pods).is_empty(), "a number alone means nothing");
}

#[test]
fn no_more_are_taken_over_than_are_wanted_and_a_pod_keeps_its_version_if_it_can() {
    let pods = [left(1, 0, "a"), left(2, 0, "a"), left(1, 1, "a")];
    let both = state(Some(version(1, "a")), Some(version(2, "a")), 2);
    assert_eq!(adopted(&both, &pods), [("web-1-0".into(), 1), ("web-2-0".into(), 2), ("web-1-1".into(), 1)]);
    let one = state(Some(version(1, "a")), None, 1);
    assert_eq!(adopted(&one, &pods), [("web-1-0".into(), 1)]);
    let own = ObservedPod { origin: Origin::Own, ..left(1, 5, "a") };
    assert!(adopted(&one, &[own, left(1, 0, "a")]).is_empty(), "what is wanted is there");
}

#[test]
fn strangers_serve_on_until_it_is_known_what_is_wanted() {
    let serving = state(Some(version(1, "a")), None, 2);
    assert_eq!(judge(&serving, false, None, false), Strangers::Awaiting);
    assert_eq!(judge(&serving, false, None, true), Strangers::Replaced);
    assert_eq!(judge(&state(None, None, 2), false, None, true), Strangers::Kept, "nothing has come of the first try");
    assert_eq!(judge(&state(None, None, 2), true, None, false), Strangers::Replaced, "taken down");
}

#[test]
fn nothing_is_done_about_strangers_on_what_the_run_has_left_behind() {
    let config = state(Some(version(1, "a")), Some(version(2, "b")), 2);
    let by = delivery("run", "a");
    let begun = deployment(2, "b", &by, Phase::Running);
    let run = |generation| DeploymentRun { generation, step: DeploymentStep::Restore, ..begun.clone() };
    let now = config.wanted.generation;
    assert_eq!(judge(&config, false, Some(&run(now + 1)), true), Strangers::Outdated, "the run went on meanwhile");
    assert_eq!(judge(&config, false, Some(&run(now)), true), Strangers::Replaced);
}

#[test]
fn a_deployment_of_another_life_gives_way_where_it_would_wait_for_what_that_has_replaced() {
    let own = state(Some(version(1, "a")), Some(version(2, "b")), 2);
    let inherited = ConfigState { inherited: Some(Timestamp(5)), ..own.clone() };
    let begun = deployment(2, "b", &delivery("run", "a"), Phase::Running);
    let run = |step| DeploymentRun { generation: own.wanted.generation, step, ..begun.clone() };
    let paused = |step| {
        let waits = Waits { paused_by: Some("alice".into()), ..Waits::default() };
        DeploymentRun { waits, ..run(step) }
    };
    use DeploymentStep::{Post, Pre, Restore, Rollout, Trial};
    let trial = |part| Trial { step: 1, part };
    for (case, state, run, expected) in [
        ("pods of its own are to come", &inherited, run(Rollout), Strangers::Preferred),
        ("part of them", &inherited, run(trial(TrialPart::Weight)), Strangers::Preferred),
        ("what served before is to come back", &inherited, run(Restore), Strangers::Preferred),
        ("it waits for time to pass", &inherited, run(trial(TrialPart::Pause)), Strangers::Awaiting),
        ("it has changed nothing yet", &inherited, run(Pre), Strangers::Awaiting),
        ("it waits for a hook alone", &inherited, run(Post), Strangers::Awaiting),
        ("a person has it stay where it is", &inherited, paused(Rollout), Strangers::Awaiting),
        ("this life began it", &own, run(Rollout), Strangers::Replaced),
    ] {
        assert_eq!(judge(state, false, Some(&run), false), expected, "{case}");
    }
}

/// The newest plan, which brings `image` to the stage once the stage before has passed it.
fn brings(image: &str, decision: Decision) -> Plan {
    let change = Change { object: Some(object(image).into()), ..Change::of(object(image).key, decision) };
    let part = ServicePlan {
        service: "web".into(),
        content: Digest::new(image),
        previous_stage: None,
        configs: 1,
        changes: vec![change],
        runs_again: None,
    };
    let stage = StagePlan {
        stage: "s".into(),
        destination: Destination::local("p-s".into()),
        start: StageStart::After(Vec::new()),
        sequence: None,
        services: vec![part],
        carried: Default::default(),
    };
    Plan {
        id: "plan".into(),
        repository: "repo".into(),
        project: "p".into(),
        commit: CommitId::new("head"),
        subject: String::new(),
        at: Timestamp(0),
        stages: vec![stage],
        statuses: StatusDetail::Auto,
        procedures: digest::stored(Procedures::default()),
    }
}

#[test]
fn nothing_is_settled_before_what_the_head_brings_has_had_its_turn() {
    let own = state(Some(version(1, "a")), None, 2);
    let inherited = ConfigState { inherited: Some(Timestamp(5)), ..own.clone() };
    let synced = |seen: &str| {
        let (applied, seen) = (Some("head".into()), Some(seen.into()).filter(|_| !seen.is_empty()));
        RepositoryState { applied, seen, ..RepositoryState::new("repo".into(), "/repo.git", "main") }
    };
    let free = SlotState::free(ServiceKey { project: "p".into(), stage: "s".into(), service: "web".into() });
    let taken = SlotState { holder: Some("run".into()), ..free.clone() };
    let delivered = |image: &str| {
        let last =
            Delivered { run: "run".into(), content: Digest::new(image), procedure: Digest::new(""), deployed: true };
        SlotState { last_delivery: Some(last), ..free.clone() }
    };
    let (other, same) = (brings("b", Decision::Deploy), brings("a", Decision::Update));
    let held = brings("b", Decision::Wait);
    let earlier = Plan { commit: "earlier".into(), ..other.clone() };
    for (case, head, slot, newest, expected) in [
        ("nothing was read yet", "", &free, None, false),
        ("the head is broken or refused", "newer", &free, None, false),
        ("a delivery is under way", "head", &taken, None, false),
        ("no plan names it", "head", &free, None, true),
        ("the plan brings what is recorded", "head", &free, Some(&same), true),
        ("the plan finds nothing to do", "head", &free, Some(&brings("b", Decision::None)), true),
        ("the stage before has to pass it", "head", &free, Some(&other), false),
        ("it is held", "head", &free, Some(&held), false),
        ("an earlier revision was to bring it", "head", &free, Some(&earlier), true),
        ("something else was delivered last", "head", &delivered("a"), Some(&other), false),
        ("it was delivered, and failed", "head", &delivered("b"), Some(&other), true),
    ] {
        let repository = synced(head);
        let prospect = Prospect { repository: Some(&repository), slot: Some(slot), newest, has_passed: true };
        assert_eq!(prospect.is_settled(&inherited), expected, "{case}");
        assert!(prospect.is_settled(&own), "a version was deployed in this life, {case}");
    }
}

#[test]
fn an_older_record_says_nothing_against_what_serves_before_the_head_has_confirmed_it() {
    let head = Some(CommitId::new("head"));
    let fresh = RepositoryState::new("repo".into(), "/repo.git", "main");
    let repository = RepositoryState { applied: head.clone(), seen: head, ..fresh };
    let inherited = ConfigState { inherited: Some(Timestamp(5)), ..state(Some(version(1, "a")), None, 2) };
    let failed = ConfigState { object: object("b").into(), ..inherited.clone() };
    for (case, state, has_passed, expected) in [
        ("the head declares what is recorded, and it has passed", &inherited, true, Strangers::Replaced),
        ("a stage before has still to pass it", &inherited, false, Strangers::Awaiting),
        ("what the head declares was delivered and has failed", &failed, true, Strangers::Awaiting),
    ] {
        let prospect = Prospect { repository: Some(&repository), slot: None, newest: None, has_passed };
        assert_eq!(judge(state, false, None, prospect.is_settled(state)), expected, "{case}");
    }
    let taken_down = judge(&inherited, true, None, false);
    assert_eq!(taken_down, Strangers::Replaced, "what is down serves nothing");
}

#[test]
fn what_is_kept_is_not_counted_and_not_ended() {
    let failed = state(None, None, 2);
    let own = ObservedPod { origin: Origin::Own, ..left(1, 2, "b") };
    let taken_over = ObservedPod { origin: Origin::Adopted, ..left(1, 1, "b") };
    let serving = decide(&failed, &[left(3, 0, "a"), taken_over, own], Strangers::Kept, Timestamp(0));
    assert_eq!(serving.counts, BTreeMap::from([(0, 1), (1, 1)]), "only what this life has started goes");
}

#[test]
fn where_others_end_first_what_runs_the_same_is_none_of_them() {
    let mut first = state(None, Some(version(1, "a")), 1);
    (first.wanted.targets, first.wanted.owner) = (BTreeMap::new(), Some("run".into()));
    let pods = [left(3, 0, "a"), left(3, 1, "b")];
    assert!(adopted(&first, &pods).is_empty(), "what serves beside a rolling one is none of its pods yet");
    if let Some(attempt) = &mut first.attempted {
        recreate(&mut attempt.version);
    }
    assert_eq!(adopted(&first, &pods), [("web-3-0".into(), 1)]);
    let owner = ObservedPod { origin: Origin::Adopted, ..left(1, 0, "a") };
    let serving = decide(&first, &[owner, left(3, 1, "b")], Strangers::Replaced, Timestamp(0));
    assert_eq!((serving.counts, serving.converged), (BTreeMap::from([(0, 0), (1, 1)]), false));
}

#[test]
fn what_leads_to_pods_stays_as_it_is_until_this_life_or_its_head_says_the_same() {
    let head = Some(CommitId::new("head"));
    let fresh = RepositoryState::new("repo".into(), "/repo.git", "main");
    let unread = RepositoryState { applied: head.clone(), ..fresh };
    let read = RepositoryState { seen: head, ..unread.clone() };
    let destination = Destination::local("p-s".into());
    let own = ObjectState::new(("p".into(), "s".into()), destination, "repo".into(), object("a").into());
    let inherited = ObjectState { inherited: Some(Timestamp(5)), ..own.clone() };
    let free = SlotState::free(ServiceKey { project: "p".into(), stage: "s".into(), service: "web".into() });
    let taken = SlotState { holder: Some("run".into()), ..free.clone() };
    let (same, other) = (brings("a", Decision::Update), brings("b", Decision::Update));
    let failed = brings("b", Decision::None);
    let earlier = Plan { commit: "earlier".into(), ..other.clone() };
    for (case, repository, slot, newest, has_passed, expected) in [
        ("the head declares the same, and it has passed", &read, &free, Some(&same), true, true),
        ("the head changes nothing of it", &read, &free, None, true, true),
        ("a stage before has still to pass it", &read, &free, Some(&same), false, false),
        ("the head was not read yet", &unread, &free, None, true, false),
        ("a delivery is under way", &read, &taken, Some(&same), true, false),
        ("the head declares something else", &read, &free, Some(&other), true, false),
        ("which has failed", &read, &free, Some(&failed), true, false),
        ("an earlier revision declared something else", &read, &free, Some(&earlier), true, true),
    ] {
        let prospect = Prospect { repository: Some(repository), slot: Some(slot), newest, has_passed };
        assert_eq!(prospect.confirms(&inherited, None), expected, "{case}");
        assert!(prospect.confirms(&own, None), "decided in this life, {case}");
    }
    let key = |kind| ObjectKey { kind, name: "web".into() };
    let declared = |kind, image| Object { key: key(kind), ..object(image) };
    let endpoints = ObjectState { object: declared(Kind::Endpoints, "a").into(), ..inherited.clone() };
    for (image, expected) in [("a", true), ("b", false)] {
        let mut plan = brings(image, Decision::Wait);
        let change = &mut plan.stages[0].services[0].changes[0];
        (change.key, change.object) = (key(Kind::Endpoints), Some(declared(Kind::Endpoints, image).into()));
        let (repository, slot, newest) = (Some(&read), Some(&free), Some(&plan));
        let prospect = Prospect { repository, slot, newest, has_passed: true };
        assert_eq!(prospect.confirms(&inherited, Some(&endpoints)), expected, "endpoints {image}");
    }
}
