//! Deployment configs in the shapes of OpenShift's API.

use launchway::control::commands::Command;
use launchway::control::commands::generate::{GenerateCommand, Generator};
use launchway::engine::by_hand::Images;
use launchway::model::rollback::{RollbackParts, RollbackTo};
use launchway::testing::world::config_key;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{OPERATOR, READER, Server, shop, shop_of_three_versions, shop_paused};

const CONFIGS: &str = "/apis/apps.openshift.io/v1/namespaces/shop-dev/deploymentconfigs";
const WEB: &str = "/apis/apps.openshift.io/v1/namespaces/shop-dev/deploymentconfigs/web";

async fn send(server: &Server, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
    let response = server.request(method, path).bearer_auth(OPERATOR).json(body).send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

/// What is refused, with upstream's word for it.
async fn refused(server: &Server, method: Method, path: &str, body: &Value) -> (u16, String, String) {
    let (status, answer) = send(server, method, path, body).await;
    assert_eq!((&answer["kind"], &answer["status"]), (&json!("Status"), &json!("Failure")), "{answer}");
    assert_eq!(answer["code"], status.as_u16());
    let text = |key: &str| answer[key].as_str().unwrap().to_owned();
    (status.as_u16(), text("reason"), text("message"))
}

/// The deployment config as it would be once it went back.
async fn rolled_back(server: &Server, spec: Value) -> Value {
    let asked = json!({"kind": "DeploymentConfigRollback", "name": "web", "spec": spec});
    let (status, candidate) = send(server, Method::POST, &format!("{WEB}/rollback"), &asked).await;
    assert_eq!(status, StatusCode::CREATED, "{candidate}");
    candidate
}

#[tokio::test]
async fn a_deployment_config_has_upstreams_shape_and_says_how_it_is_doing() {
    let server = shop().await;
    let all = server.json(CONFIGS).await;
    assert_eq!((&all["kind"], &all["apiVersion"]), (&json!("DeploymentConfigList"), &json!("apps.openshift.io/v1")));
    let web = server.json(WEB).await;
    assert_eq!(all["items"][0]["spec"], web["spec"]);
    assert_eq!((&web["kind"], &web["metadata"]["namespace"]), (&json!("DeploymentConfig"), &json!("shop-dev")));
    assert_eq!((&web["spec"]["replicas"], &web["spec"]["paused"]), (&json!(2), &json!(false)));
    let status = &web["status"];
    assert_eq!((&status["latestVersion"], &status["observedGeneration"]), (&json!(2), &web["metadata"]["generation"]));
    for (field, expected) in [
        ("replicas", 2),
        ("updatedReplicas", 0), // version 2 failed before it had any
        ("readyReplicas", 2),
        ("availableReplicas", 2),
        ("unavailableReplicas", 0),
    ] {
        assert_eq!(status[field], expected, "{field}: {status}");
    }
    let conditions: Vec<_> =
        status["conditions"].as_array().unwrap().iter().map(|it| (&it["type"], &it["status"])).collect();
    assert_eq!(conditions, [(&json!("Available"), &json!("True")), (&json!("Progressing"), &json!("False"))]);
    assert_eq!(status["details"]["causes"][0]["type"], "ConfigChange");

    let older = server.json("/oapi/v1/namespaces/shop-dev/deploymentconfigs/web").await;
    assert_eq!((&older["apiVersion"], &older["spec"]), (&json!("v1"), &web["spec"]));
    let proposed = server.json("/deploymentConfigs/web?namespace=shop-dev").await;
    assert_eq!(proposed["spec"], web["spec"]);
    for missing in [format!("{CONFIGS}/api"), WEB.replace("shop-dev", "elsewhere")] {
        let (code, reason, message) = refused(&server, Method::GET, &missing, &json!({})).await;
        assert_eq!((code, &*reason), (404, "NotFound"), "{message}");
    }
    assert_eq!(server.json(&CONFIGS.replace("shop-dev", "elsewhere")).await["items"], json!([]));
}

#[tokio::test]
async fn a_new_version_is_asked_for_by_the_command_that_there_is() {
    let server = shop().await;
    let instantiate = format!("{WEB}/instantiate");
    for (request, images) in [
        (json!({"kind": "DeploymentRequest", "name": "web", "latest": true, "force": true}), Images::Newest),
        (json!({"name": "web", "latest": false, "force": true}), Images::AsTheyAre),
        (json!({"name": "web", "latest": true, "force": true, "excludeTriggers": ["ImageChange"]}), Images::AsTheyAre),
    ] {
        let (status, answer) = send(&server, Method::POST, &instantiate, &request).await;
        assert_eq!((status, &answer["kind"]), (StatusCode::CREATED, &json!("DeploymentConfig")), "{request}");
        let expected = Command::Latest { config: config_key("dev", "web"), images, dry_run: false };
        assert_eq!(server.asked.all().pop(), Some((expected, "ann".to_owned())), "{request}");
    }
    let unforced = json!({"name": "web", "latest": true});
    let (_, answer) = send(&server, Method::POST, &instantiate, &unforced).await;
    assert_eq!((&answer["kind"], &answer["code"]), (&json!("Status"), &json!(204)));
    assert_eq!(answer["message"], "deployment config \"web\" cannot be instantiated");
    assert_eq!(server.asked.all().len(), 3, "nothing of it differs from what was attempted");
}

#[tokio::test]
async fn what_is_asked_for_in_vain_is_refused_in_upstreams_words() {
    let server = shop().await;
    let instantiate = format!("{WEB}/instantiate");
    for (request, expected) in [
        (json!({}), (422, "Invalid", "DeploymentRequest.apps.openshift.io \"web\" is invalid: name: Required value")),
        (
            json!({"name": "api"}),
            (400, "BadRequest", "the name of the object (api) does not match the name on the URL (web)"),
        ),
        (json!({"kind": "Scale", "name": "web"}), (400, "BadRequest", "this takes a DeploymentRequest, not a Scale")),
        (json!({"name": "web", "excludeTriggers": ["Image"]}), (422, "Invalid", "Invalid value: \"Image\"")),
        (json!({"name": 1}), (422, "Invalid", "invalid type")),
    ] {
        let (code, reason, message) = refused(&server, Method::POST, &instantiate, &request).await;
        assert_eq!((code, &*reason), (expected.0, expected.1), "{request}");
        assert!(message.contains(expected.2), "{message}");
    }
    let rollback = format!("{WEB}/rollback");
    let spec = |spec: Value| json!({"name": "web", "spec": spec});
    for (request, expected) in [
        (
            spec(json!({"revision": -1, "includeTemplate": true})),
            "spec.revision: Invalid value: -1: must be non-negative",
        ),
        (
            spec(json!({"revision": 9, "includeTemplate": true})),
            "name: Invalid value: \"web\": there is no version 9 of `web`",
        ),
        (spec(json!({"revision": 1})), "nothing of `web` is to come back"),
        (spec(json!({"includeTemplate": true, "includeTriggers": true})), "spec.includeTriggers: Forbidden: "),
        (spec(json!({"includeTemplate": true, "from": {"name": "api-1"}})), "spec.from.name: Invalid value: \"api-1\""),
        (
            spec(json!({"includeTemplate": true, "from": {"kind": "Pod", "name": "web-1"}})),
            "must be 'ReplicationController'",
        ),
        (spec(json!({"revision": 2, "from": {"name": "web-1"}})), "`spec.from` names version 1"),
        (json!({"name": "web", "updatedAnnotations": {"a": "b"}}), "updatedAnnotations: Forbidden: "),
        (spec(json!({"revision": 1, "includeTemplate": true})), "version 1 of `web` serves already"),
    ] {
        let (code, reason, message) = refused(&server, Method::POST, &rollback, &request).await;
        assert_eq!((code, &*reason), (422, "Invalid"), "{request}: {message}");
        assert!(message.starts_with("DeploymentConfigRollback.apps.openshift.io \"web\" is invalid: "), "{message}");
        assert!(message.contains(expected), "{message}");
    }
    for (method, path) in [(Method::POST, CONFIGS), (Method::DELETE, WEB), (Method::PATCH, WEB)] {
        let (code, reason, message) = refused(&server, method, path, &json!({})).await;
        assert_eq!((code, &*reason), (405, "MethodNotAllowed"));
        assert!(message.contains("Git says"), "{message}");
    }
    assert!(server.asked.all().is_empty());
}

#[tokio::test]
async fn what_is_paused_takes_no_new_version() {
    let server = shop_paused().await;
    assert_eq!(server.json(WEB).await["spec"]["paused"], true);
    let asked = json!({"name": "web", "latest": true, "force": true});
    let (code, reason, message) = refused(&server, Method::POST, &format!("{WEB}/instantiate"), &asked).await;
    assert_eq!((code, &*reason), (422, "Invalid"));
    let expected =
        "spec.paused: Invalid value: true: deployment config \"web\" is paused - unpause to request a new deployment";
    assert!(message.ends_with(expected), "{message}");
    let spec = json!({"name": "web", "spec": {"includeTemplate": true}});
    let (code, _, message) = refused(&server, Method::POST, &format!("{WEB}/rollback"), &spec).await;
    assert_eq!(code, 422);
    assert!(message.contains("cannot rollback a paused deployment config"), "{message}");
    assert!(server.asked.all().is_empty());
}

#[tokio::test]
async fn who_may_not_act_gets_a_status_too() {
    let server = shop().await;
    let instantiate = format!("{WEB}/instantiate");
    for (path, method) in [(&*instantiate, Method::POST), (WEB, Method::PUT), ("/deploymentConfigs/web", Method::PUT)] {
        for (token, code, reason) in [(None, 401, "Unauthorized"), (Some(READER), 403, "Forbidden")] {
            let request = server.request(method.clone(), path).json(&json!({"name": "web"}));
            let request = token.map(|token| server.request(method.clone(), path).bearer_auth(token)).unwrap_or(request);
            let response = request.send().await.unwrap();
            assert_eq!(response.status().as_u16(), code, "{path}");
            let answer: Value = response.json().await.unwrap();
            assert_eq!((&answer["kind"], &answer["reason"]), (&json!("Status"), &json!(reason)));
        }
    }
    assert!(server.asked.all().is_empty());
}

#[tokio::test]
async fn a_rollback_is_generated_and_changes_nothing_until_it_is_put() {
    let server = shop_of_three_versions().await;
    let image = |config: &Value| config["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    let now = server.json(WEB).await;
    assert_eq!((image(&now), &now["spec"]["replicas"]), (json!("c"), &json!(3)));
    for (spec, expected) in [
        (json!({"includeTemplate": true}), ("b", 3, 3)),
        (json!({"revision": 1, "includeTemplate": true}), ("a", 3, 3)),
        (json!({"revision": 1, "includeTemplate": true, "includeReplicationMeta": true}), ("a", 1, 3)),
        (json!({"revision": 1, "includeStrategy": true}), ("c", 3, 1)),
        (json!({"from": {"kind": "ReplicationController", "name": "web-1"}, "includeTemplate": true}), ("a", 3, 3)),
    ] {
        let candidate = rolled_back(&server, spec.clone()).await;
        let surge = candidate["spec"]["strategy"]["rollingParams"]["maxSurge"].clone();
        let found = (image(&candidate), candidate["spec"]["replicas"].clone(), surge);
        assert_eq!(found, (json!(expected.0), json!(expected.1), json!(expected.2)), "{spec}");
        assert_eq!(candidate["status"]["latestVersion"], 4);
    }
    let older = "/oapi/v1/namespaces/shop-dev/deploymentconfigrollbacks";
    let from = json!({"spec": {"from": {"name": "web-1"}, "includeTemplate": true}});
    let (status, candidate) = send(&server, Method::POST, older, &from).await;
    assert_eq!((status, image(&candidate), &candidate["apiVersion"]), (StatusCode::CREATED, json!("a"), &json!("v1")));
    assert!(server.asked.all().is_empty());

    let mut candidate = rolled_back(&server, json!({"revision": 1, "includeTemplate": true})).await;
    candidate["spec"]["template"]["metadata"]["creationTimestamp"] = Value::Null; // clients in Go send that
    let (status, answer) = send(&server, Method::PUT, WEB, &candidate).await;
    assert_eq!((status, &answer["kind"]), (StatusCode::OK, &json!("DeploymentConfig")));
    let [(Command::Generate(asked), by)] = &server.asked.all()[..] else { unreachable!("one command") };
    let GenerateCommand { config, from: Generator::Rollback(rollback), carry_out: Some(_) } = &**asked else {
        unreachable!("{asked:?}")
    };
    assert_eq!((config, by.as_str()), (&config_key("dev", "web"), "ann"));
    let template = RollbackParts { template: true, ..RollbackParts::NOTHING };
    assert_eq!((&rollback.to, rollback.parts), (&RollbackTo::Version(1), template));
}

#[tokio::test]
async fn only_what_was_generated_is_put() {
    let server = shop_of_three_versions().await;
    let now = server.json(WEB).await;
    let (status, answer) = send(&server, Method::PUT, WEB, &now).await;
    assert_eq!((status, &answer["spec"]), (StatusCode::OK, &now["spec"]), "what is as it is stays so");
    let generated = server.json("/generateDeploymentConfigs/web?namespace=shop-dev").await;
    assert_eq!(
        (&generated["spec"], &generated["status"]["latestVersion"]),
        (&now["spec"], &json!(3)),
        "nothing is new"
    );
    assert!(server.asked.all().is_empty());

    let candidate = rolled_back(&server, json!({"revision": 1, "includeTemplate": true})).await;
    let with = |config: &Value, pointer: &str, value: Value| {
        let mut config = config.clone();
        *config.pointer_mut(pointer).unwrap() = value;
        config
    };
    let image = "/spec/template/spec/containers/0/image";
    for (wished, expected) in [
        (with(&now, image, json!("d")), (422, "spec.template.spec.containers[0].image: Forbidden: Git says")),
        (with(&now, "/spec/replicas", json!(5)), (422, "spec.replicas: Forbidden: Git says")),
        (with(&candidate, image, json!("d")), (422, "spec.template.spec.containers[0].image: Forbidden: Git says")),
        (
            with(&candidate, "/metadata/annotations", json!({"launchway.dev/rollback": "{"})),
            (400, "not as it was generated"),
        ),
        (with(&candidate, "/metadata/annotations", json!({})), (422, "containers[0].image")),
        (with(&now, "/metadata/resourceVersion", json!("1")), (409, "please apply your changes to the latest version")),
        (with(&now, "/metadata/name", json!("api")), (400, "the name of the object (api) does not match")),
        (with(&now, "/kind", json!("Deployment")), (400, "the kind of the object (Deployment)")),
        (json!([]), (400, "this takes a DeploymentConfig with its `spec`")),
    ] {
        let (code, _, message) = refused(&server, Method::PUT, WEB, &wished).await;
        assert_eq!(code, expected.0, "{message}");
        assert!(message.contains(expected.1), "{message}");
    }
    assert!(server.asked.all().is_empty());

    let forced = with(&now, "/status/latestVersion", json!(4));
    let (code, _, message) = refused(&server, Method::PUT, "/deploymentConfigs/web", &forced).await;
    assert_eq!(code, 400, "{message}");
    assert!(message.contains("`?namespace=`: shop-dev, shop-production"), "{message}");
    let (status, _) = send(&server, Method::PUT, "/deploymentConfigs/web?namespace=shop-dev", &forced).await;
    assert_eq!(status, StatusCode::OK, "upstream's older clients ask so for a new version");
    let asked = server.asked.all();
    let [(Command::Generate(asked), _)] = &asked[..] else { unreachable!("{asked:?}") };
    assert_eq!(asked.from, Generator::Declared(Images::Newest));
    assert!(asked.carry_out.is_some());
}
