//! What was written is found again.

use launchway::model::commit_status::{Posted, StatusState};
use launchway::model::event::Event;
use launchway::model::hold::{Hold, HoldKind, HoldScope, ProjectHolds};
use launchway::model::ids::{Digest, RepositoryName, ServiceKey, ServiceName};
use launchway::model::object::Kind;
use launchway::model::outcome::Outcome;
use launchway::model::plan::{ServicePlan, StagePlan};
use launchway::model::run::{Run, SequenceRun};
use launchway::model::slot::{Delivered, PassedKey, PassedState, SlotState};
use launchway::model::state::{Earlier, RepositoryState, RevisionResult, RevisionState};
use launchway::model::tag::{SeenTags, Tag};
use launchway::model::unique_name::{NameOwner, UniqueName};
use launchway::model::webhook_call::{CallResult, WebhookCall, WebhookCalls};
use launchway::store::{
    CommitError, KnownServices, RunFilter, RunsMark, SERVICES_AT_ONCE, Transaction, Versioned, Write,
};

use crate::Backend;
use crate::samples::{
    at, attempt, commit, commit_id, config_key, config_state, deployment, ended, ids, object, object_state, plan,
    planned, put, put_config, put_deployment, put_object, put_repository, repository_state, run_id, sequence, service,
    status, tell,
};

pub(crate) async fn runs_are_listed_newest_first_by_every_filter(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut api = sequence("s2", service("prod", "api"));
    (api.created_at, api.commit, api.repository) = (at(5), commit_id('2'), "other".into());
    let mut web = deployment(&config_key("dev", "web"), 9);
    web.created_at = at(3);
    let mut next = deployment(&config_key("dev", "web"), 10);
    next.created_at = at(3);
    let first = ended(sequence("s1", service("dev", "web")));
    commit(&*store, [put(0, api), put(0, first), put_deployment(0, web), put_deployment(0, next)]).await;

    let all = ["s2", "shop/dev/web-10", "shop/dev/web-9", "s1"];
    let any = RunFilter::default;
    let cases: [(RunFilter, &[&str]); 11] = [
        (any(), &all),
        (RunFilter { limit: 2, ..any() }, &all[..2]),
        (RunFilter { repository: Some("shop".into()), ..any() }, &all[1..]),
        (RunFilter { project: Some("else".into()), ..any() }, &[]),
        (RunFilter { stage: Some("prod".into()), ..any() }, &all[..1]),
        (RunFilter { service: Some("web".into()), ..any() }, &all[1..]),
        (RunFilter { config: Some("web".into()), ..any() }, &all[1..3]),
        (RunFilter { commit: Some(commit_id('2')), ..any() }, &all[..1]),
        (RunFilter { sequences: Some(true), ..any() }, &["s2", "s1"]),
        (RunFilter { sequences: Some(false), open: Some(true), ..any() }, &all[1..3]),
        (RunFilter { open: Some(false), ..any() }, &["s1"]),
    ];
    for (filter, expected) in cases {
        assert_eq!(ids(&store.runs(&filter).await.unwrap().whole().unwrap()), expected, "{filter:?}");
    }
}

pub(crate) async fn runs_are_paged_without_gaps_or_repeats(backend: &dyn Backend) {
    let store = backend.open().await;
    let runs = (0..23).map(|number| {
        let mut run = sequence(&format!("s{number}"), service("dev", "web"));
        run.created_at = at(number / 3);
        put(0, run)
    });
    commit(&*store, runs).await;
    let mut filter = RunFilter { limit: 4, ..RunFilter::default() };
    let mut seen = Vec::new();
    loop {
        let page = store.runs(&filter).await.unwrap().whole().unwrap();
        let Some(last) = page.last() else { break };
        filter.before = Some(last.value.id().clone());
        seen.extend(page.iter().map(|run| run.value.id().as_str().to_owned()));
    }
    let expected: Vec<_> = (0..23).rev().map(|number| format!("s{number}")).collect();
    assert_eq!(seen, expected);
    filter.before = Some(run_id("unknown"));
    assert_eq!(store.runs(&filter).await.unwrap().whole().unwrap(), []);
}

