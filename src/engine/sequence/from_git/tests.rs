use std::collections::BTreeMap;

use super::*;
use crate::engine::fixtures::{Memory, down, plan, project, repository, serving};
use crate::engine::sequence::incoming;
use crate::model::git_event::GitEventKind;

const FILES: [&str; 5] = [
    "shipyard dev production",
    "sequence dev announce:mail",
    "triggered dev.announce on git.tag.created",
    "declare web image=a",
    "object ConfigMap names service=shared a=b",
];

fn tag(name: &str, commit: &str) -> GitEvent {
    GitEvent::tag(format!("refs/tags/{name}"), commit.into())
}

fn merge() -> GitEvent {
    let (kind, reference) = (GitEventKind::PullRequestMerged, "refs/heads/main".into());
    GitEvent { kind, reference, commit: None, number: Some(7) }
}

/// What is remembered where `c1` is applied.
fn memory(lines: &[&str]) -> Memory {
    Memory::default().with(repository()).with(serving(1, "a")).planned(&plan(&project(lines), "c1", &BTreeMap::new()))
}

fn noted(memory: &mut Memory, event: &GitEvent) -> Result<(), String> {
    memory.commit(|transition| note(transition, &"repo".into(), event)).expect("nothing is refused").answer
}

/// Whom an event concerns, as `<stage>/<service>`.
fn concerned(lines: &[&str], event: &GitEvent) -> Vec<String> {
    let told = told(event, &"repo".into(), &project(lines), &"c1".into());
    told.iter().map(|event| format!("{}/{}", event.text("stage"), event.text("service"))).collect()
}

#[test]
fn what_happened_is_noted_once_where_a_sequence_waits_for_it() {
    let mut memory = memory(&FILES);
    assert_eq!(noted(&mut memory, &merge()), Err("no sequence is triggered on `git.pull-request.merged`".into()));
    assert_eq!(noted(&mut memory, &tag("v1", "a1")), Ok(()));
    let again = || Err("`git.tag.created refs/tags/v1 a1` was told before".to_owned());
    assert_eq!(noted(&mut memory, &tag("v1", "a1")), again());
    assert_eq!(noted(&mut memory, &tag("v1", "a2")), Ok(()), "it was moved");
    let state: &RepositoryState = memory.get(crate::model::ids::RepositoryName::new("repo"));
    assert_eq!(state.happened, [tag("v1", "a1"), tag("v1", "a2")]);
    memory.commit(|transition| remember(transition, &"repo".into(), &tag("v1", "a1"))).expect("it is remembered");
    let state: &RepositoryState = memory.get(crate::model::ids::RepositoryName::new("repo"));
    assert_eq!(state.happened, [tag("v1", "a2")]);
    assert_eq!(noted(&mut memory, &tag("v1", "a1")), again(), "also once it was told");
    for number in 0..MOST - 1 {
        assert_eq!(noted(&mut memory, &tag("v2", &number.to_string())), Ok(()));
    }
    assert_eq!(noted(&mut memory, &tag("v3", "a1")), Err("100 others have to be told first".into()));
    for nowhere in [Memory::default(), self::memory(&FILES).with(down())] {
        assert!(noted(&mut nowhere.clone(), &tag("v1", "a1")).is_err());
    }
}

#[test]
fn it_happened_to_each_service_unless_a_tag_names_one() {
    let more = ["declare cart image=b stage=dev"];
    let both = [&FILES[..], &more].concat();
    assert_eq!(concerned(&FILES, &tag("v1", "a1")), ["dev/web", "production/web"], "what is shared is no service");
    assert_eq!(concerned(&both, &tag("v1", "a1")), ["dev/cart", "dev/web", "production/web"]);
    assert_eq!(concerned(&both, &tag("cart/v1", "a1")), ["dev/cart"], "also where a stage does not declare it");
    assert_eq!(concerned(&both, &tag("docs/v1", "a1")), ["dev/cart", "dev/web", "production/web"]);
    assert_eq!(concerned(&both, &merge()), ["dev/cart", "dev/web", "production/web"]);
    assert_eq!(concerned(&FILES[..3], &tag("v1", "a1")), ["dev/shop", "production/shop"], "it declares no service");
    let delivered = [&FILES[..], &["triggered production on git.tag.created"]].concat();
    assert_eq!(concerned(&delivered, &tag("v1", "a1")), ["dev/web", "production/shared", "production/web"]);
}

#[test]
fn the_revision_of_a_tag_is_its_own_if_that_was_planned() {
    let files = project(&FILES);
    let memory = memory(&FILES).planned(&plan(&files, "c0", &BTreeMap::new()));
    let of = |commit: &str| {
        let decide = |transition: &mut Transition<'_>| revision(transition, &repository(), &tag("v1", commit));
        memory.decide(decide).expect("it is found").answer
    };
    assert_eq!((of("c0"), of("c9")), (Some("c0".into()), Some("c1".into())));
}

#[test]
fn what_waits_for_it_starts_once_and_knows_what_happened() {
    let mut memory = memory(&FILES);
    let told = told(&tag("v1", "a1"), &"repo".into(), &project(&FILES), &"c1".into());
    let (mut started, mut delivers) = (Vec::new(), Vec::new());
    for event in told.iter().chain(&told) {
        let made = memory.commit(|transition| incoming::receive(transition, &"repo".into(), event));
        let made = made.expect("nothing is refused");
        started.extend(made.started().into_iter().cloned());
        delivers.extend(made.answer.delivers);
    }
    let [run] = &started[..] else { unreachable!("not one: {started:#?}") };
    assert_eq!((run.event_name().as_str(), run.service.service.as_str()), ("dev.announce", "web"));
    assert_eq!(run.cause, "git.tag.created by git/refs/tags/v1");
    assert_eq!((&run.data["git"]["tag"], &run.data["git"]["commit"]), (&"v1".into(), &"a1".into()));
    assert!(delivers.is_empty());
}
