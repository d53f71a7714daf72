use super::*;
use crate::engine::fixtures::{
    DOWN, HELD, Made, Memory, NOW, applied, delivery as run_of, deploying, down, ended, holds, passed, plan, project,
    refused, repository, sequence, service, serving, slot, web,
};
use crate::model::hold::{HoldKind, ProjectHolds};
use crate::model::ids::{ConfigKey, Digest};
use crate::model::outcome::Outcome;
use crate::model::plan::Decision;
use crate::model::proposal::{Proposal, ProposalState, Proposed};
use crate::model::slot::{Delivered, PassedState, SlotState};
use crate::model::state::{ConfigState, Versioned};
use crate::model::unique_name::{NameOwner, UniqueName};
use crate::plan::build;

mod claims;
mod due;
mod refused;
mod trigger;

type Stages = BTreeMap<StageName, Applied>;

const FILES: [&str; 2] = ["shipyard dev production", "declare web image=b"];

fn watched() -> Watched {
    Watched { name: "repo".into(), url: "file:///repo".into(), branch: "main".into(), rewrite_allowed: false }
}

fn head(commit: &str, lines: &[&str]) -> Head {
    let declared = Ok(Arc::new(project(lines)));
    Head {
        commit: commit.into(),
        subject: "colors".into(),
        descends: true,
        declared,
        lifted: Vec::new(),
        warnings: Vec::new(),
    }
}

fn rewritten(commit: &str) -> Head {
    Head { descends: false, ..head(commit, &FILES) }
}

/// `web` serves in `dev` with an image.
fn stages(image: &str) -> Stages {
    BTreeMap::from([("dev".into(), applied(&serving(1, image)))])
}

fn synced(memory: &Memory, head: &Head) -> Made<RevisionResult> {
    memory
        .decide(|it| decide(it, &watched(), head, &Planning::against(stages("a")), None))
        .expect("a head is always judged")
}

/// What is remembered before a head is synced.
fn before() -> Memory {
    let problem = Some("no route to the host".to_owned());
    Memory::default().with(RepositoryState { problem, ..repository() }).with(serving(1, "a"))
}

fn revision_of(made: &Made<RevisionResult>) -> Option<&RevisionState> {
    made.transaction.writes.iter().find_map(|write| match write {
        Write::Revision(revision) => Some(&**revision),
        _ => None,
    })
}

/// The slot of `web` in `dev`, in which content was delivered last, and did not pass.
fn delivered(content: Digest) -> SlotState {
    let last = Delivered { run: "s0".into(), content, procedure: "".into(), deployed: true };
    SlotState { last_delivery: Some(last), ..slot(None, &[]) }
}

/// The stages in which something is started.
fn starts_in<T>(made: &Made<T>) -> Vec<&str> {
    made.started().iter().map(|run| run.service.stage.as_str()).collect()
}

#[test]
fn a_head_is_planned_and_what_is_due_is_started() {
    let made = synced(&before(), &head("c2", &FILES));
    let RevisionResult::Planned(plan) = &made.answer else { unreachable!("{:?}", made.answer) };
    assert_eq!((plan.commit.as_str(), starts_in(&made)), ("c2", vec!["dev"]), "production waits for dev");
    assert_eq!((made.started()[0].plan.as_ref(), &*made.started()[0].cause), (Some(&plan.id), "push"));
    let commit = || Some(CommitId::new("c2"));
    let (applied, planned_at) = (commit(), Some(NOW));
    let state = RepositoryState { applied, seen: commit(), synced_at: Some(NOW), planned_at, ..repository() };
    assert_eq!(*made.only::<RepositoryState>(), state);
    let revision = revision_of(&made).expect("it is remembered");
    assert_eq!((&revision.result, &*revision.subject, revision.at, revision.again), (&made.answer, "colors", NOW, 0));
    for commit in ["c1", "c2"] {
        assert!(made.touched.reports.contains(&("repo".into(), commit.into())), "{commit} has news");
    }
}

#[test]
fn a_newer_plan_is_later_also_where_the_clock_goes_back() {
    let ahead = Timestamp(NOW.0 + 5);
    let known = RepositoryState { planned_at: Some(ahead), ..repository() };
    for (commit, expected) in [("c2", Timestamp(ahead.0 + 1)), ("c1", ahead)] {
        let made = synced(&Memory::default().with(known.clone()), &head(commit, &FILES));
        let RevisionResult::Planned(plan) = &made.answer else { unreachable!("{:?}", made.answer) };
        assert_eq!((plan.at, made.only::<RepositoryState>().planned_at), (expected, Some(expected)), "{commit}");
    }
}

