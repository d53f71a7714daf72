use serde_json::Value;

use super::*;
use crate::model::ids::Destination;
use crate::model::object::Object;
use crate::model::plan::Change;
use crate::model::project::Project;
use crate::model::shipyard::{Shipyard, Task};
use crate::plan::under_way::Reached;
use crate::testing::world::{deployment_config, project};

/// A sequence of these tasks, delivered to one stage that declares `web` and `api`.
struct Stage {
    sequence: Sequence,
    project: Project,
}

impl Stage {
    fn of(tasks: &[&str]) -> Self {
        let objects: Vec<Object> =
            ["web", "api"].map(|name| deployment_config(name, "a", 1, Value::Null)).into_iter().collect();
        let task = |name: &&str| Task::named(*name);
        let sequence =
            Sequence { name: "delivery".into(), tasks: tasks.iter().map(task).collect(), ..Sequence::default() };
        Self { sequence, project: project(Shipyard::implicit(), &objects) }
    }

    fn content(&self) -> &StageContent {
        &self.project.stages[0]
    }

    fn declared(&self, service: &str) -> Digest {
        content_of(self.content(), &service.into())
    }

    fn procedure(&self) -> Procedure {
        self.content().procedure(&self.sequence, &"web".into())
    }

    fn ended(&self, content: Digest, deployed: bool) -> Delivered {
        Delivered { run: "run".into(), content, procedure: procedure(&self.procedure()), deployed }
    }

    /// What is found out about the stage if `delivered` was delivered last and `passed` passed.
    fn judged(&self, delivered: &[(&str, Delivered)], passed: &[(&str, Digest)]) -> Applied {
        let named = |(service, delivered): &(&str, Delivered)| (ServiceName::new(*service), delivered.clone());
        self.found(delivered.iter().map(named).collect(), &BTreeMap::new(), passed)
    }

    fn found(
        &self,
        delivered: BTreeMap<ServiceName, Delivered>,
        under_way: &BTreeMap<ServiceName, UnderWay>,
        passed: &[(&str, Digest)],
    ) -> Applied {
        let asked = Asked::of(self.content(), &self.sequence, under_way, delivered);
        let known = passed.iter().map(|(service, by)| (ServiceName::new(*service), by.clone())).collect();
        let mut seen = Applied { under_way: under_way.clone(), ..Applied::default() };
        asked.judge(&known, &BTreeSet::new(), &mut seen);
        seen
    }
}

fn names<T>(services: &BTreeMap<ServiceName, T>) -> Vec<&str> {
    services.keys().map(ServiceName::as_str).collect()
}

#[test]
fn content_has_to_pass_a_sequence_that_tests_it_whatever_differs() {
    let stage = Stage::of(&["deployment", "test"]);
    let passes = passed_procedure(&stage.procedure());
    let seen = stage.judged(&[], &[("web", passes)]);
    assert_eq!((names(&seen.passed_before), names(&seen.not_passed)), (vec!["web"], vec!["api"]));
    assert_eq!(seen.not_passed[&"api".into()], "`delivery` has not passed with this");
    let seen = stage.judged(&[], &[("web", Digest::new("other"))]);
    assert_eq!(seen.not_passed[&"web".into()], "`delivery` has changed");
}

#[test]
fn what_was_delivered_last_is_not_delivered_again_however_it_ended() {
    let stage = Stage::of(&["check", "deployment"]);
    let (web, api) = (stage.declared("web"), stage.declared("api"));
    let seen = stage.judged(&[("web", stage.ended(web, true)), ("api", stage.ended(api, false))], &[]);
    assert!(seen.not_passed.is_empty(), "{:?}", seen.not_passed);
    assert_eq!(names(&seen.never_deployed), ["api"]);
    assert!(seen.never_deployed[&"api".into()].contains("`launchway trigger delivery api -s default` runs it again"));
    let changed = Delivered { procedure: Digest::new("another"), ..stage.ended(stage.declared("web"), false) };
    assert_eq!(names(&stage.judged(&[("web", changed)], &[]).not_passed), ["api", "web"], "the task was corrected");
}

