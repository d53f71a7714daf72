//! In whose hands it is what a deployment config should run, and what becomes of that.

use proptest::prelude::*;

use super::*;
use crate::engine::fixtures::{NOW, down, repository};
use crate::model::deployment_config::HookPoint;
use crate::model::run::{DeploymentFailure, HookRecord};
use crate::model::state::RepositoryState;
use crate::model::wanted::Fallback;

/// Version 2 is attempted while version 1 serves, and the run of version 2 has it in its hands.
fn taking_over() -> Memory {
    let by = deploying(delivery("s1", "b"), 2);
    let memory = Memory::default().with(attempted(serving(1, "a"), "b", &by, None)).with(run(&by)).with(repository());
    memory.with(deployed(deployment(2, "b", &by, Phase::New)))
}

fn disowned(reason: &str) -> Event {
    Event::Disowned { reason: reason.into() }
}

#[test]
fn what_should_run_is_in_the_hands_of_the_last_run_that_took_it() {
    let third = deployed(deployment(3, "c", &delivery("s2", "c"), Phase::New));
    let take = |memory: &Memory, by: u32| {
        memory.decide(|transition| own(transition, &web(), &web().deployment(by))).expect("it is taken")
    };
    let memory = taking_over().with(third);
    let made = take(&memory, 3);
    assert_eq!(made.only::<ConfigState>().wanted.owner, Some(web().deployment(3)));
    assert_eq!(made.told(&web().deployment(2)), [&disowned("version 3 of ccccccc has taken over")]);
    assert!(take(&memory, 2).changes_nothing(), "it has it already");
    let made = take(&memory.with(down()), 3);
    assert_eq!(made.told(&web().deployment(3)), [&disowned("taken down by bob")]);
    assert!(take(&Memory::default(), 3).changes_nothing(), "there is nothing to take");
}

#[test]
fn only_the_run_that_has_it_in_its_hands_changes_what_should_run() {
    let target = Wanted { generation: 9, targets: BTreeMap::from([(2, Target::ALL)]), ..Wanted::default() };
    let ask = |state: Option<ConfigState>| {
        let memory = state.into_iter().fold(taking_over(), Memory::with);
        let ask =
            |transition: &mut Transition<'_>| want(transition, &web(), web().deployment(2), Some(1), target.clone());
        memory.decide(ask).expect("it is answered")
    };
    let scaled = Scaled { replicas: 4, by: "ann".into(), at: Timestamp(0) };
    let own = attempted(ConfigState { scaled: Some(scaled), ..serving(1, "a") }, "b", &delivery("s1", "b"), None);
    let made = ask(Some(own.clone()));
    let fallback = Some(Fallback { version: 1, replicas: 1 });
    let owner = Some(web().deployment(2));
    assert_eq!(made.only::<ConfigState>().wanted, Wanted { owner, replicas: 4, fallback, ..target.clone() });
    let owned_by = |owner: Option<&str>, removed| {
        Some(ConfigState {
            removed,
            wanted: Wanted { owner: owner.map(Into::into), ..own.wanted.clone() },
            ..own.clone()
        })
    };
    for (state, reason) in [
        (owned_by(Some("other"), false), "run other has taken over"),
        (owned_by(None, false), "it was taken out of its hands"),
        (owned_by(None, true), "it is declared no longer"),
    ] {
        let made = ask(state);
        assert_eq!(made.told(&web().deployment(2)), [&disowned(reason)]);
        assert!(made.written::<ConfigState>().iter().all(|state| state.wanted.targets != target.targets), "{reason}");
    }
}

#[test]
fn what_gives_way_leaves_what_serves_to_be_wanted() {
    let give_way =
        |memory: &Memory| memory.decide(|transition| give_way(transition, &web(), "undone")).expect("it does");
    let made = give_way(&taking_over());
    let targets = BTreeMap::from([(1, Target::ALL)]);
    let wanted = &made.only::<ConfigState>().wanted;
    assert_eq!((&wanted.owner, &wanted.targets, wanted.generation), (&None, &targets, 4));
    assert_eq!(made.told(&web().deployment(2)), [&disowned("undone")]);
    assert!(give_way(&Memory::default().with(serving(1, "a"))).changes_nothing(), "nobody changes it");
}

