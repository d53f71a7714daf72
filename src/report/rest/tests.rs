//! Who has to move before more happens.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::model::hold::{HoldScope, Lifted};
use crate::model::ids::{CommitId, ConfigKey, Destination};
use crate::model::object::{Kind, Location, Object, ObjectKey};
use crate::model::outcome::Outcome;
use crate::model::state::{Attempt, RevisionResult, Version};
use crate::model::time::Timestamp;

/// When the revision was planned.
const PLANNED: Timestamp = Timestamp(5);

fn revision() -> RevisionState {
    RevisionState {
        repository: "shop".into(),
        commit: CommitId::new("1a2b3c4d5e6f"),
        subject: "Change".into(),
        at: PLANNED,
        result: RevisionResult::Broken { problems: Vec::new() },
        summary: None,
        again: 0,
        warnings: Vec::new(),
    }
}

/// The repository whose head that is.
fn repository() -> RepositoryState {
    let head = Some(revision().commit);
    RepositoryState {
        applied: head.clone(),
        seen: head,
        ..RepositoryState::new("shop".into(), "/srv/shop.git", "main")
    }
}

fn hold(kind: HoldKind, stage: &str, since: i64) -> Hold {
    let scope = HoldScope { project: "store".into(), stage: Some(stage.into()), service: None, context: None };
    Hold { id: "h1".into(), kind, scope, reason: "sale".into(), by: "ann".into(), since: Timestamp(since) }
}

fn held(hold: Hold) -> ProjectHolds {
    ProjectHolds { holds: vec![hold], ..ProjectHolds::none("store".into()) }
}

fn open(stage: &str, next: Next) -> Open {
    Open { stage: stage.into(), service: "web".into(), next, description: "as it is said".into() }
}

/// `web` in a stage, whose last attempt has not completed, if there was one.
fn config(stage: &str, attempt: Option<Option<Outcome>>) -> ConfigState {
    let key = ConfigKey { project: "store".into(), stage: stage.into(), name: "web".into() };
    let object = Arc::new(Object {
        key: ObjectKey { kind: Kind::DeploymentConfig, name: "web".into() },
        service: "web".into(),
        location: Location::default(),
        autoscaled_at: None,
        content: json!({}).into(),
        digest: "sha256:1".into(),
    });
    let version = Version { number: 3, commit: revision().commit, object: object.clone() };
    let attempted = attempt.map(|outcome| Attempt { version, run: "s1".into(), outcome });
    let destination = Destination::local("shop-dev".into());
    ConfigState { attempted, ..ConfigState::new(key, destination, "shop".into(), object, revision().commit) }
}

/// The kinds of what is waited for; nothing, if more happens by itself.
fn kinds(
    repository: &RepositoryState,
    holds: &ProjectHolds,
    configs: &[ConfigState],
    open: &[Open],
) -> Option<Vec<&'static str>> {
    let revision = revision();
    let around = Around { revision: &revision, repository: Some(repository), holds, configs };
    if open.iter().any(|open| around.goes_on(&open.stage, &open.service, &open.next)) {
        return None;
    }
    let waits = waits(&around, open)?;
    Some(waits.iter().map(|wait| wait.kind.as_str()).collect())
}