pub(crate) async fn open_slots_are_those_that_somebody_has_or_waits_for(backend: &dyn Backend) {
    let store = backend.open().await;
    let slot = |stage: &str, holder: Option<&str>, waiting: &[&str]| SlotState {
        holder: holder.map(Into::into),
        waiting: waiting.iter().map(|id| (*id).into()).collect(),
        ..SlotState::free(service(stage, "web"))
    };
    let other = SlotState {
        service: ServiceKey { project: "other".into(), ..service("dev", "web") },
        ..slot("dev", Some("o1"), &[])
    };
    let (dev, free, prod) = (slot("dev", Some("s1"), &[]), slot("free", None, &[]), slot("prod", None, &["s2"]));
    let put = |version, value: &SlotState| Write::Slot(Versioned { version, value: value.clone() }.shared());
    commit(&*store, [&dev, &free, &prod, &other].map(|slot| put(0, slot))).await;
    assert_eq!(store.slot(&free.service).await.unwrap(), Some(Versioned { version: 1, value: free }));
    assert_eq!(store.slot(&service("none", "web")).await.unwrap(), None);
    let open = |slots: Vec<Versioned<SlotState>>| slots.into_iter().map(|slot| slot.value).collect::<Vec<_>>();
    assert_eq!(open(store.open_slots(Some(&"shop".into())).await.unwrap()), [dev.clone(), prod.clone()]);
    assert_eq!(open(store.open_slots(None).await.unwrap()), [other.clone(), dev, prod.clone()]);
    commit(&*store, [put(1, &slot("dev", None, &[]))]).await;
    assert_eq!(open(store.open_slots(None).await.unwrap()), [other, prod]);
}

pub(crate) async fn what_was_delivered_last_may_leave_out_what_a_procedure_has_deployed(backend: &dyn Backend) {
    let store = backend.open().await;
    let delivered = |procedure: &str, deployed| {
        let (run, content, procedure) = ("s1".into(), "sha256:content".into(), procedure.into());
        Some(Delivered { run, content, procedure, deployed })
    };
    let (tested, plain) = (delivered("sha256:tested", false), delivered("sha256:plain", true));
    let stopped = delivered("sha256:plain", false);
    let slot = |stage: &str, name: &str, last_delivery: &Option<Delivered>| {
        let value = SlotState { last_delivery: last_delivery.clone(), ..SlotState::free(service(stage, name)) };
        Write::Slot(Versioned { version: 0, value }.shared())
    };
    let writes = [
        slot("dev", "api", &plain),
        slot("dev", "web", &tested),
        slot("dev", "never", &None),
        slot("dev", "stopped", &stopped),
        slot("prod", "web", &tested),
    ];
    commit(&*store, writes).await;
    let of = async |except: Option<&str>| {
        let except = except.map(Digest::new);
        let delivered = store.delivered(&"shop".into(), &"dev".into(), except.as_ref()).await.unwrap();
        delivered.into_iter().map(|(service, last)| (service.to_string(), Some(last))).collect::<Vec<_>>()
    };
    let [api, web, stopped] =
        [("api", plain), ("web", tested), ("stopped", stopped)].map(|(name, last)| (name.to_owned(), last));
    assert_eq!(of(None).await, [api.clone(), stopped.clone(), web.clone()]);
    assert_eq!(of(Some("sha256:plain")).await, [stopped.clone(), web.clone()]);
    assert_eq!(of(Some("sha256:tested")).await, [api, stopped, web]);
}

pub(crate) async fn attempts_are_the_runs_of_a_revision_for_a_service(backend: &dyn Backend) {
    let store = backend.open().await;
    let later = SequenceRun { commit: commit_id('2'), ..sequence("s4", service("dev", "web")) };
    let second = SequenceRun { attempt: 2, ..sequence("s2", service("dev", "web")) };
    let tasks = SequenceRun { delivery: None, attempt: 7, ..sequence("s5", service("dev", "web")) };
    let writes = [
        put(0, sequence("s1", service("dev", "web"))),
        put(0, ended(second)),
        put(0, tasks),
        put(0, sequence("s3", service("prod", "web"))),
        put(0, later),
        put_deployment(0, deployment(&config_key("dev", "web"), 1)),
    ];
    commit(&*store, writes).await;
    for (repository, commit, stage, expected) in
        [("shop", '1', "dev", 2), ("shop", '2', "dev", 1), ("shop", '1', "prod", 1), ("other", '1', "dev", 0)]
    {
        let (repository, service) = (repository.into(), service(stage, "web"));
        let attempts = store.attempts(&repository, &commit_id(commit), &service, None).await.unwrap();
        assert_eq!(attempts, expected, "{repository} {commit} {stage}");
    }
    for (sequence, expected) in [("delivery", 7), ("report", 0)] {
        let web = service("dev", "web");
        let attempts = store.attempts(&"shop".into(), &commit_id('1'), &web, Some(sequence)).await.unwrap();
        assert_eq!(attempts, expected, "{sequence}");
    }
}

