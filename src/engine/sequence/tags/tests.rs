use std::collections::BTreeMap;

use super::*;
use crate::engine::fixtures::{Memory, plan, project, repository, serving};
use crate::engine::sequence::from_git::{note, remember};
use crate::model::state::RepositoryState;

const WAITS: [&str; 4] =
    ["shipyard dev", "sequence dev announce:mail", "triggered dev.announce on git.tag.created", "declare web image=a"];

/// What is remembered where `lines` are applied.
fn memory(lines: &[&str]) -> Memory {
    Memory::default().with(repository()).with(serving(1, "a")).planned(&plan(&project(lines), "c1", &BTreeMap::new()))
}

fn reference(name: &str) -> String {
    format!("refs/tags/{name}")
}

/// `v1=a1`: a tag of a commit; `v1=o1>a1`: an annotated one.
fn tags(all: &[&str]) -> Tags {
    let tag = |said: &&str| {
        let (name, ids) = said.split_once('=').expect("a tag");
        let tag = match ids.split_once('>') {
            Some((object, commit)) => Tag { object: object.into(), target: Some(commit.into()) },
            None => Tag::of(ids),
        };
        (reference(name), tag)
    };
    all.iter().map(tag).collect()
}

/// Compares, in a life of the store, and says what is noted by then, as `<name> <commit>`.
fn compared_in(memory: &mut Memory, life: &str, all: &[&str]) -> Vec<String> {
    let decide = |transition: &mut Transition<'_>| compare(transition, &"repo".into(), &tags(all), &life.into());
    let has_more = memory.commit(decide).expect("nothing is refused").answer;
    assert!(!has_more, "all are noted at once");
    noted(memory)
}

fn compared(memory: &mut Memory, all: &[&str]) -> Vec<String> {
    compared_in(memory, "life", all)
}

fn noted(memory: &Memory) -> Vec<String> {
    let state: &RepositoryState = memory.get(RepositoryName::new("repo"));
    let told = |event: &GitEvent| format!("{} {}", event.tag_name().unwrap(), event.commit.as_deref().unwrap());
    state.happened.iter().map(told).collect()
}

/// All that is noted was told.
fn tell(memory: &mut Memory) {
    let state: &RepositoryState = memory.get(RepositoryName::new("repo"));
    for event in state.happened.clone() {
        memory.commit(|transition| remember(transition, &"repo".into(), &event)).expect("it is remembered");
    }
}

/// What a host tells of a tag is noted.
fn hosted(memory: &mut Memory, name: &str, id: &str) -> Result<(), String> {
    let event = GitEvent::tag(reference(name), id.into());
    memory.commit(|transition| note(transition, &"repo".into(), &event)).expect("nothing is refused").answer
}

#[test]
fn tags_that_come_or_move_are_new_once() {
    let mut memory = memory(&WAITS);
    for (there, new) in [
        (&["v1=a1"][..], &[][..]), // it was there when the first sequence began to wait
        (&["v1=a1"], &[]),
        (&["v1=a1", "v2=a2", "v3=a3"], &["v2 a2", "v3 a3"]),
        (&["v1=a1", "v2=a9", "v3=a3"], &["v2 a9"]),
        (&["v2=a9"], &[]),
        (&["v2=a9", "v3=a3"], &[]), // it was told before
        (&["v2=a9", "v3=a4"], &["v3 a4"]),
        (&[], &[]),
        (&["v1=a1"], &[]), // it was gone for a while
        (&["v1=a2"], &["v1 a2"]),
        (&["v1=a2", "v1.10=b", "v1.9=b", "v1.09.1=b", "w/2=b"], &["v1.9 b", "v1.09.1 b", "v1.10 b", "w/2 b"]),
    ] {
        assert_eq!(compared(&mut memory, there), new, "{there:?}");
        assert_eq!(compared(&mut memory, there), new, "as long as it is not told");
        tell(&mut memory);
    }
}

#[test]
fn whichever_id_a_host_names_a_tag_by_it_is_told_once_with_its_commit() {
    for (id, first) in [("o1", true), ("a1", true), ("o1", false), ("a1", false)] {
        let mut memory = memory(&WAITS);
        compared(&mut memory, &[]);
        if first {
            assert_eq!(hosted(&mut memory, "v1", id), Ok(()));
        }
        assert_eq!(compared(&mut memory, &["v1=o1>a1"]), ["v1 a1"], "{id} {first}");
        assert!(hosted(&mut memory, "v1", id).unwrap_err().contains("was told before"), "{id}: while it is noted");
        tell(&mut memory);
        assert!(hosted(&mut memory, "v1", id).unwrap_err().contains("was told before"), "{id}: once it was told");
        assert_eq!(compared(&mut memory, &["v1=o1>a1"]), [""; 0]);
        assert_eq!(compared(&mut memory, &["v1=o2>a1"]), [""; 0], "another tag at the same commit");
        assert!(hosted(&mut memory, "v1", id).unwrap_err().contains("was told before"), "{id}: it has moved since");
    }
}