#[test]
fn what_only_a_person_moves_is_at_rest_and_what_follows_it_too() {
    let (nothing, person) = (ProjectHolds::none("store".into()), held(hold(HoldKind::Person, "dev", 1)));
    let lifted = Lifted {
        config: ConfigKey { project: "store".into(), stage: "dev".into(), name: "web".into() },
        by: "ann".into(),
        since: Timestamp(1),
    };
    let lifted = ProjectHolds { lifted: vec![lifted], ..nothing.clone() };
    let mut other = person.clone();
    other.holds[0].scope.service = Some("other".into());
    let follows = || open("production", Next::Another);
    let paused = || open("dev", Next::Paused("deploy/web".into()));
    for (holds, open, expected) in [
        (&nothing, vec![], Some(vec![])),
        (&nothing, vec![open("dev", Next::GoesOn), follows()], None),
        (&nothing, vec![open("dev", Next::Start)], None),
        (&nothing, vec![open("dev", Next::Turn(None, BTreeSet::new()))], None),
        (&person, vec![open("dev", Next::Turn(None, BTreeSet::new())), follows()], Some(vec!["hold"])),
        (&other, vec![open("dev", Next::Turn(None, BTreeSet::new()))], None),
        (&other, vec![open("dev", Next::Turn(None, ["other".into()].into()))], Some(vec!["hold"])),
        (
            &person,
            vec![open("dev", Next::Turn(None, BTreeSet::new())), open("qa", Next::Turn(None, BTreeSet::new()))],
            None,
        ),
        (&person, vec![open("production", Next::Turn(None, BTreeSet::new()))], None),
        (&nothing, vec![paused(), follows()], Some(vec!["paused"])),
        (&lifted, vec![paused(), follows()], None),
        (&nothing, vec![open("dev", Next::Resume("dc/web".into())), follows()], Some(vec!["rollout"])),
        (&nothing, vec![open("dev", Next::Push)], Some(vec!["plan"])),
        (&nothing, vec![open("dev", Next::Release("dc/web".into()))], Some(vec!["plan"])),
        (&nothing, vec![open("spare", Next::ByHand), follows()], Some(vec!["byHand"])),
        (&nothing, vec![open("spare", Next::Event)], Some(vec!["byHand"])),
        (&nothing, vec![open("spare", Next::ByHand), open("dev", Next::GoesOn)], None),
        (&nothing, vec![follows()], Some(vec!["stage"])),
    ] {
        assert_eq!(kinds(&repository(), holds, &[], &open), expected, "{open:?} under {holds:?}");
    }
}

#[test]
fn what_is_down_waits_for_whoever_brings_it_back_whether_it_was_complete_or_not() {
    let nothing = ProjectHolds::none("store".into());
    let down = RepositoryState { down: true, ..repository() };
    let unread = RepositoryState { seen: None, ..down.clone() };
    let newer = RepositoryState { applied: Some("2".into()), seen: Some("2".into()), ..down.clone() };
    for (repository, open, expected) in [
        (&down, vec![], Some(vec!["down"])),
        (&unread, vec![], Some(vec!["down"])),
        (&down, vec![open("dev", Next::Start), open("production", Next::Another)], Some(vec!["down"])),
        (&down, vec![open("dev", Next::GoesOn)], None),
        (&newer, vec![], Some(vec![])),
    ] {
        assert_eq!(kinds(repository, &nothing, &[], &open), expected, "{repository:?} with {open:?}");
    }
    let released = RepositoryState { down: false, ..unread };
    assert_eq!(kinds(&released, &nothing, &[], &[]), None, "it is planned anew");
    let broken = RepositoryState { problem: Some("it is gone".into()), ..released };
    assert_eq!(kinds(&broken, &nothing, &[], &[]), Some(vec![]), "nobody knows when");
}

#[test]
fn a_head_that_was_rolled_back_waits_for_its_release() {
    let (before, after) = (PLANNED.0 - 1, PLANNED.0 + 1);
    let rollback = |since| held(hold(HoldKind::Rollback, "dev", since));
    let newer = RepositoryState { applied: Some("2".into()), seen: Some("2".into()), ..repository() };
    for (repository, holds, config, expected) in [
        (repository(), rollback(after), config("dev", None), vec!["hold"]),
        (repository(), rollback(after), config("dev", Some(None)), vec!["hold"]),
        (repository(), rollback(after), config("dev", Some(Some(Outcome::FAIL))), vec![]),
        (repository(), rollback(after), config("production", None), vec![]),
        (repository(), rollback(before), config("dev", None), vec![]),
        (repository(), held(hold(HoldKind::Person, "dev", after)), config("dev", None), vec![]),
        (newer, rollback(after), config("dev", None), vec![]),
    ] {
        let found = kinds(&repository, &holds, std::slice::from_ref(&config), &[]);
        assert_eq!(found, Some(expected), "{repository:?} under {holds:?} with {config:?}");
    }
}