pub(crate) async fn what_happened_to_services_is_read_at_once(backend: &dyn Backend) {
    let store = backend.open().await;
    let planned_for = plan("p1", commit_id('1'), at(0));
    commit(&*store, [Write::Revision(Box::new(planned(planned_for.clone())))]).await;
    let elsewhere = SequenceRun { commit: commit_id('2'), ..sequence("s4", service("dev", "web")) };
    let writes = [
        put(0, sequence("s1", service("dev", "web"))),
        put(0, ended(SequenceRun { attempt: 2, ..sequence("s2", service("dev", "web")) })),
        put(0, sequence("s3", service("dev", "other"))),
        put(0, elsewhere),
        put_deployment(0, deployment(&config_key("dev", "web"), 1)),
    ];
    commit(&*store, writes).await;
    let services: Vec<ServiceName> = ["other", "none", "web"].map(Into::into).to_vec();
    let (repository, head) = (RepositoryName::from("shop"), commit_id('1'));
    let found = store.service_facts(&repository, &head, &"p1".into(), &services).await.unwrap();
    assert_eq!(found.iter().map(|facts| &facts.service).collect::<Vec<_>>(), services.iter().collect::<Vec<_>>());
    for facts in found {
        let (name, filter) = (facts.service.to_string(), RunFilter::default());
        let (repository, commit) = (Some(repository.clone()), Some(head.clone()));
        let runs = store
            .runs(&RunFilter { repository, commit, service: Some(name), ..filter })
            .await
            .unwrap()
            .whole()
            .unwrap();
        assert_eq!(facts.runs, runs.into_iter().map(|run| run.value).collect::<Vec<_>>(), "{}", facts.service);
        assert_eq!(facts.plan, store.plan_of(&"p1".into(), &facts.service).await.unwrap(), "{}", facts.service);
    }
    let none = store.service_facts(&repository, &head, &"p0".into(), &services).await.unwrap();
    assert!(none.iter().all(|facts| facts.plan.is_none()));
}

pub(crate) async fn what_is_said_of_a_revision_is_read_at_once(backend: &dyn Backend) {
    let store = backend.open().await;
    let (shop, head) = (RepositoryName::from("shop"), commit_id('1'));
    let facts = async |known| store.revision_facts(&shop, &head, known).await.unwrap();
    assert_eq!(facts(KnownServices::default()).await, None, "there is no such revision");
    let run = |number: usize| {
        let (name, id) = (format!("service-{number:04}"), format!("run-{number:04}"));
        put(0, SequenceRun { commit: head.clone(), ..sequence(&id, service("dev", &name)) })
    };
    let holds = ProjectHolds::none("shop".into());
    let revision = planned(plan("p1", head.clone(), at(0)));
    let mut writes: Vec<Write> = (0..=SERVICES_AT_ONCE).map(run).collect();
    writes.push(Write::Revision(Box::new(revision.clone())));
    writes.push(put_repository(0, repository_state()));
    writes.push(Write::Holds(Versioned { version: 0, value: holds.clone() }.shared()));
    writes.push(tell("run-0000", Event::Admitted));
    commit(&*store, writes).await;

    let found = facts(KnownServices::default()).await.unwrap();
    assert_eq!(Some(&found.revision), store.outline(&shop, head.as_str()).await.unwrap().as_ref());
    assert_eq!(found.event, store.last_event().await.unwrap());
    assert_eq!((found.repository, found.holds, found.newer), (Some(repository_state()), Some(holds), None));
    let runs = SERVICES_AT_ONCE as u64 + 1;
    assert_eq!(found.moved.mark, RunsMark::new(&revision, runs, 0), "each run that comes counts one");
    let all = &found.moved.services;
    assert_eq!((all.len(), found.moved.are_all), (SERVICES_AT_ONCE + 2, true), "what is planned, too: {all:?}");
    let read: Vec<_> = found.services.iter().map(|facts| &facts.service).collect();
    assert_eq!(read, all.iter().take(SERVICES_AT_ONCE).collect::<Vec<_>>());
    let expected = store.service_facts(&shop, &head, &"p1".into(), &all[..SERVICES_AT_ONCE]).await.unwrap();
    assert_eq!(found.services, expected);

    // Of what is known, nothing is read but what somebody wants to see again.
    let again = |names: &[&str]| names.iter().map(|name| ServiceName::new(*name)).collect();
    let known = |mark: &RunsMark, names: &[&str]| KnownServices { mark: Some(mark.clone()), again: again(names) };
    let mark = found.moved.mark;
    commit(
        &*store,
        [put(1, SequenceRun { commit: head.clone(), ..sequence("run-0007", service("dev", "service-0007")) })],
    )
    .await;
    let found = facts(known(&mark, &["web"])).await.unwrap();
    assert_eq!(found.services.iter().map(|facts| facts.service.as_str()).collect::<Vec<_>>(), ["service-0007", "web"]);
    assert_eq!(found.moved.mark, RunsMark { moved: runs + 1, ..mark });
    let none = facts(known(&found.moved.mark, &[])).await.unwrap();
    assert_eq!((none.services.len(), none.moved.services.len(), none.moved.are_all), (0, 0, false));

    // Judged anew, it is another one, whatever its runs did.
    for anew in [
        RevisionState { again: 1, ..revision.clone() },
        RevisionState { at: at(9), ..revision.clone() },
        planned(plan("p2", head.clone(), at(0))),
    ] {
        commit(&*store, [Write::Revision(Box::new(anew.clone()))]).await;
        let found = facts(known(&none.moved.mark, &[])).await.unwrap();
        assert_eq!((found.moved.are_all, found.moved.mark), (true, RunsMark::new(&anew, runs + 1, 0)));
    }
}