#[test]
fn the_first_plan_of_a_project_is_later_than_those_of_whoever_had_it_before() {
    let ahead = Timestamp(NOW.0 + 5);
    let (name, applied) = ("other".into(), None);
    let other = RepositoryState { name, applied, project: None, planned_at: Some(ahead), ..repository() };
    for (project, expected) in [(None, Timestamp(ahead.0 + 1)), (repository().project, NOW)] {
        let memory = Memory::default().with(other.clone()).with(RepositoryState { project, ..repository() });
        assert_eq!(synced(&memory, &head("c2", &FILES)).only::<RepositoryState>().planned_at, Some(expected));
    }
}

#[test]
fn a_repository_is_known_from_its_first_head_on_and_its_names_are_its_own() {
    let made = synced(&Memory::default(), &head("c2", &FILES));
    let state = made.only::<RepositoryState>();
    assert_eq!((&*state.url, &*state.branch, &state.project), ("file:///repo", "main", &repository().project));
    assert_eq!(state.namespaces, repository().namespaces);
    let names: Vec<String> = made.written::<NameOwner>().iter().map(|owner| owner.name.to_string()).collect();
    assert_eq!(names, ["project `shop`", "namespace `shop-dev`", "namespace `shop-production`"]);
}

#[test]
fn a_head_that_is_refused_changes_nothing_and_says_why() {
    let name = UniqueName::Project("shop".into());
    let owner = NameOwner {
        name,
        repository: "other".into(),
        project: "shop".into(),
        stage: None,
        claimants: ["repo".into()].into(),
    };
    let broken = Head { declared: Err(vec!["web.yaml:3: no image".into()]), ..head("c2", &FILES) };
    let refused = |reason: &str| RevisionResult::Refused { reason: reason.into() };
    let taken = "repository `other` declares project `shop` already; rename one in launchway.yaml, or, if `other` is what this one was \
                 called before, call it so again in the configuration";
    let rewrite = "history was rewritten: c2 does not descend from c1; `launchway sync --accept-rewrite c2` accepts it";
    let refused_name = Some(owner.name.clone());
    let waiting = before().with(RepositoryState { refused_name: refused_name.clone(), ..repository() });
    for (memory, head, expected, refused_name) in [
        (before(), rewritten("c2"), refused(rewrite), None),
        (before(), broken, RevisionResult::Broken { problems: vec!["web.yaml:3: no image".into()] }, None),
        (waiting.with(owner), head("c2", &FILES), refused(taken), refused_name),
    ] {
        let made = synced(&memory, &head);
        assert_eq!(made.answer, expected);
        let state = RepositoryState { seen: Some("c2".into()), synced_at: Some(NOW), refused_name, ..repository() };
        assert_eq!(*made.only::<RepositoryState>(), state, "it is seen, and not applied");
        assert_eq!(revision_of(&made).map(|revision| &revision.result), Some(&expected));
        assert!(made.started().is_empty() && made.written::<NameOwner>().is_empty(), "{made:#?}");
    }
    let nothing = synced(&before(), &head("c2", &["shipyard dev"]));
    assert!(
        matches!(&nothing.answer, RevisionResult::Refused { reason } if reason.contains("declares nothing")),
        "{nothing:#?}"
    );
}

#[test]
fn rewritten_history_is_taken_if_the_configuration_or_a_person_says_so() {
    let judged = |state: RepositoryState, rewrite_allowed| {
        let (memory, watched) = (before().with(state), Watched { rewrite_allowed, ..watched() });
        let decide = |it: &mut Transition<'_>| {
            decide(it, &watched, &rewritten("c2c2c2c2"), &Planning::against(stages("a")), None)
        };
        memory.decide(decide).expect("a head is always judged").answer
    };
    let accepted = |word: &str| RepositoryState { accepted_rewrite: Some(word.into()), ..repository() };
    for (state, allowed, planned) in [
        (repository(), false, false),
        (repository(), true, true),
        (accepted("c2c2"), false, true),
        (accepted("c3c3"), false, false),
    ] {
        let result = judged(state, allowed);
        assert_eq!(matches!(result, RevisionResult::Planned(_)), planned, "{result:?}");
    }
    // A person's word is used up by the next revision that is applied.
    let words = RepositoryState { allowed_prune: Some("c2c2".into()), ..accepted("c2c2") };
    for (commit, kept) in [("c2c2c2c2", true), ("c4", false)] {
        let made = synced(&before().with(words.clone()), &head(commit, &FILES));
        let state = made.only::<RepositoryState>();
        assert_eq!((state.accepted_rewrite.is_some(), state.allowed_prune.is_some()), (kept, kept), "{commit}");
    }
}

