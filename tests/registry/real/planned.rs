//! A tag that moves in a registry is a new version of what follows it.

use std::collections::BTreeMap;
use std::sync::Arc;

use launchway::clock::{SystemClock, Ulids};
use launchway::control::aside::{Aside, Hosts};
use launchway::control::watched::Watched;
use launchway::engine::transition::Input;
use launchway::executor::drive::Driver;
use launchway::executor::imports::import;
use launchway::executor::sync::Synced;
use launchway::manifest::Options;
use launchway::model::ids::{ConfigKey, RepositoryName};
use launchway::model::object::Kind;
use launchway::model::plan::{Change, Decision, Plan};
use launchway::model::seed::Seed;
use launchway::model::state::{ConfigState, ObjectState, RepositoryState, RevisionResult, Version};
use launchway::model::wanted::{Target, Wanted};
use launchway::registry::http::HttpRegistry;
use launchway::source::{Limits, Mirror, Remote, RemoteUrl};
use launchway::store::sqlite::SqliteStore;
use launchway::store::{Versioned, Write};

use super::image::{Client, Image};
use super::server::{Access, Real};
use crate::support::git::GitFixture;

const PROJECT: &str = "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: shop}\nspec: {stages: {default: {runtime: kubernetes}}}\n";

/// A config that follows a tag which is looked up at this address.
fn files(address: &str) -> String {
    format!(
        "apiVersion: image.openshift.io/v1\nkind: ImageStream\nmetadata: {{name: app}}\nspec:\n  tags:\n  \
         - {{name: prod, from: {{kind: DockerImage, name: '{address}/acme/web:prod'}}, importPolicy: {{scheduled: true}}}}\n\
         ---\napiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {{name: web}}\nspec:\n  replicas: 1\n  \
         selector: {{app: web}}\n  triggers:\n  - type: ImageChange\n    imageChangeParams:\n      automatic: true\n      \
         containerNames: [main]\n      from: {{kind: ImageStreamTag, name: 'app:prod'}}\n  template:\n    \
         metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: main, image: ' '}}]}}\n"
    )
}

/// A repository that is planned, whose runs are not started: what a plan says is recorded as if it had been deployed.
struct Shop {
    git: GitFixture,
    driver: Driver,
    watched: Arc<Watched>,
}

fn name() -> RepositoryName {
    RepositoryName::new("shop")
}

impl Shop {
    async fn new(address: &str) -> Self {
        let git = GitFixture::new();
        git.push_files(&[("launchway.yaml", PROJECT), ("web.yaml", &files(address))]);
        let limits = Limits::default();
        let url = RemoteUrl::parse(&git.bare().display().to_string(), false).unwrap();
        let mirror = Arc::new(Mirror::open_or_create(&git.path("mirror.git"), limits).unwrap());
        let options = Options { repository: name(), seed: Seed::NONE };
        let aside = Aside::new(Hosts::default().turns(""));
        let (remote, down) = (Remote::new(url, "main"), true);
        let watched = Arc::new(Watched::new(name(), remote, mirror, limits, options, false, aside));
        let store = Arc::new(SqliteStore::open(&git.path("store.db"), Arc::new(SystemClock)).unwrap());
        let driver = Driver::new(store, Arc::new(SystemClock), Arc::new(Ulids::default()));
        let state = RepositoryState { down, ..RepositoryState::new(name(), watched.remote.url.to_string(), "main") };
        let state = Write::Repository(Versioned { version: 0, value: state }.shared());
        driver.commit(&[Input::Write(Box::new(state))]).await.unwrap();
        Self { git, driver, watched }
    }

    /// Looks at the repository; what becomes of the deployment config, if anything does.
    async fn planned(&self) -> Option<(Plan, Change)> {
        if self.watched.sync(&self.driver).await.unwrap() == Synced::Unchanged {
            return None;
        }
        let newest = self.driver.store.revisions(&name(), 1).await.unwrap().remove(0);
        let RevisionResult::Planned(plan) = newest.result else { panic!("not planned: {:?}", newest.result) };
        assert_eq!(plan.commit.as_str(), self.git.head());
        let mut changes = plan.stages[0].services.iter().flat_map(|service| &service.changes);
        let change = changes.rfind(|change| change.key.kind == Kind::DeploymentConfig).cloned();
        change.map(|change| (*plan, change))
    }

    /// Records that all of a plan has been done.
    async fn applied(&self, plan: &Plan, number: u32) {
        let stage = &plan.stages[0];
        for change in stage.services.iter().flat_map(|service| &service.changes) {
            let object = change.object.clone().unwrap();
            let write = match change.key.kind {
                Kind::DeploymentConfig => {
                    let key = ConfigKey {
                        project: plan.project.clone(),
                        stage: stage.stage.clone(),
                        name: change.key.name.clone(),
                    };
                    let before = self.driver.store.config(&key).await.unwrap();
                    let serving = Version { number, commit: plan.commit.clone(), object: object.clone() };
                    let targets = BTreeMap::from([(number, Target::ALL)]);
                    let value = ConfigState {
                        key,
                        service: object.service.clone(),
                        destination: stage.destination.clone(),
                        repository: name(),
                        object,
                        planned_at: None,
                        declared_on: plan.commit.clone(),
                        latest_version: number,
                        serving: Some(serving),
                        beside: None,
                        attempted: None,
                        wanted: Wanted { targets, replicas: 1, ..Wanted::default() },
                        scaled: None,
                        removed: false,
                        inherited: None,
                        inherited_version: None,
                        quarantined: Vec::new(),
                        keeps: Default::default(),
                    };
                    Write::Config(Versioned { version: before.map_or(0, |it| it.version), value }.shared())
                }
                _ => Write::Object(
                    Versioned {
                        version: 0,
                        value: ObjectState::new(
                            (plan.project.clone(), stage.stage.clone()),
                            stage.destination.clone(),
                            name(),
                            object,
                        ),
                    }
                    .shared(),
                ),
            };
            self.driver.commit(&[Input::Write(Box::new(write))]).await.unwrap();
        }
    }
}

/// The image of a config's one container.
fn image(change: &Change) -> String {
    let content = change.object.as_ref().unwrap().content.value();
    content.pointer("/spec/template/spec/containers/0/image").unwrap().as_str().unwrap().to_owned()
}

#[tokio::test]
#[ignore = "needs docker-registry"]
async fn a_tag_that_moves_in_a_real_registry_deploys_what_follows_it() {
    let real = Real::start(&Access::Anybody).await;
    let (client, registry) = (Client::new(&real, None), HttpRegistry::default());
    let shop = Shop::new(&real.address).await;
    let (plan, change) = shop.planned().await.unwrap();
    // Nothing was looked up yet: the tag leads to the image as it is written.
    assert_eq!((change.decision, image(&change)), (Decision::Create, format!("{}/acme/web:prod", real.address)));
    shop.applied(&plan, 1).await;

    for (number, word) in [(2, "one"), (3, "two")] {
        let digest = client.push(&Image::of(word), "prod").await;
        assert_eq!(import(&shop.driver, &registry, &name()).await.unwrap(), 0);
        let (plan, change) = shop.planned().await.unwrap();
        assert_eq!((change.decision, change.cause.as_str()), (Decision::Deploy, "image change (app:prod)"));
        assert_eq!(image(&change), format!("{}/acme/web@{digest}", real.address));
        shop.applied(&plan, number).await;

        assert_eq!(import(&shop.driver, &registry, &name()).await.unwrap(), 0);
        assert_eq!(shop.planned().await.map(|(_, change)| change), None, "nothing is new");
    }
}
