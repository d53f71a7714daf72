use serde_json::json;

use super::*;
use crate::engine::fixtures::{
    Made, Memory, NOW, attempted, delivery, deployed, deployment, ended, holds, object, refused, repository, serving,
    web,
};
use crate::model::ids::ConfigKey;
use crate::model::project::OnFailure;
use crate::model::proposal::PullRequestLink;
use crate::model::run::{DeploymentFailure, DeploymentStep, Phase};
use crate::model::shipyard::Shipyard;
use crate::testing::world::{deployment_config, project};

const BRANCH: &str = "launchway/rollback-web-1";

/// What a head declares in the stage `dev`.
fn says(image: &str) -> Project {
    let mut project = project(Shipyard::implicit(), &[deployment_config("web", image, 1, json!({}))]);
    project.stages[0].name = "dev".into();
    project
}

fn run(number: u32, image: &str, phase: Phase) -> DeploymentRun {
    deployment(number, image, &ended(delivery("s0", image), Outcome::PASS), phase)
}

/// Version 1 serves, and version 2 has failed.
fn failed() -> Memory {
    let by = ended(delivery("s1", "b"), Outcome::FAIL);
    let state = attempted(serving(1, "a"), "b", &by, Some(Outcome::FAIL));
    let memory = Memory::default().with(repository()).with(state);
    memory.with(deployed(run(1, "a", Phase::Complete))).with(deployed(failing(OnFailure::PullRequest)))
}

fn failing(on_failure: OnFailure) -> DeploymentRun {
    let failure = DeploymentFailure { step: DeploymentStep::Pre, outcome: Outcome::FAIL, message: "pre hook".into() };
    let message = "version 2 failed: pre hook; version 1 serves".into();
    DeploymentRun { failure: Some(failure), on_failure, message, ..run(2, "b", Phase::Failed) }
}

fn asked(to: RollbackTo) -> Rollback {
    Rollback { config: web(), to, parts: RollbackParts::ALL, notes: "orders fail".into(), may_be_absent: false }
}

fn proposes(memory: &Memory, asked: &Rollback, declared: &Project) -> Result<Made<(Started, Proposal)>, Failure> {
    let asked = std::slice::from_ref(asked);
    memory.decide(|transition| propose(transition, &"repo".into(), asked, declared, "ann"))
}

fn known(memory: &Memory) -> Vec<Proposal> {
    memory.get::<RepositoryState>(crate::model::transaction::RecordKey::Repository("repo".into())).proposals.clone()
}

fn after_failure(memory: &mut Memory, run: &DeploymentRun) {
    memory.commit(|transition| after(transition, run)).expect("nothing is refused");
}

#[test]
fn what_serves_is_proposed_where_git_says_what_failed() {
    let made = proposes(&failed(), &asked(RollbackTo::LastComplete), &says("b")).expect("version 1 serves");
    let (started, proposal) = &made.answer;
    assert_eq!((started.members[0].to, &*proposal.branch), (1, BRANCH));
    assert_eq!((proposal.by.as_deref(), &*proposal.notes), (Some("ann"), "orders fail"));
    assert_eq!(proposal.cause, "web: version 2 failed: pre hook; version 1 serves");
    assert_eq!((&proposal.members[0].bad, &proposal.members[0].good), (&object("b").digest, &object("a").digest));
    assert!(made.started().is_empty(), "nothing that runs changes");
}

#[test]
fn what_cannot_be_proposed_says_why() {
    let memory = failed();
    let parts = Rollback { parts: RollbackParts::CONFIG, ..asked(RollbackTo::LastComplete) };
    let hint = "(`--to-version N` chooses another version; `launchway history` lists them)";
    let none = project(Shipyard::implicit(), &[]);
    for (asked, declared, expected) in [
        (
            parts,
            says("b"),
            "a pull request restores the files of `web` whole, not a part of what they say (leave out `--only`)"
                .to_owned(),
        ),
        (asked(RollbackTo::Version(1)), says("a"), format!("Git says already what version 1 of `web` was {hint}")),
        (
            asked(RollbackTo::Version(1)),
            none,
            "Git declares no `web` in stage dev any more (restore its file from history: `git log -- FILE`)".to_owned(),
        ),
    ] {
        assert_eq!(refused(proposes(&memory, &asked, &declared)), expected);
    }
}

#[test]
fn a_failure_proposes_once_if_its_project_wants_that() {
    for on_failure in [OnFailure::Automatic, OnFailure::None] {
        let mut memory = failed();
        after_failure(&mut memory, &failing(on_failure));
        assert_eq!(known(&memory), [], "{on_failure:?}");
    }
    let mut memory = failed();
    let run = failing(OnFailure::PullRequest);
    let cancelled = DeploymentFailure { step: DeploymentStep::Pre, outcome: Outcome::ABORTED, message: String::new() };
    after_failure(&mut memory, &DeploymentRun { failure: Some(cancelled), ..run.clone() });
    after_failure(&mut memory, &DeploymentRun { is_rollback: true, ..run.clone() });
    assert_eq!(known(&memory), [], "a person has decided");
    for _ in 0..2 {
        after_failure(&mut memory, &run);
    }
    let [proposal] = &known(&memory)[..] else { unreachable!("{memory:#?}") };
    assert_eq!((&*proposal.branch, &proposal.by, &proposal.state), (BRANCH, &None, &ProposalState::Asked));
}