pub(crate) async fn a_plan_is_read_whole_or_for_one_service(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut whole = plan("p1", commit_id('1'), at(0));
    let sample = whole.stages[0].services[0].clone();
    let part = |name: &str| ServicePlan { service: name.into(), ..sample.clone() };
    whole.stages[0].services = vec![part("api"), part("web")];
    let prod = StagePlan { stage: "prod".into(), services: vec![part("web")], ..whole.stages[0].clone() };
    whole.stages.push(prod);
    commit(&*store, [Write::Revision(Box::new(planned(whole.clone())))]).await;
    assert_eq!(store.plan(&"p1".into()).await.unwrap(), Some(whole.clone()));
    let only = |name: &str| {
        let mut plan = whole.clone();
        plan.stages.iter_mut().for_each(|stage| stage.services.retain(|part| part.service.as_str() == name));
        Some(plan)
    };
    for name in ["api", "web", "none"] {
        assert_eq!(store.plan_of(&"p1".into(), &name.into()).await.unwrap(), only(name), "{name}");
    }
    assert_eq!(store.plan_of(&"p0".into(), &"web".into()).await.unwrap(), None);
    let newer = plan("p2", commit_id('2'), at(1));
    commit(&*store, [Write::Revision(Box::new(planned(newer.clone())))]).await;
    let newest = async |name: &str| store.newest_plan_of(&"shop".into(), &name.into()).await.unwrap();
    assert_eq!(newest("web").await, Some(newer));
    assert_eq!(newest("api").await, only("api"));
    assert_eq!(newest("none").await, None);
}

pub(crate) async fn events_are_read_in_order_of_one_run_or_all(backend: &dyn Backend) {
    let store = backend.open().await;
    commit(&*store, [tell("s1", Event::Admitted), tell("s2", Event::Prepared), tell("s1", Event::Prepared)]).await;
    let all = store.events(None, 0, 10).await.unwrap();
    assert_eq!(all.iter().map(|row| row.run.as_str()).collect::<Vec<_>>(), ["s1", "s2", "s1"]);
    assert!(all.is_sorted_by(|a, b| a.number < b.number));
    assert_eq!(store.events(Some(&run_id("s1")), 0, 10).await.unwrap(), [all[0].clone(), all[2].clone()]);
    assert_eq!(store.events(None, all[0].number, 1).await.unwrap(), [all[1].clone()]);
    assert_eq!(store.events(Some(&run_id("s1")), all[2].number, 10).await.unwrap(), []);
    assert_eq!(store.newest_events(None, i64::MAX, 2).await.unwrap(), [all[2].clone(), all[1].clone()]);
    assert_eq!(store.newest_events(Some(&run_id("s1")), all[2].number, 10).await.unwrap(), [all[0].clone()]);
}

