//! Compare and set, and the fence.

use launchway::model::event::Event;
use launchway::model::hold::ProjectHolds;
use launchway::model::ids::{ConfigKey, ProjectName, RepositoryName};
use launchway::model::object::{Kind, ObjectKey};
use launchway::model::run::Run;
use launchway::model::slot::{PassedKey, PassedState, SlotState};
use launchway::model::state::{ConfigState, ObjectState, RepositoryState};
use launchway::model::transaction::ObjectPlace;
use launchway::model::unique_name::{NameOwner, UniqueName};
use launchway::store::{CommitError, Read, RecordKey, Store, Transaction, Versioned, Write};

use crate::Backend;
use crate::samples::{
    at, commit, commit_id, config_key, config_state, object, object_state, put, put_config, put_object, put_repository,
    repository_state, run_id, sequence, service, tell,
};

async fn conflict(store: &dyn Store, writes: Vec<Write>) -> String {
    match store.commit(Transaction::of(writes)).await {
        Err(CommitError::Conflict { what }) => what,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

/// A write of each versioned record, from `version`.
fn versioned_writes(version: u64) -> [Write; 4] {
    [
        put(version, sequence("s1", service("dev", "web"))),
        put_config(version, config_state(&config_key("dev", "web"), "sha256:1")),
        put_object(version, object_state("dev", object(Kind::ConfigMap, "settings", "sha256:2"))),
        put_repository(version, repository_state()),
    ]
}

async fn versions(store: &dyn Store) -> [Option<u64>; 4] {
    let key = ObjectKey { kind: Kind::ConfigMap, name: "settings".into() };
    [
        store.run(&run_id("s1")).await.unwrap().map(|found| found.version),
        store.config(&config_key("dev", "web")).await.unwrap().map(|found| found.version),
        store.object(&"shop".into(), &"dev".into(), &key).await.unwrap().map(|found| found.version),
        store.repository(&"shop".into()).await.unwrap().map(|found| found.version),
    ]
}

pub(crate) async fn a_new_record_has_version_one_and_every_write_adds_one(backend: &dyn Backend) {
    let store = backend.open().await;
    assert_eq!(versions(&*store).await, [None; 4]);
    for version in 0..3 {
        commit(&*store, versioned_writes(version)).await;
        assert_eq!(versions(&*store).await, [Some(version + 1); 4]);
    }
}

pub(crate) async fn a_write_from_an_old_version_is_a_conflict(backend: &dyn Backend) {
    let store = backend.open().await;
    for write in versioned_writes(1) {
        conflict(&*store, vec![write]).await;
    }
    assert_eq!(versions(&*store).await, [None; 4], "updating what is not there creates nothing");
    commit(&*store, versioned_writes(0)).await;
    commit(&*store, versioned_writes(1)).await;
    for stale in [0, 1, 3, u64::MAX] {
        let mut named = Vec::new();
        for write in versioned_writes(stale) {
            named.push(conflict(&*store, vec![write]).await);
        }
        assert_eq!(named, ["s1", "shop/dev/web", "shop/dev/ConfigMap/settings", "shop"]);
    }
    assert_eq!(versions(&*store).await, [Some(2); 4]);
}

pub(crate) async fn a_record_is_removed_only_at_the_version_that_was_read(backend: &dyn Backend) {
    let store = backend.open().await;
    commit(&*store, versioned_writes(0)).await;
    let passed = PassedKey { service: service("dev", "web"), content: "sha256:web".into() };
    let value = PassedState { key: passed.clone(), commit: commit_id('1'), at: at(0), procedure: "sha256:p".into() };
    commit(&*store, [Write::Passed(Versioned { version: 0, value }.shared())]).await;
    let removals = |version| {
        let key = ObjectKey { kind: Kind::ConfigMap, name: "settings".into() };
        [
            Write::RemovePassed(Versioned { version, value: passed.clone() }),
            Write::RemoveConfig(Versioned { version, value: config_key("dev", "web") }),
            Write::RemoveObject(Versioned {
                version,
                value: ObjectPlace { project: "shop".into(), stage: "dev".into(), key },
            }),
        ]
    };
    for stale in [0, 2] {
        for removal in removals(stale) {
            conflict(&*store, vec![removal]).await;
        }
    }
    commit(&*store, removals(1)).await;
    assert_eq!(versions(&*store).await, [Some(1), None, None, Some(1)]);
    assert_eq!(store.passed(&passed).await.unwrap(), None);
    for removal in removals(1) {
        conflict(&*store, vec![removal]).await;
    }
}

pub(crate) async fn a_conflict_undoes_the_whole_transaction(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut writes = vec![put(0, sequence("s0", service("dev", "web"))), tell("s0", Event::Admitted)];
    writes.extend(versioned_writes(7));
    conflict(&*store, writes).await;
    assert_eq!(store.run(&run_id("s0")).await.unwrap(), None);
    assert_eq!(store.events(None, 0, 10).await.unwrap(), []);
}

/// What a decision was made on, beside what it writes; absence counts.
pub(crate) async fn a_record_that_was_only_read_must_not_have_moved(backend: &dyn Backend) {
    let store = backend.open().await;
    let web = service("dev", "web");
    let passed = PassedKey { service: web.clone(), content: "sha256:1".into() };
    let key = ObjectKey { kind: Kind::ConfigMap, name: "settings".into() };
    let keys: [RecordKey; 8] = [
        run_id("s1").into(),
        config_key("dev", "web").into(),
        ObjectPlace { project: "shop".into(), stage: "dev".into(), key }.into(),
        RepositoryName::new("shop").into(),
        web.clone().into(),
        passed.clone().into(),
        ProjectName::new("shop").into(),
        UniqueName::Namespace("shop-dev".into()).into(),
    ];
    let read = |version| keys.clone().map(|key| Read { key, version });
    let tell = |reads: Vec<Read>| Transaction { reads, writes: vec![tell("s1", Event::Admitted)] };
    store.commit(tell(read(0).to_vec())).await.unwrap();
    for stale in read(1) {
        let refused = store.commit(tell(vec![stale.clone()])).await;
        let named = stale.key.to_string();
        assert!(matches!(&refused, Err(CommitError::Conflict { what }) if *what == named), "{refused:?}");
    }
    let put = |value| Versioned { version: 0, value };
    let owner = NameOwner {
        name: UniqueName::Namespace("shop-dev".into()),
        repository: "shop".into(),
        project: "shop".into(),
        stage: Some("dev".into()),
        claimants: ["shop-too".into()].into(),
    };
    let mut writes = versioned_writes(0).to_vec();
    writes.extend([
        Write::Slot(Versioned { version: 0, value: SlotState::free(web) }.shared()),
        Write::Passed(
            Versioned {
                version: 0,
                value: PassedState { key: passed, commit: commit_id('1'), at: at(0), procedure: "sha256:p".into() },
            }
            .shared(),
        ),
        Write::Holds(Versioned { version: 0, value: ProjectHolds::none("shop".into()) }.shared()),
        Write::Name(put(owner).shared()),
    ]);
    commit(&*store, writes).await;
    store.commit(tell(read(1).to_vec())).await.unwrap();
    for stale in read(0).into_iter().chain(read(2)) {
        let refused = store.commit(tell(vec![stale])).await;
        assert!(matches!(refused, Err(CommitError::Conflict { .. })), "{refused:?}");
    }
    assert_eq!(store.events(None, 0, 10).await.unwrap().len(), 2, "what was refused wrote nothing");
}

pub(crate) async fn an_earlier_process_is_fenced_out(backend: &dyn Backend) {
    let first = backend.open().await;
    commit(&*first, [put(0, sequence("s1", service("dev", "web")))]).await;
    let second = backend.open().await;
    for _ in 0..2 {
        let refused = first.commit(Transaction::of(vec![tell("s1", Event::Admitted)])).await;
        assert!(matches!(refused, Err(CommitError::Fenced)), "{refused:?}");
    }
    let problem = first.retain(launchway::store::Retention { before: at(0), most: 1 }).await.unwrap_err();
    assert!(problem.to_string().contains("taken over"), "{problem}");
    commit(&*second, [tell("s1", Event::Prepared)]).await;
    let events: Vec<_> = second.events(None, 0, 10).await.unwrap().into_iter().map(|row| row.event).collect();
    assert_eq!(events, [Event::Prepared]);
    assert!(first.run(&run_id("s1")).await.unwrap().is_some(), "reading is not shut out");
}

pub(crate) async fn records_survive_a_restart(backend: &dyn Backend) {
    let run = sequence("s1", service("dev", "web"));
    let store = backend.open().await;
    commit(&*store, [put(0, run.clone())]).await;
    drop(store);
    let found = backend.open().await.run(&run_id("s1")).await.unwrap();
    assert_eq!(found, Some(Versioned { version: 1, value: Run::Sequence(Box::new(run)) }));
}

pub(crate) async fn a_copy_that_takes_its_place_begins_another_life(backend: &dyn Backend) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    let first = backend.open().await;
    let life = first.incarnation().clone();
    let seen = RepositoryState { seen: Some(commit_id('1')), applied: Some(commit_id('1')), ..repository_state() };
    let web = ConfigKey { project: "shop".into(), stage: "dev".into(), name: "web".into() };
    let old = ConfigKey { name: "old".into(), ..web.clone() };
    let recorded = config_state(&web, "a");
    let leaves = ConfigState { removed: true, ..config_state(&old, "a") };
    let service = object_state("dev", object(Kind::Service, "web", "sha256:web"));
    let records = [put_repository(0, seen.clone()), put_config(0, recorded.clone()), put_config(0, leaves)];
    commit(&*first, records).await;
    commit(&*first, [put_object(0, service.clone())]).await;
    first.backup(&copy).await.unwrap();
    drop(first);
    let again = backend.open().await;
    assert_eq!(again.incarnation(), &life, "another process, the same life");
    let seed = again.seed().await.unwrap();
    assert!(seed.is_some(), "made by the first process");
    assert_eq!(again.repository(&"shop".into()).await.unwrap().unwrap().value, seen);
    drop(again);
    let mut lives = vec![life];
    for _ in 0..2 {
        backend.restore(&copy);
        let restored = backend.open().await;
        assert!(!lives.contains(restored.incarnation()), "{lives:?}");
        assert_eq!(restored.seed().await.unwrap(), seed, "what was generated stays");
        let unseen = RepositoryState { seen: None, ..seen.clone() };
        let found = restored.repository(&"shop".into()).await.unwrap().unwrap();
        assert_eq!(found, Versioned { version: 2, value: unseen.clone() }, "its head is to be read anew");
        let found = restored.config(&web).await.unwrap().unwrap();
        assert!(found.version == 2 && found.value.inherited.is_some(), "what serves may be newer: {found:?}");
        assert_eq!(found.value.inherited_version, Some(recorded.latest_version));
        assert_eq!(ConfigState { inherited: None, inherited_version: None, ..found.value }, recorded);
        let found = restored.objects(None, None, None).await.unwrap().whole().unwrap().remove(0);
        assert!(found.version == 2 && found.value.inherited.is_some(), "so may what leads to it: {found:?}");
        assert_eq!(ObjectState { inherited: None, ..found.value }, service);
        assert_eq!(restored.config(&old).await.unwrap(), None, "it may be there again");
        commit(&*restored, [put_repository(2, unseen)]).await;
        lives.push(restored.incarnation().clone());
        drop(restored);
        assert_eq!(backend.open().await.incarnation(), lives.last().unwrap());
    }
}