#[test]
fn a_head_that_was_synced_is_not_news_again() {
    let mut memory = before();
    let head = head("c2", &FILES);
    let made =
        memory.commit(|it| decide(it, &watched(), &head, &Planning::against(stages("a")), None)).expect("it is judged");
    let revision = revision_of(&made).expect("it is remembered").clone();
    let known = Known { revision, overtaken: Vec::new() };
    let rests = BTreeMap::from([("dev".into(), applied(&serving(1, "b"))), ("production".into(), there("b"))]);
    let again = |known| {
        memory
            .decide(|it| decide(it, &watched(), &head, &Planning::against(rests.clone()), known))
            .expect("it is judged")
    };
    let same = again(Some(&known));
    assert!(same.changes_nothing(), "{same:#?}");
    assert!(revision_of(&again(None)).is_some(), "what nobody remembers is written");
}

#[test]
fn what_a_head_that_comes_back_had_taken_the_place_of_is_told_by_whom_it_is_taken_now() {
    let mut memory = before();
    let made = memory
        .commit(|it| decide(it, &watched(), &head("c2", &FILES), &Planning::against(stages("a")), None))
        .expect("it is judged");
    let revision = revision_of(&made).expect("it is remembered").clone();
    memory
        .commit(|it| decide(it, &watched(), &head("c3", &FILES), &Planning::against(stages("a")), None))
        .expect("it is judged");
    let known = Known { revision, overtaken: vec!["c1".into()] };
    let made =
        memory.decide(|it| decide(it, &watched(), &head("c2", &FILES), &Planning::against(stages("a")), Some(&known)));
    let reported = ["c1", "c2", "c3"].map(|commit| ("repo".into(), commit.into()));
    assert_eq!(made.expect("it is judged").touched.reports, BTreeSet::from(reported));
}

/// `web` serves in `production` with an image.
fn there(image: &str) -> Applied {
    let key = ConfigKey { stage: "production".into(), ..web() };
    applied(&ConfigState { key, ..serving(1, image) })
}

#[test]
fn nothing_starts_in_a_repository_that_is_down() {
    let made = synced(&before().with(down()), &head("c2", &FILES));
    assert!(matches!(made.answer, RevisionResult::Planned(_)) && made.started().is_empty());
    assert!(made.only::<RepositoryState>().down);
}

#[test]
fn what_people_let_go_on_is_remembered_as_far_as_it_is_still_good_for_something() {
    let lifted = vec![Lifted { config: web(), by: "ann".into(), since: NOW }];
    let before = before().with(ProjectHolds { lifted: lifted.clone(), ..holds(HoldKind::Person) });
    let made = synced(&before, &head("c2", &FILES));
    assert!(made.only::<ProjectHolds>().lifted.is_empty());
    let kept = synced(&before, &Head { lifted, ..head("c2", &FILES) });
    assert!(kept.written::<ProjectHolds>().is_empty());
}

#[test]
fn a_rollback_that_was_merged_is_held_no_longer_and_who_waits_is_examined() {
    let head = head("c2", &FILES);
    let declared = head.declared.as_ref().unwrap().stages[0].objects.of_service(&"web".into()).next().unwrap().clone();
    let member = Proposed { config: web(), to: 1, bad: "sha256:bad".into(), good: declared.digest.clone() };
    let proposal = Proposal {
        branch: "launchway/rollback-web-1".to_owned(),
        members: vec![member],
        cause: "pre hook".to_owned(),
        by: None,
        notes: String::new(),
        asked_at: NOW,
        state: ProposalState::Open,
        base: None,
        pushed: None,
        pull_request: None,
        told: None,
        problem: String::new(),
    };
    let mut held = holds(HoldKind::Rollback);
    (held.holds[0].scope.stage, held.holds[0].scope.service) = (Some("dev".into()), Some("web".into()));
    let memory = before().with(RepositoryState { proposals: vec![proposal], ..repository() }).with(held);
    let made = synced(&memory, &head);
    assert!(made.only::<ProjectHolds>().holds.is_empty(), "{made:#?}");
    assert_eq!(made.only::<RepositoryState>().proposals[0].state, ProposalState::Restored { commit: "c2".into() });
}