#[test]
fn what_is_taken_down_runs_nothing_and_what_attempts_it_hears_of_it() {
    let made = taking_over().with(down()).decide(|transition| quiesce(transition, &web(), "ann")).expect("it ends");
    let state = made.only::<ConfigState>();
    assert_eq!(state.wanted, Wanted { generation: 4, ..Wanted::default() });
    assert_eq!(state.attempted.as_ref().and_then(|attempt| attempt.outcome), Some(Outcome::SUPERSEDED));
    assert_eq!((&state.serving, state.removed), (&Some(version(1, "a")), false), "it stays declared");
    assert_eq!(made.told(&web().deployment(2)), [&disowned("taken down by ann")]);
    assert_eq!(made.told(&"s1".into())[0], &slot::taken_down("ann"));
}

#[test]
fn an_attempt_that_is_taken_down_is_over_at_once_also_while_its_hook_is_still_to_end() {
    let (point, by, pod) = (HookPoint::Pre, RunId::new("s1"), "web-2-hook-pre".into());
    let hook = HookRecord { point, by, pod, started_at: NOW, ended_at: None, outcome: None };
    let fresh = deployment(2, "b", &deploying(delivery("s1", "b"), 2), Phase::New);
    let hooked = DeploymentRun { step: DeploymentStep::Pre, hooks: vec![hook], ..fresh };
    let mut memory = taking_over().with(deployed(hooked));
    memory.commit(|transition| quiesce(transition, &web(), "ann")).expect("it ends");
    assert_eq!(memory.get::<Run>(web().deployment(2)).ended_at(), None, "its hook has not ended");
    let attempt = memory.get::<ConfigState>(web()).attempted.as_ref().expect("an attempt");
    assert_eq!(attempt.outcome, Some(Outcome::SUPERSEDED));
}

#[test]
fn what_served_serves_again_with_as_many_pods_as_a_person_asked_for() {
    let quiet = |state: ConfigState| ConfigState { wanted: state.wanted.nothing(), ..state };
    let resume = |state: ConfigState| {
        let memory = Memory::default().with(quiet(state));
        memory.decide(|transition| resume(transition.records, &web())).expect("it is brought up")
    };
    let scaled = Some(Scaled { replicas: 4, by: "ann".into(), at: Timestamp(0) });
    let made = resume(ConfigState { scaled, ..serving(2, "a") });
    let targets = BTreeMap::from([(2, Target::ALL)]);
    assert_eq!(made.only::<ConfigState>().wanted, Wanted { generation: 5, targets, replicas: 4, ..Wanted::default() });
    assert!(resume(declared("a")).changes_nothing(), "nothing has served");
    assert!(resume(ConfigState { removed: true, ..serving(2, "a") }).changes_nothing(), "it is declared no longer");
}

#[test]
fn a_version_that_passed_serves_and_any_other_end_is_remembered() {
    let open = attempted(serving(1, "a"), "b", &delivery("s1", "b"), None);
    let by = web().deployment(2);
    for (by, number, outcome, serves, attempt) in [
        (by.clone(), 2, Outcome::PASS, 2, None),
        (by.clone(), 2, Outcome::FAIL, 1, Some(Some(Outcome::FAIL))),
        (by, 1, Outcome::PASS, 1, Some(None)),
        ("other".into(), 2, Outcome::PASS, 2, None),
    ] {
        let end = |transition: &mut Transition<'_>| attempt_ended(transition, &web(), &by, number, outcome);
        let made = Memory::default().with(open.clone()).decide(end).expect("it has ended");
        let state = made.only::<ConfigState>();
        let case = format!("{by} {number} {outcome:?}");
        assert_eq!(state.serving.as_ref().map(|serving| serving.number), Some(serves), "{case}");
        assert_eq!(state.attempted.as_ref().map(|attempt| attempt.outcome), attempt, "{case}");
        assert_eq!(state.wanted.owner.is_none(), by == web().deployment(2), "{case}: who has it gives it back");
    }
}

