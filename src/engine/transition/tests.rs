use std::collections::BTreeMap;

use super::*;
use crate::engine::fixtures::{
    LIMITS, Made, Memory, NOW, declared, delivery, deploying, deployment, down, ended, holds, passed, plan, project,
    repository, sequence, service, serving, slot, web,
};
use crate::model::action::Lane;
use crate::model::event::Timer;
use crate::model::hold::HoldKind;
use crate::model::outcome::PodOutcome;
use crate::model::plan::Decision;
use crate::model::project::Procedure;
use crate::model::run::{Phase, RunKind, TaskRecord, TaskTry};
use crate::model::shipyard::Task;
use crate::model::state::{ConfigState, RepositoryState, RevisionResult, RevisionState};

fn taken(memory: &Memory, inputs: &[Input]) -> Made<()> {
    let take = |transition: &mut Transition<'_>| inputs.iter().try_for_each(|input| transition.take(input));
    memory.decide(take).expect("inputs are facts")
}

fn cancel(run: &str) -> Input {
    Input::Tell(run.into(), Event::Cancel { outcome: Outcome::ABORTED, reason: "no".into() })
}

/// One run waits for the slot of `web`.
fn waits(run: &SequenceRun) -> Memory {
    Memory::default().with(sequence(run)).with(slot(None, &[run])).with(repository())
}

#[test]
fn a_run_enters_its_slot_behind_all_others() {
    let (holder, before) = (deploying(delivery("s1", "a"), 1), delivery("s2", "b"));
    let memory =
        Memory::default().with(slot(Some(&holder), &[&before])).with(sequence(&holder)).with(sequence(&before));
    let tasks = SequenceRun { delivery: None, ..delivery("s3", "c") };
    let made = memory.decide(|transition| transition.start(tasks.clone())).expect("it starts");
    assert_eq!(*made.only::<SlotState>(), slot(Some(&holder), &[&before, &tasks]));
    let [started] = made.started()[..] else { unreachable!("{made:#?}") };
    assert_eq!((started.state, started.limits), (SequenceState::Queued, LIMITS), "limits are those of now");
}

#[test]
fn history_says_why_a_run_was_started() {
    for (forced, expected) in [(None, "push"), (Some("ann: urgent"), "push, forced by ann: urgent")] {
        let run = SequenceRun { forced: forced.map(str::to_owned), ..delivery("s1", "a") };
        let made = Memory::default().decide(|transition| transition.start(run.clone())).expect("it starts");
        assert_eq!(made.told(&run.id)[..2], [&Event::Queued { cause: expected.into() }, &Event::Admitted]);
    }
}

#[test]
fn whoever_comes_to_a_free_slot_begins_in_the_same_transaction() {
    let run = delivery("s1", "a");
    let made = Memory::default().decide(|transition| transition.start(run.clone())).expect("it starts");
    assert_eq!(*made.only::<SlotState>(), slot(Some(&run), &[]));
    assert_eq!(made.started()[0].state, SequenceState::Running { task: 0 });
    assert_eq!(made.started()[0].tasks[0].deployments[0].run, Some(web().deployment(1)));
    assert_eq!(made.only::<ConfigState>().wanted.owner, Some(web().deployment(1)));
    let touched = Touched {
        configs: BTreeSet::from([web()]),
        begun: made.touched.begun.clone(),
        asked: [Lane::Runs, Lane::Images].into(),
        reports: BTreeSet::from([("repo".into(), run.commit)]),
        ..Touched::default()
    };
    assert_eq!(made.touched, touched);
    assert!(made.touched.begun.len() == 2 && made.touched.begun.contains(&RunKind::Deployment), "{touched:?}");
}

