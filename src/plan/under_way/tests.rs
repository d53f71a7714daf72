use serde_json::json;

use super::*;
use crate::model::ids::RunId;
use crate::model::outcome::Outcome;
use crate::model::plan::Plan;
use crate::model::shipyard::{Selector, SequenceTrigger, Shipyard, Stage};
use crate::model::time::Timestamp;
use crate::plan::build::{Revision, build};
use crate::testing::world::{deployment_config, project};

/// `dev`, and `production` after it; each declares `web` with an image of its own.
fn declares(dev: &str, production: &str) -> Project {
    let implicit = Shipyard::implicit().stages.remove(0).sequences.remove(0);
    let after = SequenceTrigger { event: "dev.delivery.finished".into(), selector: Selector::default() };
    let follows = crate::model::shipyard::Sequence { triggered_on: vec![after], ..implicit.clone() };
    let stage = |name: &str, sequence| Stage { name: name.into(), sequences: vec![sequence] };
    let shipyard = Shipyard {
        name: "shop".into(),
        stages: vec![stage("dev", implicit), stage("production", follows)],
        ..Shipyard::default()
    };
    let mut project = project(shipyard, &[]);
    for (stage, image) in project.stages.iter_mut().zip([dev, production]) {
        stage.objects = [Arc::new(deployment_config("web", image, 1, json!({})))].into_iter().collect();
    }
    project
}

fn plan(project: &Project) -> Plan {
    let revision = Revision {
        repository: "repo".into(),
        commit: "c".into(),
        subject: String::new(),
        at: Timestamp::default(),
        prune_allowed: false,
    };
    build(project, &revision, &BTreeMap::new()).unwrap()
}

/// The delivery of a plan to a stage, begun at `at`.
fn delivery(plan: &Plan, stage: &str, at: i64) -> OpenDelivery {
    let planned = plan.stage(&stage.into()).unwrap();
    let part = planned.service(&"web".into()).unwrap();
    let procedure = delivery_procedure(plan, planned, part).unwrap();
    let place = ServiceKey { project: "shop".into(), stage: stage.into(), service: "web".into() };
    let revision = (plan.repository.clone(), plan.commit.clone());
    let draft =
        SequenceRun::draft(place, planned.destination.clone(), revision, crate::manifest::digest::stored(procedure));
    let brings = Delivery { content: part.content.clone(), changes: part.changes.clone(), configs: None };
    let (id, created_at) = (RunId::new(format!("{at}")), Timestamp(at));
    let run = SequenceRun { id, created_at, plan: Some(plan.id.clone()), delivery: Some(brings), ..draft };
    OpenDelivery { run, plan: Some(plan.clone()), newest: None }
}

/// The same, asked for by a person.
fn by_hand(delivery: OpenDelivery) -> OpenDelivery {
    OpenDelivery { run: SequenceRun { plan: None, ..delivery.run }, plan: None, newest: None }
}

/// What comes where: the image, whether it is there already, and how much else is on its way before it.
fn shown(project: &Project, deliveries: &[OpenDelivery]) -> Vec<(String, String, bool, usize)> {
    let image = |content: &Digest| {
        let of = |image: &str| crate::plan::build::content_of(&declares(image, image).stages[0], &"web".into());
        let known = ["a", "b", "c"].into_iter().find(|image| of(image) == *content);
        known.unwrap_or_default().to_owned()
    };
    let runs = last_word_first(project, deliveries.iter().map(|delivery| delivery.run.clone()).collect());
    let mut found = UnderWays::new();
    for run in &runs {
        let delivery = deliveries.iter().find(|delivery| delivery.run.id == run.id).unwrap();
        add(&mut found, project, delivery);
    }
    let shown = |(stage, services): (&StageName, &BTreeMap<ServiceName, UnderWay>)| {
        let web = &services[&"web".into()];
        (stage.to_string(), image(&web.content), web.is_here(), web.others.len())
    };
    found.iter().map(shown).collect()
}

fn row(stage: &str, image: &str, here: bool, others: usize) -> (String, String, bool, usize) {
    (stage.to_owned(), image.to_owned(), here, others)
}

#[test]
fn a_delivery_brings_its_plan_where_it_is_and_to_the_stages_after_it() {
    let project = declares("a", "b");
    let plan = plan(&project);
    let expected = [row("dev", "a", true, 0), row("production", "b", false, 0)];
    assert_eq!(shown(&project, &[delivery(&plan, "dev", 1)]), expected);
    assert_eq!(shown(&project, &[delivery(&plan, "production", 1)]), [row("production", "b", true, 0)]);
    let mut without = project;
    without.stages.truncate(1);
    assert_eq!(shown(&without, &[delivery(&plan, "dev", 1)]), [row("dev", "a", true, 0)], "it is declared no longer");
}

#[test]
fn what_is_being_ended_brings_nothing() {
    let project = declares("a", "a");
    let mut ending = delivery(&plan(&project), "dev", 1);
    ending.run.state = SequenceState::Ending { task: 0, outcome: Outcome::SUPERSEDED };
    assert_eq!(shown(&project, &[ending]), []);
}

#[test]
fn what_a_person_does_counts_where_it_is_not_what_is_declared() {
    let (before, now) = (declares("a", "a"), declares("b", "b"));
    let rollback = by_hand(delivery(&plan(&before), "dev", 1));
    assert_eq!(shown(&now, &[rollback]), [row("dev", "a", true, 0)], "and it goes no further");
    assert_eq!(shown(&now, &[by_hand(delivery(&plan(&now), "dev", 1))]), []);
}

#[test]
fn the_newest_has_the_last_word_and_what_brings_something_else_is_remembered() {
    let (one, two) = (plan(&declares("a", "a")), plan(&declares("b", "b")));
    for deliveries in
        [[delivery(&one, "dev", 1), delivery(&two, "dev", 2)], [delivery(&two, "dev", 2), delivery(&one, "dev", 1)]]
    {
        let expected = [row("dev", "b", true, 1), row("production", "b", false, 1)];
        assert_eq!(shown(&declares("b", "b"), &deliveries), expected);
    }
    let same = [delivery(&one, "dev", 1), delivery(&one, "dev", 2)];
    assert_eq!(shown(&declares("a", "a"), &same)[0], row("dev", "a", true, 0), "the same adds nothing");
}

#[test]
fn what_is_in_an_earlier_stage_comes_after_what_is_there_although_that_is_newer() {
    let (old, new) = (plan(&declares("a", "a")), plan(&declares("b", "b")));
    let expected = [row("dev", "a", true, 0), row("production", "a", false, 1)];
    assert_eq!(shown(&declares("b", "b"), &[delivery(&new, "production", 2), delivery(&old, "dev", 1)]), expected);
}

#[test]
fn the_newest_plan_that_waits_for_the_same_content_has_the_last_word() {
    let (own, newest) = (plan(&declares("a", "a")), plan(&declares("a", "c")));
    let run = OpenDelivery { newest: Some(newest), ..delivery(&own, "dev", 1) };
    assert_eq!(shown(&declares("a", "c"), &[run])[1], row("production", "c", false, 1));
    let other = OpenDelivery { newest: Some(plan(&declares("b", "c"))), ..delivery(&own, "dev", 1) };
    assert_eq!(
        shown(&declares("b", "c"), &[other])[1],
        row("production", "a", false, 0),
        "it waits for something else"
    );
}
