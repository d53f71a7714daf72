//! Tags that an image stream has looked up: what the registry says comes into the store, and the head is planned again.

use std::sync::Arc;

use launchway::clock::{SystemClock, Ulids};
use launchway::executor::drive::Driver;
use launchway::executor::imports::import;
use launchway::manifest::digest;
use launchway::model::ids::{CommitId, Destination, RepositoryName};
use launchway::model::object::{Kind, Location, Object, ObjectKey};
use launchway::model::state::{ObjectState, RepositoryState, Versioned};
use launchway::registry::http::HttpRegistry;
use launchway::store::sqlite::SqliteStore;
use launchway::store::{ReadStore as _, Store as _, Transaction, Write};
use serde_json::json;

use crate::double::{DIGEST, Double, Manners, OTHER};

/// A stream of which one tag is looked up, as it is applied.
fn stream(image: &str) -> ObjectState {
    let from = json!({"kind": "DockerImage", "name": image});
    let tags = json!([
        {"name": "prod", "from": from, "importPolicy": {"scheduled": true}},
        {"name": "fixed", "from": from},
    ]);
    let content = json!({"metadata": {"name": "app"}, "spec": {"tags": tags}});
    let object = Object {
        key: ObjectKey { kind: Kind::ImageStream, name: "app".into() },
        service: "web".into(),
        autoscaled_at: None,
        location: Location::default(),
        digest: digest::of(&content),
        content: content.into(),
    };
    let destination = Destination::kubernetes("shop-live".into());
    ObjectState::new(("shop".into(), "live".into()), destination, "shop".into(), Arc::new(object))
}

#[tokio::test]
async fn what_a_registry_says_is_recorded_once_and_has_the_head_planned_again() {
    let double = Double::start(Manners::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(&folder.path().join("store.db"), Arc::new(SystemClock)).unwrap());
    let driver = Driver::new(store.clone(), Arc::new(SystemClock), Arc::new(Ulids::default()));
    let name = RepositoryName::new("shop");
    let head = Some(CommitId::new("c"));
    let repository =
        || RepositoryState { seen: head.clone(), ..RepositoryState::new(name.clone(), "/shop.git", "main") };
    let state = stream(&format!("{}/acme/web:prod", double.address));
    let object = Versioned { version: 0, value: state.clone() };
    let first = Versioned { version: 0, value: repository() };
    let writes = vec![Write::Object(object.shared()), Write::Repository(first.shared())];
    store.commit(Transaction::of(writes)).await.unwrap();
    let tagged = async || {
        let found = store.object(&state.project, &state.stage, &state.object.key).await.unwrap().unwrap().value.tagged;
        found.into_iter().map(|(tag, tagged)| (tag, tagged.image, tagged.by)).collect::<Vec<_>>()
    };
    let expected = |digest: &str| {
        let image = format!("{}/acme/web@{digest}", double.address);
        vec![("prod".to_owned(), image, "the registry".to_owned())]
    };
    let registry = HttpRegistry::default();
    let mut changes = driver.changes();
    for (manners, digest, is_news) in [
        (Manners::default(), DIGEST, true),
        (Manners::default(), DIGEST, false),
        (Manners { digest: OTHER, ..Manners::default() }, OTHER, true),
        (Manners { status: Some(500), ..Manners::default() }, OTHER, false),
    ] {
        double.set(manners.clone());
        let failures = import(&driver, &registry, &name).await.unwrap();
        assert_eq!(failures, u32::from(manners.status.is_some()));
        assert_eq!(tagged().await, expected(digest));
        let known = store.repository(&name).await.unwrap().unwrap();
        assert_eq!(known.value.seen.is_none(), is_news, "{manners:?}");
        let announced = changes.try_recv().is_ok_and(|touched| touched.unseen.contains(&name));
        assert_eq!(announced, is_news, "{manners:?}");
        let seen = Versioned { version: known.version, value: repository() };
        store.commit(Transaction::of(vec![Write::Repository(seen.shared())])).await.unwrap();
    }
    assert_eq!(double.seen()[..2], ["HEAD 200", "HEAD 304"]);
}