#[test]
fn what_a_run_brings_is_decided_again_when_its_turn_comes() {
    let by_hand = |run: &mut SequenceRun| {
        run.delivery.iter_mut().flat_map(|delivery| &mut delivery.changes).for_each(|change| change.reasons.clear());
    };
    let (planned, mut asked) = (delivery("s1", "a"), delivery("s1", "a"));
    by_hand(&mut asked);
    for (run, decision, version) in [(planned, Decision::None, 1), (asked, Decision::Deploy, 2)] {
        let memory = waits(&run).with(serving(1, "a"));
        let made = taken(&memory, &[Input::Examine(service("dev"))]);
        let run = made.written::<Run>().into_iter().find_map(Run::sequence).expect("it has begun");
        assert_eq!(run.changes()[0].decision, decision, "meanwhile the same content serves");
        let latest = made.written::<ConfigState>().first().map_or(1, |state| state.latest_version);
        assert_eq!((run.outcome.is_some(), latest), (version == 1, version));
    }
}

#[test]
fn a_fact_that_a_run_does_not_wait_for_changes_nothing() {
    let (queued, over) = (delivery("s1", "a"), ended(delivery("s2", "a"), Outcome::PASS));
    let memory = Memory::default().with(sequence(&queued)).with(sequence(&over));
    for input in [Input::Tell("s1".into(), Event::Prepared), cancel("s2"), cancel("unheard-of")] {
        let made = taken(&memory, std::slice::from_ref(&input));
        assert!(made.changes_nothing() && made.touched == Touched::default(), "{input:?}: {made:#?}");
    }
}

#[test]
fn a_fact_is_remembered_once_however_often_it_is_told() {
    let run = delivery("s1", "a");
    let mut memory = waits(&run);
    let take =
        |transition: &mut Transition<'_>| [cancel("s1"), cancel("s1")].iter().try_for_each(|it| transition.take(it));
    let made = memory.commit(take).expect("inputs are facts");
    assert_eq!(made.told(&run.id).len(), 1);
    assert_eq!(made.touched.ended, [(RunKind::Sequence, Outcome::ABORTED)]);
    assert!(made.touched.begun.is_empty(), "it is not new");
    assert!(memory.decide(take).expect("inputs are facts").changes_nothing());
}

#[test]
fn a_slot_says_whose_turn_it_is_and_why_others_wait() {
    let run = delivery("s1", "a");
    let holder = deploying(SequenceRun { delivery: None, ..delivery("s0", "a") }, 1);
    let busy = waits(&run).with(sequence(&holder)).with(slot(Some(&holder), &[&run]));
    let waiting = |reason: &str| Event::Waiting { reason: reason.into() };
    for (memory, expected) in [
        (waits(&run), Event::Admitted),
        (waits(&run).with(holds(HoldKind::Person)), waiting("held by bob: sale")),
        (busy, waiting("waits for delivery of aaaaaaa to end")),
        (waits(&run).with(down()), slot::taken_down("bob")),
    ] {
        let mut memory = memory;
        let examine = |transition: &mut Transition<'_>| transition.take(&Input::Examine(service("dev")));
        let made = memory.commit(examine).expect("a slot is examined");
        assert_eq!(made.told(&run.id)[0], &expected);
        let again = memory.decide(examine).expect("a slot is examined");
        assert!(again.changes_nothing(), "{expected:?}: {again:#?}");
    }
}

#[test]
fn more_slots_than_fit_are_left_for_later_and_the_others_are_read_at_once() {
    let slots = |count: usize| {
        let slot = |number| ServiceKey { service: format!("s{number}").as_str().into(), ..service("dev") };
        (0..count).map(slot).collect::<BTreeSet<ServiceKey>>()
    };
    let examined = |slots: &BTreeSet<ServiceKey>| {
        taken(&Memory::default(), &slots.iter().cloned().map(Input::Examine).collect::<Vec<_>>())
    };
    let (few, many) = (slots(SLOTS_AT_ONCE), slots(SLOTS_AT_ONCE + 1));
    let made = examined(&few);
    assert_eq!((made.touched.slots.len(), made.transaction.reads.len(), made.rounds), (0, SLOTS_AT_ONCE, 1));
    let made = examined(&many);
    assert_eq!((made.touched.slots, made.transaction.reads.len()), (many, 0));
}

