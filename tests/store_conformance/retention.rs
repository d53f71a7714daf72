//! What goes once nothing needs it any more.

use launchway::model::commit_status::{Posted, StatusState};
use launchway::model::event::Event;
use launchway::model::ids::RunId;
use launchway::model::run::{DeploymentRun, Phase, SequenceRun};
use launchway::model::slot::{Delivered, PassedKey, PassedState, SlotState};
use launchway::model::state::Version;
use launchway::store::{KnownServices, Retention, RunFilter, RunsMark, Store, Versioned, Write};

use super::Backend;
use super::samples::{
    at, attempt, commit, commit_id, config_key, config_state, deployment, ended, ids, object, plan, planned, put,
    put_config, put_deployment, put_repository, repository_state, run_id, sequence, service, status, tell,
};
use launchway::model::object::Kind;

/// Nothing is too many.
const MANY: u32 = 1_000;

pub(crate) async fn retention_spares_what_is_still_needed(backend: &dyn Backend) {
    let store = backend.open().await;
    let revision = |id: &str, digit, time| Write::Revision(Box::new(planned(plan(id, commit_id(digit), at(time)))));
    let mut busy = sequence("open", service("dev", "web"));
    (busy.plan, busy.commit) = (Some("busy".into()), commit_id('b'));
    let mut repository = repository_state();
    repository.applied = Some(commit_id('a'));
    let posted = Posted { status: status("launchway/plan", StatusState::Success), rendering: 1 };
    let writes = [
        put(0, busy),
        put(0, ended(sequence("done", service("dev", "web")))),
        tell("open", Event::Admitted),
        tell("done", Event::Admitted),
        put_repository(0, repository),
        revision("head", 'a', 0),
        revision("busy", 'b', 0),
        revision("old", 'c', 0),
        revision("young", 'd', 60),
        Write::Delivery { repository: "shop".into(), id: "old".into(), at: at(0) },
        Write::Delivery { repository: "shop".into(), id: "young".into(), at: at(60) },
        Write::Posted { repository: "shop".into(), writer: "notes".into(), posted: Box::new(posted) },
    ];
    commit(&*store, writes).await;

    let retention = Retention { before: at(30), most: MANY };
    let announced = store.superfluous(retention).await.unwrap();
    assert_eq!(store.superfluous(retention).await.unwrap(), announced, "nothing goes by being counted");
    let gone = store.retain(retention).await.unwrap();
    assert_eq!(gone, announced);
    for kind in ["runs", "revisions", "plans", "statuses", "deliveries"] {
        assert_eq!(gone[kind], 1, "{kind}");
    }
    assert!(store.retain(retention).await.unwrap().values().all(|rows| *rows == 0));
    let events = store.events(None, 0, 10).await.unwrap();
    assert_eq!(events.iter().map(|row| row.run.as_str()).collect::<Vec<_>>(), ["open"]);
    for (plan, stays) in [("head", true), ("busy", true), ("old", false), ("young", true)] {
        assert_eq!(store.plan(&plan.into()).await.unwrap().is_some(), stays, "{plan}");
    }
    assert_eq!(store.revisions(&"shop".into(), 10).await.unwrap().len(), 3);
    assert!(!store.was_delivered(&"shop".into(), "old").await.unwrap());
    assert!(store.was_delivered(&"shop".into(), "young").await.unwrap());
    assert_eq!(store.posted(&"shop".into(), &"notes".into(), &commit_id('1')).await.unwrap(), []);
    assert!(store.run(&run_id("done")).await.unwrap().is_none());
}

pub(crate) async fn events_go_by_their_age_however_many_came_since(backend: &dyn Backend) {
    let store = backend.open().await;
    let told = |id: &str, time| Write::Delivery { repository: "shop".into(), id: id.into(), at: at(time) };
    let writes = [told("event ci 1", 0), told("event ci 2", 60), told("1", 60), told("2", 61), told("event ci 3", 62)];
    commit(&*store, writes).await;
    assert_eq!(store.retain(Retention { before: at(30), most: 1 }).await.unwrap()["deliveries"], 2);
    for (id, stays) in [("event ci 1", false), ("event ci 2", true), ("event ci 3", true), ("1", false), ("2", true)] {
        assert_eq!(store.was_delivered(&"shop".into(), id).await.unwrap(), stays, "{id}");
    }
}

fn complete(version: u32, seconds: i64) -> DeploymentRun {
    let run = deployment(&config_key("dev", "web"), version);
    DeploymentRun { phase: Phase::Complete, created_at: at(seconds), ended_at: Some(at(seconds)), ..run }
}