pub(crate) async fn applied_content_is_listed_without_records(backend: &dyn Backend) {
    let store = backend.open().await;
    let other = Kind::Other("batch/v1/Job".into());
    let writes = [
        put_config(0, config_state(&config_key("dev", "web"), "sha256:1")),
        put_object(0, object_state("dev", object(other.clone(), "import", "sha256:2"))),
        put_object(0, object_state("prod", object(Kind::Secret, "token", "sha256:3"))),
    ];
    commit(&*store, writes).await;
    commit(&*store, [put_config(1, config_state(&config_key("dev", "web"), "sha256:4"))]).await;

    let applied = store.applied(&"shop".into(), &"dev".into()).await.unwrap();
    let rows: Vec<_> = applied.iter().map(|row| (&row.key.kind, row.digest.as_str(), row.settled)).collect();
    assert_eq!(rows, [(&Kind::DeploymentConfig, "sha256:4", true), (&other, "sha256:2", true)]);

    // What is only kept is declared by nobody, so that declaring it again differs.
    let mut kept = object_state("dev", object(other.clone(), "import", "sha256:2"));
    kept.kept_by.insert("web".to_owned());
    let object = object(other.clone(), "import", "sha256:1");
    kept.earlier.push(Earlier { config: "web".to_owned(), version: 1, by: "s1".into(), went_back: true, object });
    commit(&*store, [put_object(1, kept.clone())]).await;
    assert_eq!(store.applied(&"shop".into(), &"dev".into()).await.unwrap()[1].digest.as_str(), "");
    let key = kept.object.key.clone();
    assert_eq!(store.object(&"shop".into(), &"dev".into(), &key).await.unwrap().unwrap().value, kept);
    assert_eq!(store.applied_stages(&"shop".into()).await.unwrap(), ["dev".into(), "prod".into()]);
    assert_eq!(store.applied_stages(&"else".into()).await.unwrap(), []);

    let names = |found: Vec<Versioned<launchway::model::state::ObjectState>>| -> Vec<String> {
        found.into_iter().map(|found| found.value.object.key.name.clone()).collect()
    };
    assert_eq!(names(store.objects(None, None, None).await.unwrap().whole().unwrap()), ["import", "token"]);
    assert_eq!(names(store.objects(None, Some(&"dev".into()), None).await.unwrap().whole().unwrap()), ["import"]);
    assert_eq!(
        names(store.objects(Some(&"shop".into()), None, Some(&Kind::Secret)).await.unwrap().whole().unwrap()),
        ["token"]
    );
    assert_eq!(store.configs(Some(&"shop".into()), None).await.unwrap().whole().unwrap().len(), 1);
    assert_eq!(store.configs(None, Some(&"prod".into())).await.unwrap().whole().unwrap(), []);
    let of_service = async |stage| store.configs_of(&service(stage, "web")).await.unwrap();
    assert_eq!((of_service("dev").await.len(), of_service("prod").await.len()), (1, 0));
}

pub(crate) async fn an_attempt_that_did_not_complete_leaves_a_config_unsettled(backend: &dyn Backend) {
    let store = backend.open().await;
    let key = config_key("dev", "web");
    let cases = [
        (None, true),
        (Some(attempt(None)), false),
        (Some(attempt(Some(Outcome::SUPERSEDED))), false),
        (Some(attempt(Some(Outcome::FAIL))), false),
        (Some(attempt(Some(Outcome::ABORTED))), false),
    ];
    for (version, (attempted, settled)) in (0..).zip(cases) {
        let state = launchway::model::state::ConfigState { attempted, ..config_state(&key, "sha256:new") };
        commit(&*store, [put_config(version, state.clone())]).await;
        assert_eq!(store.applied(&key.project, &key.stage).await.unwrap()[0].settled, settled);
        assert_eq!(store.config(&key).await.unwrap().unwrap().value, state);
    }
}