#[test]
fn a_deployment_config_is_forgotten_only_while_it_is_gone() {
    for (removed, forgotten) in [(true, true), (false, false)] {
        let memory = Memory::default().with(ConfigState { removed, ..declared("a") });
        let made = taken(&memory, &[Input::Forget(web())]);
        let writes = &made.transaction.writes[..];
        assert_eq!(matches!(writes, [Write::RemoveConfig(_)]), forgotten, "{writes:?}");
    }
    assert!(taken(&Memory::default(), &[Input::Forget(web())]).changes_nothing());
}

#[test]
fn a_repository_says_what_keeps_a_writer_from_writing_until_nothing_does() {
    let mut memory = Memory::default().with(repository());
    for (problem, expected) in [(Some("no route"), Some("notes: no route")), (None, None)] {
        let input = Input::StatusProblem("repo".into(), "notes".into(), problem.map(str::to_owned));
        let take = |transition: &mut Transition<'_>| transition.take(&input);
        memory.commit(take).expect("an input is a fact");
        let state = memory.get::<RepositoryState>(RepositoryName::new("repo"));
        assert_eq!(state.status_problem().as_deref(), expected);
        assert!(memory.decide(take).expect("an input is a fact").changes_nothing());
        assert!(taken(&Memory::default(), &[input]).changes_nothing(), "nothing is known of it");
    }
}

#[test]
fn timers_are_due_later_or_withdrawn_and_all_else_is_asked_for_now() {
    let (due, timer) = (Timestamp(NOW.0 + 5), Timer::Progress);
    let run = RunId::new("s1");
    let later = asked(&run, Action::SetTimer { timer, due }, NOW);
    assert!(matches!(later, Write::Ask { due: at, at: NOW, .. } if at == due), "{later:?}");
    let never = asked(&run, Action::ClearTimer { timer }, NOW);
    assert!(matches!(&never, Write::Withdraw { key, .. } if key == "timer/progress"), "{never:?}");
    let now = asked(&run, Action::report(&"repo".into(), &"c1".into(), &"notes".into()), NOW);
    assert!(matches!(now, Write::Ask { due: NOW, at: NOW, .. }), "{now:?}");
}

#[test]
fn what_passed_is_remembered_until_it_has_not_passed_the_next_time() {
    let key = PassedKey { service: service("dev"), content: "sha256:1".into() };
    let (service, content) = (key.service.clone(), key.content.clone());
    let procedure = "sha256:2".into();
    let passes = Effect::Passed { service: service.clone(), content: content.clone(), commit: "c2".into(), procedure };
    let fails = Effect::NotPassed { service, content };
    let apply = |memory: &Memory, effect: &Effect| {
        let decided = Decided { effects: vec![effect.clone()], actions: Vec::new() };
        memory.decide(|transition| transition.apply(&"s1".into(), decided.clone())).expect("it is applied")
    };
    let before = Memory::default().with(passed(key));
    let made = apply(&before, &passes);
    let now = made.only::<PassedState>();
    assert_eq!((now.commit.as_str(), now.at, now.procedure.as_str()), ("c2", NOW, "sha256:2"));
    assert!(matches!(apply(&before, &fails).transaction.writes[..], [Write::RemovePassed(_)]));
    assert!(apply(&Memory::default(), &fails).changes_nothing());
}

#[test]
fn a_plan_that_is_stored_with_the_transition_is_the_newest_of_the_services_that_it_names() {
    let files = project(&["shipyard dev", "declare web image=a", "declare api image=a"]);
    let (new, old) = (plan(&files, "c2", &BTreeMap::new()), plan(&files, "c1", &BTreeMap::new()));
    let memory = Memory::default().planned(&old);
    let only_api = new.about(&"api".into());
    for (stored, expected) in [(&new, "c2"), (&only_api, "c1")] {
        let decide = |transition: &mut Transition<'_>| {
            transition.write(Write::Plan(Box::new(stored.clone())));
            let by_id = transition.plan_of(&stored.id, &"api".into())?;
            Ok((transition.newest_plan_of(&service("dev"))?, by_id))
        };
        let (newest, by_id) = memory.decide(decide).expect("plans are read").answer;
        let newest = newest.expect("a plan names the service");
        assert_eq!(newest.commit.as_str(), expected);
        assert!(newest.stages[0].services.len() == 1, "it is about one service: {newest:?}");
        assert_eq!(by_id, Some(only_api.clone()));
    }
}