#[test]
fn what_a_host_tells_of_a_tag_that_was_there_already_counts() {
    let mut memory = memory(&WAITS);
    compared(&mut memory, &["v1=o1>a1"]);
    assert_eq!(hosted(&mut memory, "v1", "o1"), Ok(()), "it was pushed with the sequence that waits for it");
    assert_eq!(compared(&mut memory, &["v1=o1>a1"]), ["v1 a1"]);
    assert_eq!(hosted(&mut memory, "v1", "b2"), Ok(()), "it was moved since");
    assert_eq!(compared(&mut memory, &["v1=o1>a1"]), ["v1 a1", "v1 b2"]);
}

#[test]
fn many_at_once_come_some_after_the_others() {
    let mut memory = memory(&WAITS);
    compared(&mut memory, &[]);
    let all: Tags = (0..AT_ONCE * 2 + 7).map(|number| (reference(&format!("v{number}")), Tag::of("a1"))).collect();
    let (mut told, mut passes) = (Vec::new(), 0);
    loop {
        let decide = |transition: &mut Transition<'_>| compare(transition, &"repo".into(), &all, &"life".into());
        let made = memory.commit(decide).expect("nothing is refused");
        assert!(made.rounds < 5, "all is asked for together: {} rounds", made.rounds);
        let noted = noted(&memory);
        assert!(noted.len() <= AT_ONCE, "{noted:?}");
        told.extend(noted);
        tell(&mut memory);
        passes += 1;
        if !made.answer {
            break;
        }
    }
    let expected: Vec<String> = (0..all.len()).map(|number| format!("v{number} a1")).collect();
    assert_eq!((told, passes), (expected, 3));
}

#[test]
fn what_hosts_have_told_leaves_room_for_the_rest_of_it() {
    let mut memory = memory(&WAITS);
    compared(&mut memory, &[]);
    for number in 0..MOST - 1 {
        assert_eq!(hosted(&mut memory, &format!("w{number}"), "a1"), Ok(()));
    }
    let all = tags(&["v1=a1", "v2=a2"]);
    for (has_more, count) in [(true, MOST), (false, 1)] {
        let decide = |transition: &mut Transition<'_>| compare(transition, &"repo".into(), &all, &"life".into());
        assert_eq!(memory.commit(decide).expect("nothing is refused").answer, has_more);
        assert_eq!(noted(&memory).len(), count);
        tell(&mut memory);
    }
}

#[test]
fn what_comes_while_nobody_listens_is_not_new() {
    let mut memory = memory(&WAITS);
    compared(&mut memory, &["v1=a1"]);
    assert_eq!(compared_in(&mut memory, "restored", &["v1=a1", "v2=a2"]), [""; 0], "another life of the store");
    let mut down = memory.clone().with(RepositoryState { down: true, ..repository() });
    assert_eq!(compared_in(&mut down, "restored", &["v3=a3"]), [""; 0], "it is down");
    let mut up = down.with(repository());
    assert_eq!(compared_in(&mut up, "restored", &["v3=a3", "v4=a4"]), ["v4 a4"]);
    let moved = RepositoryState { url: "https://elsewhere/shop".into(), ..repository() };
    let mut moved = up.clone().with(moved);
    assert_eq!(compared_in(&mut moved, "restored", &["v8=a8"]), [""; 0], "another repository");
    let mut deaf = up.with(repository()).planned(&plan(&project(&WAITS[..2]), "c1", &BTreeMap::new()));
    let awaited =
        |memory: &mut Memory| memory.commit(|it| are_awaited(it, &"repo".into())).expect("it is known").answer;
    assert!(!awaited(&mut deaf), "no sequence waits");
    let mut again = deaf.planned(&plan(&project(&WAITS), "c1", &BTreeMap::new()));
    assert!(awaited(&mut again));
    assert_eq!(compared_in(&mut again, "restored", &["v5=a5"]), [""; 0]);
    assert_eq!(compared_in(&mut again, "restored", &["v5=a5", "v6=a6"]), ["v6 a6"]);
}
