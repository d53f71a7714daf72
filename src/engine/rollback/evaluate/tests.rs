use serde_json::json;

use super::*;
use crate::engine::fixtures::{Memory, delivery, deployed, deployment, ended, object, repository, serving, web};
use crate::engine::rollback::roll_back;
use crate::manifest::digest;
use crate::model::ids::ConfigKey;
use crate::model::object::{Kind, Location, ObjectKey};
use crate::model::outcome::Outcome;
use crate::model::rollback::RollbackParts;
use crate::model::rollback::{Rollback, RollbackTo};
use crate::model::run::Phase;

/// A deployment config with one container, of which some is said.
fn declared(name: &str, labels: Value, container: Value, strategy: Value) -> Arc<Object> {
    let mut made = Object::clone(&object("a"));
    let mut main = json!({"name": "main", "image": "host"});
    for (key, value) in container.as_object().into_iter().flatten() {
        main[key] = value.clone();
    }
    let content = json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 1, "triggers": [{"type": "ConfigChange"}], "strategy": strategy,
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [main]}},
        },
    });
    digest::exchange(&mut made, content);
    made.key.name = name.to_owned();
    made.into()
}

fn other(kind: Kind, name: &str, content: Value) -> Arc<Object> {
    let key = ObjectKey { kind, name: name.to_owned() };
    let digest = digest::of(&content);
    let (service, location) = (name.into(), Location::default());
    Arc::new(Object { key, service, location, content: content.into(), digest, autoscaled_at: None })
}

fn state(object: &Arc<Object>) -> ConfigState {
    let mut state = serving(2, "a");
    state.key = ConfigKey { name: object.key.name.clone(), ..web() };
    state.object = object.clone();
    state.serving.as_mut().expect("it serves").object = object.clone();
    state
}

/// What is said of going back from one content to another beside the rest of a stage.
fn evaluated(now: &Arc<Object>, earlier: &Arc<Object>, parts: RollbackParts, stage: &Stage) -> Evaluation {
    let mut run = deployment(1, "a", &ended(delivery("s0", "a"), Outcome::PASS), Phase::Complete);
    run.object = earlier.clone();
    let memory = Memory::default().with(repository()).with(state(now)).with(deployed(run));
    let (to, notes) = (RollbackTo::Version(1), String::new());
    let asked = Rollback { config: web(), to, parts, notes, may_be_absent: false };
    let made = memory.decide(|transition| roll_back(transition, std::slice::from_ref(&asked), "ann"));
    evaluate(&made.expect("it can").answer, stage).remove(0)
}

#[test]
fn what_differs_is_told_by_what_it_is_about() {
    let env = |pairs: Value| json!({"env": pairs, "image": "git:a", "ports": [{"containerPort": 8080}]});
    let now = env(json!([{"name": "COLOR", "value": "red"}, {"name": "NEW", "value": "1"}]));
    let keys = json!({"secretKeyRef": {"name": "keys", "key": "password"}});
    let mut earlier = env(json!([{"name": "COLOR", "value": "blue"}, {"name": "OLD", "valueFrom": keys}]));
    earlier["image"] = json!("git:b");
    earlier["ports"] = json!([{"containerPort": 9090}]);
    let hook = json!({"failurePolicy": "Abort", "execNewPod": {"command": ["bin/migrate", "down"]}});
    let strategy = json!({"type": "Recreate", "recreateParams": {"pre": hook}});
    let now = declared("web", json!({"app": "shop"}), now, json!({"type": "Recreate"}));
    let earlier = declared("web", json!({"app": "shop", "tier": "a"}), earlier, strategy);
    let told = evaluated(&now, &earlier, RollbackParts::ALL, &Stage::default());
    let line = |change: &Alteration| {
        let sign = match (&change.old, &change.new) {
            (None, _) => "+",
            (_, None) => "-",
            _ => "~",
        };
        format!("{sign} {} {}", change.area.as_str(), change.name)
    };
    let lines: Vec<String> = told.changes.iter().map(line).collect();
    let expected = [
        "~ image main",
        "~ environment main/COLOR",
        "+ environment main/OLD",
        "- environment main/NEW",
        "+ ports main/9090",
        "- ports main/8080",
        "+ strategy recreateParams",
        "+ labels tier",
    ];
    assert_eq!(lines, expected);
    assert_eq!(told.hooks, ["pre (Abort): bin/migrate down"]);
    assert_eq!((told.from, told.to, told.version, &*told.title), (Some(2), 1, 3, "deploymentconfig/web"));
}