#[test]
fn whoever_follows_services_statuses_and_plans_is_woken() {
    let result = RevisionResult::Planned(Box::new(plan(&project(&["shipyard dev"]), "c2", &BTreeMap::new())));
    let (repository, commit, subject) = (RepositoryName::new("repo"), CommitId::new("c2"), String::new());
    let again = 0;
    let revision =
        RevisionState { repository, commit, subject, at: NOW, result, summary: None, again, warnings: Vec::new() };
    let inputs =
        [Input::Write(Box::new(Write::Revision(Box::new(revision)))), Input::Report("repo".into(), "c2".into())];
    let made = taken(&Memory::default(), &inputs);
    assert_eq!(made.touched.planned, BTreeSet::from(["repo".into()]));
    assert_eq!(made.touched.reports, BTreeSet::from([("repo".into(), "c2".into())]));
    let switch = |transition: &mut Transition<'_>| {
        transition.switch();
        Ok(())
    };
    let switched = Memory::default().decide(switch).expect("it is switched");
    assert!(switched.touched.services && !made.touched.services);
}

#[test]
fn a_deployment_that_ends_is_counted_by_its_failure() {
    let parent = deploying(delivery("s1", "a"), 1);
    let open = deployment(1, "a", &parent, Phase::New);
    let memory = Memory::default().with(Run::Deployment(Box::new(open.clone()))).with(sequence(&parent));
    let failed = Event::PrepareFailed { message: "no such image".into() };
    let made = taken(&memory, &[Input::Tell(open.id, failed)]);
    assert_eq!(made.touched.ended, [(RunKind::Sequence, Outcome::FAIL), (RunKind::Deployment, Outcome::FAIL)]);
}

/// The same delivery after a check, which runs.
fn checked(run: SequenceRun) -> SequenceRun {
    let mut sequence = run.procedure.sequence.clone();
    sequence.tasks.insert(0, Task { triggered_after_ms: 10, ..Task::named("check") });
    let check = TaskRecord { name: "check".into(), step: "check".into(), ..run.tasks[0].clone() };
    let tasks = std::iter::once(check).chain(run.tasks.clone()).collect();
    let procedure = crate::manifest::digest::stored(Procedure { sequence, ..Procedure::default() });
    SequenceRun { procedure, tasks, state: SequenceState::Running { task: 0 }, started_at: Some(NOW), ..run }
}

#[test]
fn what_a_newer_run_replaces_ends_before_it_has_changed_anything() {
    let mut old = checked(delivery("s1", "a"));
    let once = TaskTry {
        pod: "web-check-s1".into(),
        started_at: NOW,
        running_since: Some(NOW),
        ended_at: None,
        timed_out: false,
        outcome: None,
    };
    old.tasks[0].tries = vec![once];
    let new = delivery("s2", "b");
    let memory = |held: bool| {
        let memory = Memory::default().with(sequence(&old)).with(sequence(&new)).with(repository());
        let memory = memory.with(slot(Some(&old), &[&new])).with(serving(1, "c"));
        if held { memory.with(holds(HoldKind::Person)) } else { memory }
    };
    let end = Input::Tell("s1".into(), Event::pod_ended("web-check-s1".into(), PodOutcome::Succeeded));
    let outcome = |held| {
        let made = taken(&memory(held), std::slice::from_ref(&end));
        let attempted = made.only::<ConfigState>().attempted.clone().expect("one of the two deploys");
        (attempted.run, made.touched.ended.len())
    };
    assert_eq!(outcome(false), ("s2".into(), 1), "the old one has started no deployment");
    assert_eq!(outcome(true), ("s1".into(), 0), "what is held takes nobody's place");
}
