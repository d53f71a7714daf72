//! What of a revision goes on by itself, as its plan and its runs say.

use super::*;
use crate::model::hold::ProjectHolds;
use crate::model::plan::PAUSED;
use crate::model::state::RepositoryState;
use crate::report::rest::{self, Around};

/// What is waited for once nothing goes on by itself.
fn waits(
    stages: &[StagePlan],
    runs: &[Run],
    left: &BTreeMap<StageName, bool>,
    down: bool,
) -> Option<Vec<&'static str>> {
    let revision = revision(stages.to_vec(), StatusDetail::Hooks);
    let repository = RepositoryState { down, ..RepositoryState::new("repo".into(), "file:///repo", "main") };
    let services = services(&revision, runs, left);
    let summary = comes_to(&revision);
    let facts = Facts { down, ..facts(&revision, &services, &summary) };
    let holds = ProjectHolds::none("shop".into());
    let around = Around { revision: &revision, repository: Some(&repository), holds: &holds, configs: &[] };
    let waits = rest::waits(&around, &rest::open(&around, &facts, |_, _| true)?)?;
    Some(waits.iter().map(|wait| wait.kind.as_str()).collect())
}

#[test]
fn a_revision_goes_on_as_long_as_a_run_or_what_is_elsewhere_does() {
    let dev = |decision| stage("dev", StageStart::Push, vec![part("web", 1, decision, None)]);
    let production = || stage("production", after("dev"), vec![part("web", 1, Decision::Deploy, Some("dev"))]);
    let mut paused = dev(Decision::Wait);
    paused.services[0].changes[0].cause = PAUSED.to_owned();
    let by_hand = stage("spare", StageStart::ByHand, vec![part("web", 1, Decision::Deploy, None)]);
    let first = || sequence("1", "dev", "web", 1, &[]);
    let passed = || runs(ended(first(), Outcome::PASS, ""), Vec::new());
    let check = |state| {
        let check = SequenceRun { state, delivery: None, ..sequence("2", "dev", "web", 1, &[]) };
        [passed(), runs(check, Vec::new())].concat()
    };
    let elsewhere = BTreeMap::new();
    let failed_elsewhere = BTreeMap::from([("dev".into(), false)]);
    for (stages, runs, left, expected) in [
        (two_stages(), Vec::new(), &elsewhere, None),
        (two_stages(), runs(first(), Vec::new()), &elsewhere, None),
        (two_stages(), runs(ended(first(), Outcome::FAIL, "no"), Vec::new()), &elsewhere, Some(vec![])),
        (vec![paused], Vec::new(), &elsewhere, Some(vec!["paused"])),
        (vec![dev(Decision::Wait)], Vec::new(), &elsewhere, Some(vec!["plan"])),
        (vec![dev(Decision::Deploy), by_hand], passed(), &elsewhere, Some(vec!["byHand"])),
        (vec![dev(Decision::Deploy)], check(SequenceState::Queued), &elsewhere, None),
        (vec![production()], Vec::new(), &elsewhere, None),
        (vec![production()], Vec::new(), &failed_elsewhere, Some(vec![])),
    ] {
        assert_eq!(waits(&stages, &runs, left, false), expected, "{stages:?} with {runs:?} and {left:?}");
    }
    assert_eq!(waits(&two_stages(), &[], &elsewhere, true), Some(vec!["down"]));
}

#[test]
fn what_would_start_says_that_its_repository_is_down() {
    let (deploys, mut tests_again) = (two_stages(), two_stages());
    let part = &mut tests_again[0].services[0];
    (part.changes[0].decision, part.runs_again) = (Decision::None, Some("`delivery` has not passed with this".into()));
    for stages in [deploys, tests_again] {
        let revision = revision(stages, StatusDetail::Hooks);
        let services = services(&revision, &[], &BTreeMap::new());
        let told = render(&Facts { down: true, ..facts(&revision, &services, &comes_to(&revision)) });
        let says =
            |context: &str| told.iter().find(|status| status.context == context).map(|it| it.description.as_str());
        assert_eq!(says("launchway/dev/web"), Some("repo is down: `launchway sync repo --up` brings it back"));
        assert_eq!(says("launchway/production/web"), Some("waits for dev to pass"));
    }
}