async fn left(store: &dyn Store, sequences: bool) -> Vec<String> {
    let runs =
        store.runs(&RunFilter { sequences: Some(sequences), ..RunFilter::default() }).await.unwrap().whole().unwrap();
    ids(&runs).into_iter().map(str::to_owned).collect()
}

/// As many old versions stay as a deployment config says, beside those that serve or are attempted, however old.
pub(crate) async fn versions_that_a_rollback_may_want_stay(backend: &dyn Backend) {
    let store = backend.open().await;
    let key = config_key("dev", "web");
    let mut config = config_state(&key, "sha256:web");
    let limited = serde_json::json!({"spec": {"revisionHistoryLimit": 2}});
    std::sync::Arc::make_mut(&mut config.object).content = limited.into();
    let serves = object(Kind::DeploymentConfig, "web", "sha256:web");
    config.serving = Some(Version { number: 1, commit: commit_id('1'), object: serves });
    let versions = (1..=6).map(|version| put_deployment(0, complete(version, i64::from(version))));
    commit(&*store, versions.chain([put_config(0, config)])).await;
    store.retain(Retention { before: at(1_000), most: MANY }).await.unwrap();
    let stay = [6, 5, 4, 1].map(|version| key.deployment(version).to_string());
    assert_eq!(left(&*store, false).await, stay, "the newest, two old ones, and what serves");
}

/// The history of a deployment config that is gone grows old like everything else.
pub(crate) async fn versions_of_what_is_gone_grow_old(backend: &dyn Backend) {
    let store = backend.open().await;
    commit(&*store, [put_deployment(0, complete(1, 0)), put_deployment(0, complete(2, 60))]).await;
    store.retain(Retention { before: at(30), most: MANY }).await.unwrap();
    assert_eq!(left(&*store, false).await, [config_key("dev", "web").deployment(2).to_string()]);
}

/// Runs that are beyond their number go, young or not, but for open ones and the one that a retry needs.
pub(crate) async fn of_young_runs_the_newest_stay(backend: &dyn Backend) {
    let store = backend.open().await;
    let run = |id: &str, seconds| SequenceRun { created_at: at(seconds), ..sequence(id, service("dev", "web")) };
    let mut config = config_state(&config_key("dev", "web"), "sha256:web");
    config.attempted = Some(launchway::model::state::Attempt { run: RunId::new("tried"), ..attempt(None) });
    let writes = [
        put(0, run("open", 0)),
        put(0, ended(run("tried", 1))),
        put(0, ended(run("third", 2))),
        put(0, ended(run("second", 3))),
        put(0, ended(run("first", 4))),
        put(0, ended(SequenceRun { service: service("dev", "other"), ..run("other", 0) })),
        put_config(0, config),
        tell("third", Event::Admitted),
        tell("first", Event::Admitted),
    ];
    commit(&*store, writes).await;
    store.retain(Retention { before: at(-1), most: 2 }).await.unwrap();
    let mut left = left(&*store, true).await;
    left.sort();
    assert_eq!(left, ["first", "open", "other", "second", "tried"]);
    let events = store.events(None, 0, 10).await.unwrap();
    assert_eq!(events.iter().map(|row| row.run.as_str()).collect::<Vec<_>>(), ["first"], "events go with their run");
}