#[test]
fn what_passed_before_what_was_delivered_last_counts_again_and_is_not_forgotten() {
    let key = PassedKey { service: service("dev"), content: "sha256:1".into() };
    let last = Delivered { run: "s0".into(), content: "sha256:2".into(), procedure: "".into(), deployed: false };
    let last = SlotState { last_delivery: Some(last), ..slot(None, &[]) };
    let memory = before().with(passed(key.clone())).with(last);
    let (again, nothing) = (BTreeMap::from([("web".into(), key.content)]), Applied::default());
    for (seen, forgets, passes) in [
        (Applied { passed_before: again, ..nothing.clone() }, true, true),
        (Applied { withdrawn: ["web".into()].into(), ..nothing.clone() }, true, false),
        (nothing, false, false),
    ] {
        let stages = BTreeMap::from([("dev".into(), seen)]);
        let made = memory.decide(|it| take_up_passed(it, &project(&FILES), &stages)).expect("it is read");
        let slots = made.written::<SlotState>();
        assert_eq!(slots.iter().any(|slot| slot.last_delivery.is_none()), forgets);
        assert_eq!(made.written::<PassedState>().iter().any(|passed| passed.at == NOW), passes);
    }
}

#[test]
fn a_revision_that_is_read_again_keeps_what_its_readers_were_told() {
    let files = project(&["shipyard dev", "declare web image=b"]);
    let of = |image: &str| RevisionResult::Planned(Box::new(plan(&files, "c2", &stages(image))));
    let (acts, rests) = (of("a"), of("b"));
    let left = |content: &str| {
        let RevisionResult::Planned(mut plan) = of("a") else { unreachable!() };
        let parts = plan.stages.iter_mut().flat_map(|stage| &mut stage.services);
        parts.for_each(|part| {
            part.content = content.into();
            part.changes.iter_mut().for_each(|change| change.decision = Decision::None);
        });
        RevisionResult::Planned(plan)
    };
    let as_planned = build::content_of(&files.stages[0], &"web".into());
    let (as_before, let_go) = (left(as_planned.as_str()), left("sha256:unpaused"));
    let broken = RevisionResult::Broken { problems: Vec::new() };
    let state = |result: &RevisionResult| RevisionState {
        repository: "repo".into(),
        commit: "c2".into(),
        subject: String::new(),
        at: NOW,
        result: result.clone(),
        summary: None,
        again: 0,
        warnings: Vec::new(),
    };
    let first = match &acts {
        RevisionResult::Planned(plan) => Some(summary(plan)),
        _ => None,
    };
    assert_eq!(revised(None, state(&acts), true), state(&acts), "nobody was told anything");
    for (known, new, starts, expected) in [
        (&acts, &rests, false, state(&acts)),
        (&acts, &as_before, false, state(&acts)),
        (&acts, &let_go, false, RevisionState { summary: first.clone(), again: 1, ..state(&let_go) }),
        (&acts, &rests, true, RevisionState { summary: first.clone(), again: 1, ..state(&rests) }),
        (&acts, &acts, false, RevisionState { summary: first, again: 1, ..state(&acts) }),
        (&rests, &rests, false, RevisionState { again: 1, ..state(&rests) }),
        (&broken, &acts, true, RevisionState { again: 1, ..state(&acts) }),
    ] {
        assert_eq!(revised(Some(&state(known)), state(new), starts), expected);
    }
}

#[test]
fn a_run_starts_while_it_waits_for_the_first_time_is_at_its_tasks_or_has_done_them() {
    let queued = run_of("s1", "a");
    let ending = SequenceState::Ending { task: 0, outcome: Outcome::ABORTED };
    for (version, run, starts) in [
        (0, queued.clone(), true),
        (1, queued.clone(), false),
        (0, deploying(queued.clone(), 1), true),
        (1, deploying(queued.clone(), 1), true),
        (1, SequenceRun { state: ending, ..queued.clone() }, false),
        (1, ended(queued.clone(), Outcome::SUPERSEDED), false),
        (1, ended(queued, Outcome::PASS), true),
    ] {
        let write = Write::Run(Versioned { version, value: sequence(&run) }.shared());
        assert_eq!(starting(write).is_some(), starts, "{version}: {:?}", run.state);
    }
    assert!(starting(Write::Slot(Versioned { version: 0, value: slot(None, &[]) }.shared())).is_none());
}