#[test]
fn what_was_stopped_before_its_deployment_and_is_declared_no_longer_is_withdrawn() {
    let stage = Stage::of(&["check", "deployment"]);
    for service in ["gone", "web"] {
        let before = |deployed| stage.judged(&[(service, stage.ended(Digest::new("before"), deployed))], &[]).withdrawn;
        assert_eq!((before(false), before(true)), (BTreeSet::from([service.into()]), BTreeSet::new()));
    }
    let same = |deployed| stage.judged(&[("web", stage.ended(stage.declared("web"), deployed))], &[]).withdrawn;
    assert_eq!((same(false), same(true)), (BTreeSet::new(), BTreeSet::new()));
}

#[test]
fn a_sequence_that_only_deploys_asks_only_about_what_another_sequence_brought() {
    let stage = Stage::of(&["deployment"]);
    assert!(stage.judged(&[], &[]).not_passed.is_empty());
    let tested = |content| Delivered { procedure: Digest::new("tested"), ..stage.ended(content, true) };
    let same = tested(stage.declared("web"));
    assert_eq!(names(&stage.judged(&[("web", same.clone())], &[]).not_passed), ["web"], "its test has failed");
    let seen = stage.judged(&[("web", same)], &[("web", Digest::new("tested"))]);
    assert_eq!((names(&seen.passed_before), names(&seen.not_passed)), (vec!["web"], vec![]), "its test has passed");
    assert!(stage.judged(&[("web", tested(Digest::new("before")))], &[]).not_passed.is_empty(), "this is deployed");
}

/// A delivery of `web` that is under way.
fn coming(content: &Digest, by: &Stage) -> BTreeMap<ServiceName, UnderWay> {
    let changes: &[Change] = &[];
    let how = (by.procedure().into(), &Destination::local("shop".into()));
    BTreeMap::from([("web".into(), UnderWay::new(&"1".into(), (content, changes), how, Reached::Slot))])
}

#[test]
fn how_the_last_delivery_ended_does_not_stay_while_the_same_is_tried_in_another_way() {
    let (stage, other) = (Stage::of(&["check", "deployment"]), Stage::of(&["deployment", "test"]));
    let declared = stage.declared("web");
    for (content, by, stays) in
        [(&declared, &stage, true), (&Digest::new("other"), &other, true), (&declared, &other, false)]
    {
        for deployed in [true, false] {
            let last = BTreeMap::from([("web".into(), stage.ended(declared.clone(), deployed))]);
            let seen = stage.found(last, &coming(content, by), &[("api", passed_procedure(&stage.procedure()))]);
            assert_eq!(seen.not_passed.is_empty(), stays, "{content:?} {deployed}");
            assert_eq!(seen.never_deployed.is_empty(), !stays || deployed, "{content:?} {deployed}");
        }
    }
}

#[test]
fn what_another_sequence_is_bringing_has_not_passed_yet() {
    let (stage, tested) = (Stage::of(&["deployment"]), Stage::of(&["deployment", "test"]));
    for (by, expected) in [(&stage, vec![]), (&tested, vec!["web"])] {
        let under_way = coming(&stage.declared("web"), by);
        for passed in [&[][..], &[("web", passed_procedure(&tested.procedure()))]] {
            let seen = stage.found(BTreeMap::new(), &under_way, passed);
            assert_eq!(names(&seen.not_passed), expected, "passed before: {passed:?}");
        }
    }
}

#[test]
fn what_a_sequence_that_only_deploys_left_has_nothing_to_pass_with_another_such_one() {
    for (tasks, expected) in [(&["deployment"][..], false), (&["deployment", "test"], true)] {
        let stage = Stage::of(tasks);
        let last = Delivered { procedure: Digest::new("another"), ..stage.ended(stage.declared("web"), true) };
        let asked = Asked::of(stage.content(), &stage.sequence, &BTreeMap::new(), [("web".into(), last)].into());
        let mut seen = Applied::default();
        asked.judge(&BTreeMap::new(), &["web".into()].into(), &mut seen);
        assert_eq!(seen.not_passed.contains_key(&ServiceName::new("web")), expected, "{tasks:?}");
    }
}