pub(crate) async fn revisions_are_found_by_prefix_and_come_with_their_plans(backend: &dyn Backend) {
    let store = backend.open().await;
    let shop = "shop".into();
    let one = planned(plan("plan-1", commit_id('1'), at(1)));
    let mut similar = planned(plan("plan-2", format!("1111{}", "2".repeat(36)).as_str().into(), at(2)));
    similar.result = RevisionResult::Broken { problems: vec!["web.yaml:1:1: error".into()] };
    let refused = RevisionState {
        result: RevisionResult::Refused { reason: "rewritten".into() },
        commit: commit_id('a'),
        at: at(2),
        ..one.clone()
    };
    let writes = [&one, &similar, &refused].map(|revision| Write::Revision(Box::new(revision.clone())));
    commit(&*store, writes).await;

    assert_eq!(store.revisions(&shop, 10).await.unwrap(), [refused.clone(), similar.clone(), one.clone()]);
    assert_eq!(store.revisions(&shop, 1).await.unwrap().len(), 1);
    assert_eq!(store.revision(&shop, one.commit.as_str()).await.unwrap(), Some(one.clone()));
    assert_eq!(store.revision(&shop, "11111").await.unwrap(), Some(one.clone()));
    assert_eq!(store.revision(&shop, "AAAA").await.unwrap(), Some(refused));
    for unknown in ["111", "aaab", "%%%%", "", "11111g", "zzzz"] {
        assert_eq!(store.revision(&shop, unknown).await.unwrap(), None, "{unknown}");
    }
    assert_eq!(store.revision(&"other".into(), "1111").await.unwrap(), None);
    let problem = store.revision(&shop, "1111").await.unwrap_err().one_line();
    assert!(problem.contains("several revisions") && problem.contains("more digits"), "{problem}");

    let again = planned(plan("plan-3", commit_id('1'), at(1)));
    commit(&*store, [Write::Revision(Box::new(again.clone()))]).await;
    assert_eq!(store.revision(&shop, "11111").await.unwrap(), Some(again));
    assert!(store.plan(&"plan-1".into()).await.unwrap().is_some(), "runs may still carry the earlier plan out");
    assert_eq!(store.plan(&"plan-2".into()).await.unwrap(), None);
}