#[test]
fn what_a_deployment_began_to_exchange_is_gone_back_from_where_the_next_one_ends_before_it_changes_anything() {
    let (one, other) = (deploying(delivery("s1", "b"), 2), deploying(delivery("s2", "c"), 3));
    let failed_at = |step| DeploymentFailure { step, outcome: Outcome::SUPERSEDED, message: "gave way".into() };
    let ended = |number, image, by, step| {
        let failure = Some(failed_at(step));
        deployed(DeploymentRun { failure, ..deployment(number, image, by, Phase::Failed) })
    };
    let (open, over) =
        (deployed(deployment(2, "b", &one, Phase::Running)), ended(2, "b", &one, DeploymentStep::Rollout));
    let half_way = BTreeMap::from([(2, Target::ALL)]);
    let left = |earlier: &Run, owner: u32, repository: RepositoryState| {
        let state = attempted(attempted(serving(1, "a"), "b", &one, None), "c", &other, None);
        let fallback = Some(Fallback { version: 1, replicas: 1 });
        let owner = Some(web().deployment(owner));
        let wanted = Wanted { owner, targets: half_way.clone(), fallback, ..state.wanted };
        let memory = Memory::default().with(ConfigState { wanted, ..state }).with(earlier.clone()).with(repository);
        let memory = memory.with(ended(3, "c", &other, DeploymentStep::Prepare));
        let by = web().deployment(3);
        let end = |transition: &mut Transition<'_>| attempt_ended(transition, &web(), &by, 3, Outcome::ABORTED);
        memory.decide(end).expect("it has ended").only::<ConfigState>().wanted.clone()
    };
    let back = BTreeMap::from([(1, Target::ALL)]);
    for (case, wanted, targets) in [
        ("nobody else is left", left(&over, 3, repository()), &back),
        ("the one before is still to end", left(&open, 3, repository()), &half_way),
        ("another has taken it over", left(&over, 4, repository()), &half_way),
        ("nothing is to run", left(&over, 3, down()), &half_way),
    ] {
        assert_eq!(&wanted.targets, targets, "{case}");
        assert_eq!(wanted.generation, if *targets == back { 4 } else { 3 }, "{case}");
        assert_eq!(wanted.fallback.is_some(), wanted.owner.is_some(), "{case}");
    }
}

/// What may happen to what a deployment config should run, in any order.
#[derive(Clone, Debug)]
enum Deed {
    Own(u32),
    Want(u32),
    End(u32),
    GiveWay,
    Quiesce,
    Resume,
}

fn deeds() -> impl Strategy<Value = Deed> {
    let version = || 2_u32..4;
    prop_oneof![
        version().prop_map(Deed::Own),
        version().prop_map(Deed::Want),
        version().prop_map(Deed::End),
        Just(Deed::GiveWay),
        Just(Deed::Quiesce),
        Just(Deed::Resume),
    ]
}

fn does(transition: &mut Transition<'_>, deed: &Deed) -> Result<(), Undecided> {
    let run = |version: u32| web().deployment(version);
    match *deed {
        Deed::Own(version) => own(transition, &web(), &run(version)),
        Deed::Want(version) => {
            let targets = BTreeMap::from([(version, Target::ALL)]);
            let generation = 1 + transition.records.configs.get(&web())?.map_or(0, |state| state.wanted.generation);
            want(transition, &web(), run(version), Some(1), Wanted { generation, targets, ..Wanted::default() })
        }
        Deed::End(version) => attempt_ended(transition, &web(), &run(version), version, Outcome::FAIL),
        Deed::GiveWay => give_way(transition, &web(), "undone"),
        Deed::Quiesce => quiesce(transition, &web(), "ann"),
        Deed::Resume => resume(transition.records, &web()),
    }
}