pub(crate) async fn what_moved_of_a_revision_is_told_since_then(backend: &dyn Backend) {
    let store = backend.open().await;
    let run = |id: &str, name: &str| SequenceRun { commit: commit_id('1'), ..sequence(id, service("dev", name)) };
    let elsewhere = SequenceRun { commit: commit_id('2'), ..run("elsewhere", "else") };
    let first = [put(0, run("w1", "web")), put(0, run("a1", "api")), put(0, elsewhere)];
    let revision = Write::Revision(Box::new(planned(plan("plan", commit_id('1'), at(0)))));
    let mut repository = repository_state();
    repository.applied = Some(commit_id('1')); // so that the revision stays
    commit(&*store, first.into_iter().chain([revision, put_repository(0, repository)])).await;
    let (repository, revision) = ("shop".into(), commit_id('1'));
    let moved = async |mark: Option<&RunsMark>| {
        let known = KnownServices { mark: mark.cloned(), ..KnownServices::default() };
        let moved = store.revision_facts(&repository, &revision, known).await.unwrap().unwrap().moved;
        let services: Vec<String> = moved.services.iter().map(ToString::to_string).collect();
        (moved.mark, services.join(" "), moved.are_all)
    };
    let (mut mark, services, are_all) = moved(None).await;
    assert_eq!((services.as_str(), are_all), ("api web", true), "what nobody knows anything of");
    let steps = [
        (None, "", false),
        (Some(put(1, run("w1", "web"))), "web", false),
        (Some(put(0, run("w2", "web"))), "web", false),
        (Some(put(1, run("a1", "api"))), "api", false),
        (Some(put(0, run("j1", "job"))), "job", false),
        (None, "", false),
    ];
    for (write, services, are_all) in steps {
        commit(&*store, write).await;
        let now = moved(Some(&mark)).await;
        assert_eq!((now.1.as_str(), now.2), (services, are_all));
        mark = now.0;
    }
    // The one that moved last goes, and another comes: as many as before, and the last move is none that is newer.
    commit(&*store, [put(0, SequenceRun { attempt: 2, ..run("j2", "job") })]).await;
    commit(&*store, [put(1, ended(run("j1", "job")))]).await;
    mark = moved(Some(&mark)).await.0;
    store.retain(Retention { before: at(-1), most: 0 }).await.unwrap();
    commit(&*store, [put(0, run("w3", "web"))]).await;
    let (_, services, are_all) = moved(Some(&mark)).await;
    assert_eq!((services.as_str(), are_all), ("api job web", true), "what was deleted");

    // A later commit attempts the version again: it is one of that commit's runs now, and no more of this one's.
    let version = |digit| {
        let run = deployment(&config_key("dev", "web"), 1);
        DeploymentRun { commit: commit_id(digit), parent: run_id(&format!("of {digit}")), ..run }
    };
    commit(&*store, [put_deployment(0, version('1'))]).await;
    mark = moved(None).await.0;
    commit(&*store, [put_deployment(1, version('2'))]).await;
    let now = moved(Some(&mark)).await;
    assert!(now.2, "what has gone over to another revision: {now:?}");
    let of = async |digit| {
        let filter = RunFilter { commit: Some(commit_id(digit)), sequences: Some(false), ..RunFilter::default() };
        let runs = store.runs(&filter).await.unwrap().whole().unwrap();
        ids(&runs).join(" ")
    };
    assert_eq!((of('1').await.as_str(), of('2').await.as_str()), ("", "shop/dev/web-1"));
}

/// What a revision that stays shows on its commit stays with it: the newest attempts, and reports that are owed.
pub(crate) async fn what_a_head_shows_stays(backend: &dyn Backend) {
    let store = backend.open().await;
    let run = |id: &str, digit, attempt| SequenceRun {
        commit: commit_id(digit),
        created_at: at(i64::from(attempt)),
        attempt,
        ..sequence(id, service("dev", "web"))
    };
    let revision = |id: &str, digit| Write::Revision(Box::new(planned(plan(id, commit_id(digit), at(0)))));
    let report = |digit| launchway::model::action::Action::Report {
        repository: "shop".into(),
        commit: commit_id(digit),
        writer: "gitea".into(),
    };
    let ask = |digit| Write::Ask { run: "report".into(), action: Box::new(report(digit)), due: at(0), at: at(0) };
    let mut repository = repository_state();
    repository.applied = Some(commit_id('a'));
    let writes = [
        put_repository(0, repository),
        revision("head", 'a'),
        put(0, ended(run("first", 'a', 1))),
        put(0, ended(run("second", 'a', 2))),
        put(0, ended(SequenceRun { plan: None, ..run("first by hand", 'a', 3) })),
        put(0, ended(SequenceRun { plan: None, ..run("by hand", 'a', 4) })),
        put(0, ended(run("forgotten", 'b', 1))),
        ask('a'),
        ask('b'),
    ];
    commit(&*store, writes).await;
    let gone = store.retain(Retention { before: at(1_000), most: 0 }).await.unwrap();
    let shown = ["by hand", "second"];
    assert_eq!(left(&*store, true).await, shown, "what a person does by hand may leave what a delivery says as it is");
    assert_eq!(gone["actions"], 1, "only of what stays a report is owed");
}