pub(crate) async fn passed_content_holds_statuses_and_deliveries_are_remembered(backend: &dyn Backend) {
    let store = backend.open().await;
    let key = |stage: &str, content: &str| PassedKey { service: service(stage, "web"), content: content.into() };
    let passed = |version, time| {
        let value = PassedState {
            key: key("dev", "sha256:1"),
            commit: commit_id('1'),
            at: at(time),
            procedure: "sha256:p".into(),
        };
        Versioned { version, value }
    };
    commit(&*store, [Write::Passed(passed(0, 0).shared()), Write::Passed(passed(1, 7).shared())]).await;
    assert_eq!(store.passed(&key("dev", "sha256:1")).await.unwrap(), Some(passed(2, 7)));
    assert_eq!(store.passed(&key("dev", "sha256:2")).await.unwrap(), None);
    assert_eq!(store.passed(&key("prod", "sha256:1")).await.unwrap(), None);

    let hold = |id: &str, project: &str, since| Hold {
        id: id.into(),
        kind: HoldKind::Person,
        scope: HoldScope { project: project.into(), stage: None, service: None, context: None },
        reason: "audit".into(),
        by: "ada".into(),
        since: at(since),
    };
    let of = |version, project: &str, holds: Vec<Hold>| {
        Write::Holds(
            Versioned {
                version,
                value: ProjectHolds { project: project.into(), holds, lifted: Vec::new(), stopped: Vec::new() },
            }
            .shared(),
        )
    };
    let (h1, h2, h3) = (hold("h1", "shop", 5), hold("h2", "shop", 1), hold("h3", "other", 3));
    commit(&*store, [of(0, "shop", vec![h1.clone(), h2.clone()]), of(0, "other", vec![h3.clone()])]).await;
    assert_eq!(store.holds().await.unwrap().whole().unwrap(), [h2, h3.clone(), h1.clone()]);
    commit(&*store, [of(1, "shop", vec![h1.clone()])]).await;
    assert_eq!(store.holds().await.unwrap().whole().unwrap(), [h3, h1.clone()]);
    let value = ProjectHolds { project: "shop".into(), holds: vec![h1], lifted: Vec::new(), stopped: Vec::new() };
    assert_eq!(store.holds_of(&"shop".into()).await.unwrap(), Some(Versioned { version: 2, value }));

    let project = UniqueName::Project("shop".into());
    let owner = NameOwner {
        name: project.clone(),
        repository: "r".into(),
        project: "shop".into(),
        stage: None,
        claimants: [].into(),
    };
    commit(&*store, [Write::Name(Versioned { version: 0, value: owner.clone() }.shared())]).await;
    assert_eq!(store.name_owner(&project).await.unwrap(), Some(Versioned { version: 1, value: owner }));
    assert_eq!(store.name_owner(&UniqueName::Namespace("shop".into())).await.unwrap(), None);
    commit(&*store, [Write::FreeName(Versioned { version: 1, value: project.clone() })]).await;
    assert_eq!(store.name_owner(&project).await.unwrap(), None);

    let environment = RepositoryState::new(RepositoryName::new("shop").environment(12), "/shop.git", "pr-12");
    let name = environment.name.clone();
    commit(&*store, [Write::Repository(Versioned { version: 0, value: environment }.shared())]).await;
    let moved =
        store.commit(Transaction::of(vec![Write::RemoveRepository(Versioned { version: 2, value: name.clone() })]));
    assert!(matches!(moved.await, Err(CommitError::Conflict { .. })));
    commit(&*store, [Write::RemoveRepository(Versioned { version: 1, value: name.clone() })]).await;
    assert_eq!(store.repository(&name).await.unwrap(), None);

    let on = |context, state, rendering| Posted { status: status(context, state), rendering };
    let post = |writer: &str, posted: &Posted| Write::Posted {
        repository: "shop".into(),
        writer: writer.into(),
        posted: Box::new(posted.clone()),
    };
    let pending = on("launchway/dev", StatusState::Pending, 7);
    let success = on("launchway/dev", StatusState::Success, 9);
    let plan = on("launchway/plan", StatusState::Success, 7);
    let writes = [post("notes", &plan), post("notes", &pending), post("gitea", &pending), post("notes", &success)];
    commit(&*store, writes).await;
    let posted =
        async |writer: &str, digit| store.posted(&"shop".into(), &writer.into(), &commit_id(digit)).await.unwrap();
    assert_eq!(posted("notes", '1').await, [success, plan]);
    assert_eq!(posted("gitea", '1').await, [pending]);
    assert_eq!(posted("notes", '2').await, []);

    let delivery = Write::Delivery { repository: "shop".into(), id: "d1".into(), at: at(0) };
    assert!(!store.was_delivered(&"shop".into(), "d1").await.unwrap());
    commit(&*store, [delivery.clone()]).await;
    assert!(store.was_delivered(&"shop".into(), "d1").await.unwrap());
    assert!(!store.was_delivered(&"other".into(), "d1").await.unwrap());
    let mut calls = WebhookCalls::default();
    calls.remember(webhook_call("d1"));
    let kept = Write::WebhookCalls { repository: "shop".into(), calls: Box::new(calls.clone()) };
    assert_eq!(store.webhook_calls(&"shop".into()).await.unwrap(), WebhookCalls::default());
    commit(&*store, [kept.clone()]).await;
    commit(&*store, [kept]).await;
    assert_eq!(store.webhook_calls(&"shop".into()).await.unwrap(), calls);
    assert_eq!(store.webhook_calls(&"other".into()).await.unwrap(), WebhookCalls::default());
    let seen = |life: &str, object: &str| SeenTags {
        life: Some(life.into()),
        url: "/srv/shop.git".into(),
        tags: [("refs/tags/v1".to_owned(), Tag { object: object.into(), target: Some("c1".into()) })].into(),
    };
    assert_eq!(store.seen_tags(&"shop".into()).await.unwrap(), None);
    for seen in [seen("first", "o1"), seen("second", "o2")] {
        commit(&*store, [Write::Tags { repository: "shop".into(), seen: Box::new(seen.clone()) }]).await;
        assert_eq!(store.seen_tags(&"shop".into()).await.unwrap(), Some(seen));
    }
    assert_eq!(store.seen_tags(&"other".into()).await.unwrap(), None);
    let twice = store.commit(Transaction::of(vec![delivery])).await;
    assert!(matches!(twice, Err(CommitError::Conflict { .. })), "{twice:?}");
}