proptest! {
    #[test]
    fn no_run_changes_what_it_has_not_taken_or_has_lost(deeds in prop::collection::vec(deeds(), 1..12)) {
        let mut memory = Memory::default().with(serving(1, "a"));
        let mut owner: Option<u32> = None;
        for deed in deeds {
            let before = memory.get::<ConfigState>(web()).wanted.clone();
            memory.commit(|transition| does(transition, &deed)).expect("it is answered");
            let now = &memory.get::<ConfigState>(web()).wanted;
            match deed {
                Deed::Own(version) => owner = Some(version),
                Deed::Want(version) if owner == Some(version) => prop_assert!(now.targets.keys().eq([&version])),
                Deed::Want(_) => prop_assert_eq!(now, &before),
                Deed::End(version) => {
                    owner = owner.filter(|owner| *owner != version);
                    prop_assert!(owner.is_some() || now.targets.keys().eq([&1]), "what serves is wanted");
                }
                Deed::GiveWay | Deed::Quiesce | Deed::Resume => owner = None,
            }
            prop_assert_eq!(&now.owner, &owner.map(|version| web().deployment(version)));
            let is_other = now.targets != before.targets;
            prop_assert!(now.generation >= before.generation + u64::from(is_other), "old answers never pass for new ones");
        }
    }
}

#[test]
fn what_another_life_has_left_serves_on_until_a_deployment_of_this_life_exchanges_versions() {
    let wanted = Wanted { generation: 9, targets: BTreeMap::from([(2, Target::ALL)]), ..Wanted::default() };
    let since = NOW;
    let ask = |created_at: i64, step: DeploymentStep| {
        let by = deploying(delivery("s1", "b"), 2);
        let inherited = ConfigState { inherited: Some(since), ..attempted(serving(1, "a"), "b", &by, None) };
        let own = deployment(2, "b", &by, Phase::New);
        let memory = taking_over().with(inherited);
        let memory = memory.with(deployed(DeploymentRun { created_at: Timestamp(created_at), step, ..own }));
        let ask = |transition: &mut Transition<'_>| want(transition, &web(), web().deployment(2), None, wanted.clone());
        let made = memory.decide(ask).expect("it is answered");
        let state = made.only::<ConfigState>();
        let told = made.told(&web().deployment(2)).into_iter().cloned().collect::<Vec<Event>>();
        (state.inherited.is_some(), state.wanted.owner.is_some(), told)
    };
    use DeploymentStep::{Restore, Rollout};
    let gives_way = disowned("another life of the store has left what serves");
    for (case, created_at, step, expected) in [
        ("one of this life exchanges versions", NOW.0, Rollout, (false, true, vec![])),
        (
            "one that has exchanged none has nothing to go back to",
            NOW.0,
            Restore,
            (true, false, vec![gives_way.clone()]),
        ),
        ("one of the other life goes on", NOW.0 - 1, Rollout, (true, true, vec![])),
        ("one of the other life has nothing to go back to", NOW.0 - 1, Restore, (true, false, vec![gives_way])),
    ] {
        assert_eq!(ask(created_at, step), expected, "{case}");
    }
}

#[test]
fn a_version_that_another_life_had_not_reached_is_of_this_one_whatever_the_clock_says() {
    let by = deploying(delivery("s1", "b"), 2);
    let begun = attempted(serving(1, "a"), "b", &by, None);
    for (reached, gives_way) in [(1, false), (2, true)] {
        let state = ConfigState { inherited: Some(NOW), inherited_version: Some(reached), ..begun.clone() };
        let state =
            ConfigState { wanted: Wanted { owner: Some(web().deployment(2)), ..begun.wanted.clone() }, ..state };
        let run = DeploymentRun { created_at: Timestamp(NOW.0 - 9), ..deployment(2, "b", &by, Phase::New) };
        let (memory, generation) = (Memory::default().with(state).with(deployed(run)), begun.wanted.generation);
        let given_up = memory.decide(|it| give_way_to_what_is_left(it, &web(), generation)).expect("it is decided");
        assert_eq!(given_up.touched.configs.contains(&web()), gives_way, "version {reached} was reached");
        let none = memory.decide(|it| give_way_to_what_is_left(it, &web(), generation + 1)).expect("it is decided");
        assert!(none.touched.configs.is_empty(), "something else is wanted by now");
    }
}