#[test]
fn pushes_that_fail_one_after_the_other_are_one_incident_and_lead_to_what_was_good() {
    let failure = DeploymentFailure { step: DeploymentStep::Post, outcome: Outcome::FAIL, message: "post hook".into() };
    let serves_all_the_same = |number: u32, image: &str| DeploymentRun {
        failure: Some(failure.clone()),
        on_failure: OnFailure::PullRequest,
        previous: Some(number - 1),
        restored_as: None,
        restored_after: None,
        ..run(number, image, Phase::Complete)
    };
    let (second, third) = (serves_all_the_same(2, "b"), serves_all_the_same(3, "c"));
    let memory =
        Memory::default().with(repository()).with(serving(3, "c")).with(deployed(run(1, "a", Phase::Complete)));
    let mut memory = memory.with(deployed(second.clone())).with(deployed(third.clone()));
    after_failure(&mut memory, &second);
    let mut state = RepositoryState { proposals: known(&memory), ..repository() };
    state.proposals[0].state = ProposalState::Open;
    let bad = close(&mut state, &says("c"), &CommitId::from("ccccccc"), NOW);
    assert_eq!(bad[0].1.reason, "it failed, and ccccccc took its place");
    let mut memory = memory.with(state);
    after_failure(&mut memory, &third);
    let [proposal] = &known(&memory)[..] else { unreachable!("{memory:#?}") };
    assert_eq!((&*proposal.branch, proposal.members[0].to), (BRANCH, 1), "what failed is nothing to go back to");
    let made = proposes(&memory, &asked(RollbackTo::LastComplete), &says("d")).expect("version 1 was good");
    assert_eq!((made.answer.0.members[0].to, &*made.answer.1.branch), (1, BRANCH));
}

#[test]
fn one_that_a_person_closed_is_not_proposed_again_by_itself() {
    let mut memory = failed();
    let run = failing(OnFailure::PullRequest);
    after_failure(&mut memory, &run);
    let mut closed = known(&memory).remove(0);
    (closed.state, closed.pushed) = (ProposalState::Closed, Some("1234567".into()));
    closed.pull_request = Some(PullRequestLink { number: 7, url: "https://host/7".into() });
    let mut memory = memory.with(RepositoryState { proposals: vec![closed], ..repository() });
    after_failure(&mut memory, &run);
    assert_eq!(known(&memory)[0].state, ProposalState::Closed);
    let made = proposes(&memory, &asked(RollbackTo::LastComplete), &says("b")).expect("a person may");
    let proposal = &made.answer.1;
    assert_eq!((&proposal.pull_request, proposal.pushed.is_some()), (&None, true), "another one, from the same branch");
}

#[test]
fn it_is_over_once_git_says_something_else() {
    let commit = || CommitId::from("ccccccc");
    for (image, expected) in [
        ("b", ProposalState::Open),
        ("a", ProposalState::Restored { commit: commit() }),
        ("c", ProposalState::Overtaken { commit: commit() }),
    ] {
        let mut memory = failed();
        after_failure(&mut memory, &failing(OnFailure::PullRequest));
        let mut state = RepositoryState { proposals: known(&memory), ..repository() };
        state.proposals[0].state = ProposalState::Open;
        let bad = close(&mut state, &says(image), &commit(), NOW);
        let quarantined: Vec<&ConfigKey> = bad.iter().map(|(config, _)| config).collect();
        assert_eq!(quarantined.is_empty(), image == "b");
        assert_eq!(state.proposals[0].state, expected, "{image}");
    }
}

#[test]
fn what_had_not_failed_and_was_not_rolled_back_from_may_come_again() {
    for (image, is_quarantined) in [("a", true), ("c", false)] {
        let mut memory = failed();
        after_failure(&mut memory, &failing(OnFailure::PullRequest));
        let mut state = RepositoryState { proposals: known(&memory), ..repository() };
        state.proposals[0].cause.clear(); // a person asked, and nothing had failed
        let bad = close(&mut state, &says(image), &"ccccccc".into(), NOW);
        assert_eq!((!bad.is_empty(), state.proposals[0].is_over()), (is_quarantined, true), "{image}");
    }
}