/// What a service was delivered with last has passed for ever, and so has what passed last; a slot stays as long as its
/// service.
pub(crate) async fn what_passed_stays_while_it_is_delivered(backend: &dyn Backend) {
    let store = backend.open().await;
    let web = service("dev", "web");
    let passed = |content: &str, seconds| {
        let key = PassedKey { service: web.clone(), content: content.into() };
        let value = PassedState { key, commit: commit_id('1'), at: at(seconds), procedure: "p".into() };
        Write::Passed(Versioned { version: 0, value }.shared())
    };
    let delivered = Delivered { run: "s1".into(), content: "sha256:now".into(), procedure: "p".into(), deployed: true };
    let slot = |service, last_delivery| {
        let value = SlotState { last_delivery, ..SlotState::free(service) };
        Write::Slot(Versioned { version: 0, value }.shared())
    };
    let last = |service| put(0, ended(SequenceRun { created_at: at(0), ..sequence("s1", service) }));
    let writes = [
        last(web.clone()),
        passed("sha256:now", 0),
        passed("sha256:old", 1),
        passed("sha256:young", 60),
        slot(web.clone(), Some(delivered.clone())),
        slot(service("dev", "gone"), None),
        slot(service("production", "web"), Some(Delivered { deployed: false, ..delivered })),
        put_config(0, config_state(&config_key("dev", "web"), "sha256:web")),
    ];
    commit(&*store, writes).await;
    let gone = store.retain(Retention { before: at(30), most: MANY }).await.unwrap();
    assert_eq!(
        (gone["passed"], gone["slots"], gone["runs"]),
        (1, 1, 0),
        "how it was delivered last is still asked for"
    );
    for (content, stays) in [("sha256:now", true), ("sha256:old", false), ("sha256:young", true)] {
        let key = PassedKey { service: web.clone(), content: content.into() };
        assert_eq!(store.passed(&key).await.unwrap().is_some(), stays, "{content}");
    }
    assert!(store.slot(&web).await.unwrap().is_some());
    let everything = Retention { before: at(90), most: 0 };
    assert_eq!(store.retain(everything).await.unwrap()["passed"], 0, "neither of the two may go");
    commit(&*store, [Write::RemoveConfig(Versioned { version: 1, value: config_key("dev", "web") })]).await;
    let gone = store.retain(everything).await.unwrap();
    assert_eq!((gone["passed"], gone["runs"]), (2, 1), "they go with their service");
    assert_eq!(store.slot(&web).await.unwrap(), None);
    assert!(
        store.slot(&service("production", "web")).await.unwrap().is_some(),
        "what is not to be tried again is known"
    );
}

/// A revision stays while its writer is owed a report, and the newest plan of a service while somebody may deploy it.
pub(crate) async fn of_young_revisions_the_newest_stay(backend: &dyn Backend) {
    let store = backend.open().await;
    let revision = |id: &str, digit, time| Write::Revision(Box::new(planned(plan(id, commit_id(digit), at(time)))));
    let report = launchway::model::action::Action::Report {
        repository: "shop".into(),
        commit: commit_id('a'),
        writer: "gitea".into(),
    };
    let ask = Write::Ask { run: "report".into(), action: Box::new(report), due: at(0), at: at(0) };
    commit(&*store, [revision("owed", 'a', 0), revision("old", 'b', 1), revision("second", 'c', 2), ask]).await;
    commit(&*store, [revision("first", 'd', 3)]).await;
    store.retain(Retention { before: at(-1), most: 2 }).await.unwrap();
    for (id, stays) in [("owed", true), ("old", false), ("second", true), ("first", true)] {
        assert_eq!(store.plan(&id.into()).await.unwrap().is_some(), stays, "{id}");
    }
    assert_eq!(store.revisions(&"shop".into(), 10).await.unwrap().len(), 3);
}

/// What a service's newest plan says stays as long as the service, and goes with it.
pub(crate) async fn the_newest_plan_goes_with_its_service(backend: &dyn Backend) {
    let store = backend.open().await;
    let slot = SlotState::free(service("dev", "web"));
    let writes = [
        Write::Revision(Box::new(planned(plan("newest", commit_id('a'), at(0))))),
        Write::Slot(Versioned { version: 0, value: slot }.shared()),
        put_config(0, config_state(&config_key("dev", "web"), "sha256:web")),
    ];
    commit(&*store, writes).await;
    let retention = Retention { before: at(30), most: MANY };
    store.retain(retention).await.unwrap();
    assert_eq!(store.revisions(&"shop".into(), 10).await.unwrap(), []);
    assert!(store.newest_plan_of(&"shop".into(), &"web".into()).await.unwrap().is_some());
    commit(&*store, [Write::RemoveConfig(Versioned { version: 1, value: config_key("dev", "web") })]).await;
    store.retain(retention).await.unwrap();
    assert!(store.newest_plan_of(&"shop".into(), &"web".into()).await.unwrap().is_none());
}
