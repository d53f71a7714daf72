use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::model::project::Project;
use crate::model::shipyard::{Selector, Sequence, SequenceTrigger, Shipyard, Stage, Task};
use crate::model::time::Timestamp;
use crate::plan::build::{Revision, build, effect};
use crate::testing::world::{deployment_config, hook, project};

/// `dev`, and `production` after it with a test; `web` has a hook.
fn declared(image: &str) -> Project {
    let delivery = Shipyard::implicit().stages.remove(0).sequences.remove(0);
    let test = Task::named("test");
    let after = SequenceTrigger { event: "dev.delivery.finished".into(), selector: Selector::default() };
    let tasks = delivery.tasks.iter().cloned().chain([test]).collect();
    let follows = Sequence { triggered_on: vec![after], tasks, ..delivery.clone() };
    let stage = |name: &str, sequence| Stage { name: name.into(), sequences: vec![sequence] };
    let stages = vec![stage("dev", delivery), stage("production", follows)];
    let strategy = json!({"strategy": {"type": "Recreate", "recreateParams": {"pre": hook("Abort")}}});
    let mut project = project(Shipyard { name: "shop".into(), stages, ..Shipyard::default() }, &[]);
    for stage in &mut project.stages {
        stage.objects = [Arc::new(deployment_config("web", image, 1, strategy.clone()))].into_iter().collect();
    }
    project
}

fn plan(image: &str, commit: &str, subject: &str, at: i64) -> Plan {
    let revision = Revision {
        repository: "repo".into(),
        commit: commit.into(),
        subject: subject.to_owned(),
        at: Timestamp(at),
        prune_allowed: false,
    };
    build(&declared(image), &revision, &BTreeMap::new()).unwrap()
}

fn head() -> CommitId {
    CommitId::from("1111111111111111111111111111111111111111")
}

#[test]
fn the_plan_is_told_stage_by_stage_with_hooks_tasks_and_warnings() {
    let plan = plan("nginx", "2222222222222222222222222222222222222222", "Merge", 1);
    let warning = "web.yaml:3:5: warning: spec.strategie: unknown key (did you mean `strategy`?)".to_owned();
    let foreseen = Foreseen::Planned(Box::new(plan), vec![warning.clone()]);
    let told = comment("main", &head(), &foreseen, None);
    for expected in [
        "Merging `1111111` into `main` does this:",
        "**`dev`**, with the push:\n\n- create `DeploymentConfig/web`",
        "  - runs `pre (Abort): true`",
        "**`production`**, after `dev.delivery.finished`, with the tasks `test`:",
        &format!("Warnings:\n\n    {warning}\n"),
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let status = status(&head(), &foreseen).unwrap();
    assert_eq!((status.commit, status.context.as_str()), (head(), "launchway/plan"));
    assert_eq!(
        (status.state, &*status.description),
        (StatusState::Success, "merging it: dev: 1 create; production: 1 create")
    );
}

#[test]
fn what_keeps_a_merge_from_being_planned_is_told_with_its_place() {
    let problem = "web.yaml:7:3: error: spec.replicas: a number was expected".to_owned();
    for (foreseen, state, line, text) in [
        (
            Foreseen::Conflicts(vec!["web.yaml".to_owned(), "a `b`".to_owned()]),
            StatusState::Failure,
            "cannot be merged: 2 files in conflict, such as web.yaml",
            "- `web.yaml`\n- `` a `b` ``\n",
        ),
        (
            Foreseen::Broken(vec![problem]),
            StatusState::Error,
            "merging it: 1 problem: web.yaml:7:3: error: spec.replicas: a number was expected",
            "    web.yaml:7:3: error: spec.replicas: a number was expected\n",
        ),
        (
            Foreseen::Refused("it deletes everything".to_owned()),
            StatusState::Failure,
            "merging it is refused: it deletes everything",
            "would be refused: `it deletes everything`",
        ),
    ] {
        let (status, told) = (status(&head(), &foreseen).unwrap(), comment("main", &head(), &foreseen, None));
        assert_eq!((status.state, &*status.description), (state, line));
        assert!(told.contains(text), "{told}");
    }
}

#[test]
fn of_what_is_elsewhere_nothing_is_told_but_that() {
    let told = comment("main", &head(), &Foreseen::Elsewhere, None);
    assert!(told.contains("Merging `1111111` into `main` is not planned: it is in another repository"), "{told}");
    assert_eq!(status(&head(), &Foreseen::Elsewhere), None);
}

#[test]
fn what_users_write_neither_links_nor_calls_anybody_and_is_bounded() {
    let broken = Foreseen::Broken((0..200).map(|number| format!("{number}.yaml:1:1: error: @ann\n<b>")).collect());
    let told = comment("ma`in", &head(), &broken, None);
    assert!(told.contains("    0.yaml:1:1: error: @ann <b>\n") && told.contains("and 160 more"), "{told}");
    assert!(told.contains("``ma`in``"), "{told}");
}

#[test]
fn a_plan_does_the_same_whatever_its_revision_is_called() {
    let merged = effect(&plan("nginx", "1", "Merge", 1));
    assert_eq!(merged, effect(&plan("nginx", "2", "Merge pull request 7", 2)));
    assert_ne!(merged, effect(&plan("httpd", "1", "Merge", 1)));
}

#[test]
fn a_marker_is_that_of_one_pull_request_and_shows_nothing_of_the_seed() {
    let of = |seed: u8, number: u64| marker(&Seed::new([seed; 32]), &"shop".into(), number);
    assert_eq!(of(7, 1), of(7, 1));
    assert!(of(7, 1) != of(7, 2) && of(7, 1) != of(8, 1));
    assert_eq!(of(7, 1).len(), "launchway/plan 0123456789abcdef".len(), "{}", of(7, 1));
    assert!(!of(7, 1).contains("0707"));
}