fn webhook_call(id: &str) -> WebhookCall {
    WebhookCall {
        at: at(0),
        host: "gitea".into(),
        id: Some(id.into()),
        event: Some("push".into()),
        reference: Some("refs/heads/main".into()),
        before: None,
        after: None,
        result: CallResult::Accepted,
        status: 200,
        reason: None,
        times: 1,
    }
}

pub(crate) async fn a_backup_holds_everything_that_was_committed(backend: &dyn Backend) {
    let store = backend.open().await;
    let run = sequence("s1", service("dev", "web"));
    commit(&*store, [put(0, run.clone())]).await;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("backup.db");
    store.backup(&copy).await.unwrap();
    let found = backend.open_copy(&copy).run(&run_id("s1")).await.unwrap();
    assert_eq!(found, Some(Versioned { version: 1, value: Run::Sequence(Box::new(run)) }));
    let problem = store.backup(&copy).await.unwrap_err();
    assert!(problem.to_string().contains("exists already"), "{problem}");
}

pub(crate) async fn what_waits_in_vain_is_found(backend: &dyn Backend) {
    let store = backend.open().await;
    let revision =
        |digit, time| Write::Revision(Box::new(planned(plan(&format!("p{digit}"), commit_id(digit), at(time)))));
    // The third revision is older than the others: it was retried later.
    let broken = RevisionState {
        commit: commit_id('5'),
        at: at(2),
        result: RevisionResult::Broken { problems: Vec::new() },
        ..planned(plan("p5", commit_id('5'), at(2)))
    };
    let writes =
        [revision('3', 0), revision('1', 1), revision('2', 2), revision('4', 3), Write::Revision(Box::new(broken))];
    commit(&*store, writes).await;
    let next = async |digit| {
        let facts = store.revision_facts(&"shop".into(), &commit_id(digit), KnownServices::default()).await.unwrap();
        facts.and_then(|facts| facts.newer)
    };
    assert_eq!(next('3').await, Some(commit_id('1')), "the first that came after it");
    assert_eq!(next('1').await, Some(commit_id('2')));
    assert_eq!(next('2').await, Some(commit_id('4')), "one that is broken takes nobody's place");
    assert_eq!(next('4').await, None);
    assert_eq!(next('9').await, None);
    let overtaken = async |digit| store.overtaken_by(&"shop".into(), &commit_id(digit)).await.unwrap();
    assert_eq!(overtaken('3').await, Vec::new(), "nothing came before it");
    assert_eq!(overtaken('1').await, [commit_id('3')]);
    assert_eq!(
        overtaken('4').await,
        [commit_id('5'), commit_id('2')],
        "what is broken and what had a plan, up to the last"
    );
    assert_eq!(overtaken('5').await, Vec::new(), "one that is broken takes nobody's place");
    assert_eq!(overtaken('9').await, Vec::new());

    let post = |writer: &str, repository: &str, status| Write::Posted {
        repository: repository.into(),
        writer: writer.into(),
        posted: Box::new(Posted { status, rendering: 1 }),
    };
    let on = |digit, state| launchway::model::commit_status::CommitStatus {
        commit: commit_id(digit),
        ..status("launchway/dev", state)
    };
    let writes = [
        post("notes", "shop", on('1', StatusState::Pending)),
        post("gitea", "shop", on('1', StatusState::Running)),
        post("notes", "shop", on('2', StatusState::Running)),
        post("gitea", "shop", on('2', StatusState::Success)),
        post("notes", "shop", on('3', StatusState::Failure)),
        post("notes", "other", on('4', StatusState::Pending)),
    ];
    commit(&*store, writes).await;
    // What is written in the same transaction counts.
    let skipped = post("notes", "shop", on('2', StatusState::Skipped));
    let ask = |writer: &str| Write::AskOvertaken { repository: "shop".into(), writer: writer.into(), at: at(9) };
    commit(&*store, [ask("notes"), ask("gitea")]).await;
    let asked = async || store.outbox(None).await.unwrap().into_iter().map(|row| row.key).collect::<Vec<_>>();
    let report = |digit, writer: &str| format!("report/shop/{}/{writer}", commit_id(digit));
    assert_eq!(asked().await, [report('1', "notes"), report('2', "notes"), report('1', "gitea")]);
    let done = store.outbox(None).await.unwrap().into_iter().map(|row| Write::Done(row.id));
    commit(&*store, done.chain([skipped, ask("notes")])).await;
    assert_eq!(asked().await, [report('1', "notes")]);
}