#[test]
fn a_rollback_is_held_until_git_says_it_itself() {
    let mut memory = failed();
    after_failure(&mut memory, &failing(OnFailure::PullRequest));
    let state = RepositoryState { proposals: known(&memory), ..repository() };
    let over = |state: &RepositoryState| {
        let mut state = state.clone();
        state.proposals[0].state = ProposalState::Overtaken { commit: "ccccccc".into() };
        state
    };
    let held = |kind: HoldKind, service: &str| {
        let mut holds = holds(kind);
        (holds.holds[0].scope.stage, holds.holds[0].scope.service) = (Some("dev".into()), Some(service.into()));
        holds
    };
    let beside = {
        let worker = Object { service: "web".into(), ..deployment_config("worker", "x", 1, json!({})) };
        let mut project = project(Shipyard::implicit(), &[deployment_config("web", "a", 1, json!({})), worker]);
        project.stages[0].name = "dev".into();
        project
    };
    for (case, state, says, holds, lifted) in [
        ("what failed is still there", state.clone(), says("b"), held(HoldKind::Rollback, "web"), false),
        ("it was merged", state.clone(), says("a"), held(HoldKind::Rollback, "web"), true),
        ("something else is there", state.clone(), says("c"), held(HoldKind::Rollback, "web"), false),
        ("a person holds it", state.clone(), says("a"), held(HoldKind::Person, "web"), false),
        ("another service is held", state.clone(), says("a"), held(HoldKind::Rollback, "other"), false),
        ("the service has more", state.clone(), beside, held(HoldKind::Rollback, "web"), false),
        ("all of the project is held", state.clone(), says("a"), holds(HoldKind::Rollback), false),
        ("it was over before", over(&state), says("a"), held(HoldKind::Rollback, "web"), false),
    ] {
        assert_eq!(!fulfilled(&state, &says, &holds).is_empty(), lifted, "{case}");
    }
}

#[test]
fn each_incident_has_a_branch_of_its_own() {
    let member = |stage: &str, name: &str, to: u32| Proposed {
        config: ConfigKey { project: "shop".into(), stage: stage.into(), name: name.into() },
        to,
        bad: object("b").digest.clone(),
        good: object("a").digest.clone(),
    };
    let mut memory = failed();
    after_failure(&mut memory, &failing(OnFailure::PullRequest));
    let known = known(&memory);
    let long: Vec<Proposed> = (0..9).map(|number| member("dev", &format!("service-{number}"), 1)).collect();
    for (members, expected) in [
        (vec![member("dev", "web", 1)], "web-1"),
        (vec![member("dev", "web", 2)], "web-1"),
        (vec![member("production", "web", 1)], "production-web-1"),
        (vec![member("dev", "api", 3), member("dev", "web", 1)], "api-3-web-1"),
    ] {
        assert_eq!(name(&known, &members), format!("launchway/rollback-{expected}"));
    }
    assert!(name(&known, &long).len() < 40, "{}", name(&known, &long));
}

#[test]
fn one_that_is_over_is_looked_after_until_nothing_is_left_of_it() {
    let mut memory = failed();
    after_failure(&mut memory, &failing(OnFailure::PullRequest));
    let head = CommitId::from("ccccccc");
    let over = ProposalState::Overtaken { commit: head.clone() };
    let open = Proposal {
        state: ProposalState::Open,
        pushed: Some("1234567".into()),
        pull_request: Some(PullRequestLink { number: 7, url: "https://host/7".into() }),
        ..known(&memory).remove(0)
    };
    let overtaken = Proposal { state: over, ..open.clone() };
    let cleared = Proposal { pushed: None, ..overtaken.clone() };
    for (proposal, wants_attention, said) in [
        (&overtaken, true, "pull request #7 (https://host/7) may be closed"),
        (&cleared, false, "pull request #7 (https://host/7) is closed"),
        (&Proposal { pull_request: None, ..cleared.clone() }, false, "branch `launchway/rollback-web-1` is gone"),
        (&Proposal { problem: "no".into(), ..cleared.clone() }, false, "may be closed: no"),
    ] {
        assert_eq!(proposal.wants_attention(Some(&head)), wants_attention, "{proposal:?}");
        assert!(proposal.remark().ends_with(said), "{}", proposal.remark());
        let state = RepositoryState { proposals: vec![proposal.clone()], ..repository() };
        let made = memory.clone().with(state).decide(|it| look_after(it, &"repo".into())).expect("it is known");
        assert_eq!(made.transaction.writes.is_empty(), !wants_attention, "{proposal:?}");
    }
    // What was under way when it became over tells alone what it has left there.
    let brought = Proposal { pushed: Some("7654321".into()), ..open };
    let newer = Proposal { asked_at: Timestamp(NOW.0 + 1), state: ProposalState::Asked, ..overtaken.clone() };
    for (known, news, expected) in [
        (&overtaken, &cleared, cleared.clone()),
        (&overtaken, &brought, Proposal { pushed: brought.pushed.clone(), ..overtaken.clone() }),
        (&newer, &cleared, Proposal { pushed: None, ..newer.clone() }),
    ] {
        let mut proposals = vec![known.clone()];
        become_of(&mut proposals, news);
        assert_eq!(proposals, [expected], "{news:?}");
    }
}