#[test]
fn the_hooks_of_what_is_declared_now_run_for_the_application_alone() {
    let hook = json!({"failurePolicy": "Ignore", "execNewPod": {"command": ["true"]}});
    let now = declared("web", json!({}), json!({}), json!({"type": "Recreate", "recreateParams": {"post": hook}}));
    let earlier = declared("web", json!({}), json!({"image": "git:b"}), json!({"type": "Recreate"}));
    let told = evaluated(&now, &earlier, RollbackParts::APPLICATION, &Stage::default());
    assert_eq!(told.hooks, ["post (Ignore): true"]);
    assert_eq!(told.warnings, ["the hooks that run are those that are declared now, not those of version 1"]);
    assert!(evaluated(&now, &earlier, RollbackParts::ALL, &Stage::default()).warnings.is_empty());
}

#[test]
fn what_no_longer_fits_the_application_is_told() {
    let (shop, bank) = (json!({"app": "shop"}), json!({"app": "bank"}));
    let strategy = json!({"type": "Recreate"});
    let ports = |name: &str| json!({"ports": [{"containerPort": 8080, "name": name}]});
    let url = |url: &str| json!({"env": [{"name": "WEB", "value": url}]});
    let now = declared("web", shop.clone(), ports("http"), strategy.clone());
    let needs = json!({"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "colors", "key": "blue"}}});
    let db = json!({"name": "DB", "value": "postgres://db:5433/shop"});
    let mut earlier = ports("web");
    earlier["env"] = json!([needs, db]);
    let earlier = declared("web", shop.clone(), earlier, strategy.clone());
    let service = |name: &str, app: &str, ports: Value| {
        other(Kind::Service, name, json!({"spec": {"selector": {"app": app}, "ports": ports}}))
    };
    let configs = [
        declared("api", shop.clone(), url("http://web:80/"), strategy.clone()),
        declared("cart", shop, url("http://web-2:80/ and my.web"), strategy.clone()),
        declared("bank", bank, url("http://web/"), strategy),
    ];
    let stage = Stage {
        configs: configs.iter().chain([&now]).map(state).collect(),
        objects: vec![
            service("web", "web", json!([{"port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 8080}])),
            service("db", "db", json!([{"port": 5432}])),
            other(Kind::ConfigMap, "colors", json!({"data": {"red": "1"}})),
        ],
    };
    let told = evaluated(&now, &earlier, RollbackParts::ALL, &stage).warnings;
    let expected = [
        "its pods will not start: couldn't find key blue in ConfigMap shop-dev/colors",
        "port 80 of service `web` leads to port `http`, which it does not have",
        "`api` refers to port 80 of service `web` (WEB), which will not answer",
        "it refers to port 5433 of service `db` (DB), which has no such port",
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_a_service_no_longer_selects_is_told() {
    let strategy = json!({"type": "Recreate"});
    let now = declared("web", json!({}), json!({"ports": [{"containerPort": 80}]}), strategy.clone());
    let mut content = now.content.value();
    content["spec"]["template"]["metadata"]["labels"] = json!({"app": "front"});
    let mut earlier = Object::clone(&now);
    digest::exchange(&mut earlier, content);
    let word = json!({"command": ["serve", "--backend", "$(WEB_SERVICE_HOST)"]});
    let api = state(&declared("api", json!({}), word, strategy));
    let selector = json!({"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let stage = Stage { configs: vec![api], objects: vec![other(Kind::Service, "web", selector)] };
    let told = evaluated(&now, &earlier.into(), RollbackParts::ALL, &stage).warnings;
    let expected = [
        "service `web` no longer leads to its pods",
        "`api` refers to port 80 of service `web` (command of `main`), which will not answer",
    ];
    assert_eq!(told, expected);
}
