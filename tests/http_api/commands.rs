//! The real program, against the server and against the store alone.

use std::path::Path;
use std::process::Output;
use std::time::Instant;

use futures::future::join_all;
use launchway::control::accounts;
use launchway::server::socket::Socket;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{HOOKS_SPACED, OPERATOR, shop, shop_at_rest, shop_watching};

/// The program with this state folder and nothing else of ours.
fn program(state: &Path, arguments: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_launchway"));
    program.args(arguments).env_clear().env("HOME", state).env("LAUNCHWAY_STATE", state);
    program
}

/// Runs it.
async fn launchway(state: &Path, arguments: &[&str]) -> Output {
    program(state, arguments).output().await.unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[tokio::test]
async fn the_daemon_and_the_store_tell_the_same_history() {
    let server = shop().await;
    let arguments = ["history", "dc/web", "-s", "dev", "-o", "json"];
    let from_store = launchway(server.folder.path(), &arguments).await;
    server.open(Socket::Commands);
    let from_daemon = launchway(server.folder.path(), &arguments).await;
    assert!(from_store.status.success(), "{from_store:?}");
    assert_eq!(text(&from_store), text(&from_daemon));
    let rows: Value = serde_json::from_str(&text(&from_store)).unwrap();
    assert_eq!(rows["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn rollout_history_lines_up_as_openshifts_does() {
    let server = shop().await;
    let output = launchway(server.folder.path(), &["rollout", "history", "dc/web", "-s", "dev"]).await;
    let lines: Vec<String> = text(&output).lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "deploymentconfig.apps.openshift.io/web");
    assert_eq!(lines[1], "REVISION   STATUS     CAUSE");
    assert!(lines[2].starts_with("1          Complete   "), "{lines:?}");
    assert!(lines[3].starts_with("2          Failed     "), "{lines:?}");
}

#[tokio::test]
async fn a_test_at_rest_lacks_nothing_whoever_tells_of_it() {
    let server = shop_at_rest().await;
    server.open(Socket::Commands);
    let told = async |arguments: &[&str]| text(&launchway(server.folder.path(), arguments).await);
    let described = told(&["describe", "dc/web", "-s", "dev"]).await;
    assert!(described.contains("2 wanted (during test), 0 there, 0 ready"), "{described}");
    assert!(told(&["get", "dc", "-s", "dev"]).await.contains("2 (during test)"));
    let detail: Value = serde_json::from_str(&told(&["describe", "dc/web", "-s", "dev", "-o", "json"]).await).unwrap();
    let available = detail.to_string().contains("\"type\":\"Available\",\"status\":\"True\"");
    assert!(available, "{detail:#}");
}

#[tokio::test]
async fn a_failed_commit_makes_status_exit_with_1() {
    let server = shop().await;
    let output = launchway(server.folder.path(), &["status"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output).contains("launchway/dev/web/pre"), "{}", text(&output));
}

#[tokio::test]
async fn where_the_choice_is_not_clear_the_choices_are_listed() {
    let server = shop().await;
    let output = launchway(server.folder.path(), &["why", "dc/web"]).await;
    assert_eq!(output.status.code(), Some(2));
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("-s dev") && complaint.contains("-s production"), "{complaint}");
}

#[tokio::test]
async fn acting_goes_to_the_daemon_as_the_user_of_the_command() {
    let server = shop().await;
    let arguments = ["scale", "dc/web", "-s", "dev", "--replicas", "3"];
    let without = launchway(server.folder.path(), &arguments).await;
    assert_eq!(without.status.code(), Some(3), "{without:?}");
    server.open(Socket::Commands);
    let with = launchway(server.folder.path(), &arguments).await;
    assert_eq!(with.status.code(), Some(0), "{with:?}");
    let asked = server.asked.all();
    let me = accounts::user_name(rustix::process::geteuid().as_raw());
    assert_eq!(asked.iter().map(|(_, by)| by.as_str()).collect::<Vec<_>>(), [me.as_str()]);
    let refused = launchway(server.folder.path(), &["rollout", "retry", "dc/web", "-s", "dev"]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("hint: use `rollout latest`"));
}

#[tokio::test]
async fn a_server_that_is_named_is_sent_the_users_own_token_alone() {
    let server = shop().await;
    let operators = server.folder.path().join("operator-token");
    std::fs::write(&operators, OPERATOR).unwrap();
    std::fs::set_permissions(&operators, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let arguments = ["--server", server.url.as_str(), "scale", "dc/web", "-s", "dev", "--replicas", "3"];
    let without = launchway(server.folder.path(), &arguments).await;
    assert_eq!(without.status.code(), Some(3), "{without:?}");
    assert!(String::from_utf8(without.stderr).unwrap().contains("LAUNCHWAY_TOKEN"));
    let with = program(server.folder.path(), &arguments).env("LAUNCHWAY_TOKEN", OPERATOR).output().await.unwrap();
    assert_eq!(with.status.code(), Some(0), "{with:?}");
    assert_eq!(server.asked.all()[0].1, "ann");
}

#[tokio::test]
async fn where_commands_may_not_ask_a_hook_may() {
    let server = shop_watching(&["repo", "bank"]).await;
    server.open(Socket::Hooks);
    let over = server.over(Socket::Hooks);
    let last = server.json("/api/v1/revisions").await["items"][0].clone();
    let (repository, commit) = (last["repository"].as_str().unwrap(), last["commit"].as_str().unwrap());
    let revision = format!("/api/v1/revisions/{repository}/{commit}");
    for (path, expected) in [
        (revision.as_str(), 200),
        (&revision[..revision.len() - 8], 403),
        ("/healthz", 200),
        ("/", 403),
        ("/api/v1/revisions", 403),
        ("/api/v1/repositories", 403),
        ("/api/v1/deployments", 403),
        ("/api/v1/logs", 403),
    ] {
        let answer = over.get(format!("http://localhost{path}")).send().await.unwrap();
        assert_eq!(answer.status(), expected, "{path}");
    }
    for (path, body, expected) in [
        ("sync", json!({"repository": repository, "onlyNew": true}), 200),
        ("sync", json!({"repository": repository, "up": true}), 403),
        ("sync", json!({"repository": repository, "allowPrune": "1a2b"}), 403),
        ("sync", json!({}), 403),
        ("sync", json!({"repository": "other"}), 404),
        ("prune", json!({}), 403),
        ("holds", json!({"project": "shop", "reason": "x"}), 403),
        ("deployments/shop/dev/web/exec", json!({"command": ["id"]}), 403),
    ] {
        let answer = over.post(format!("http://localhost/api/v1/{path}")).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), expected, "{path} {body}");
        assert!(!answer.text().await.unwrap().contains("bank"), "{path} {body}: what else is watched is told");
    }
    assert_eq!(server.asked.all().len(), 1);
}

#[tokio::test]
async fn a_state_folder_without_state_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let output = launchway(folder.path(), &["get", "dc"]).await;
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8(output.stderr).unwrap().contains("launchway up"));
}

#[tokio::test]
async fn a_backup_can_be_restored_and_read() {
    let server = shop().await;
    let other = tempfile::tempdir().unwrap();
    let copy = other.path().join("copy.db");
    let copy = copy.to_str().unwrap();
    assert!(launchway(server.folder.path(), &["store", "backup", copy]).await.status.success());
    assert!(launchway(other.path(), &["store", "restore", copy]).await.status.success());
    let output = launchway(other.path(), &["get", "dc", "-s", "dev", "-o", "json"]).await;
    let list: Value = serde_json::from_str(&text(&output)).unwrap();
    assert_eq!(list["items"][0]["serving"]["version"], 1);
}

#[tokio::test]
async fn a_hook_has_a_repository_synced_now_and_then_and_commands_at_any_time() {
    let server = shop_watching(&["repo"]).await;
    server.open(Socket::Hooks);
    server.open(Socket::Commands);
    let sync = async |socket| {
        let (over, begun) = (server.over(socket), Instant::now());
        let asked = over.post("http://localhost/api/v1/sync").json(&json!({"repository": "repo"}));
        assert_eq!(asked.send().await.unwrap().status(), 200);
        begun.elapsed()
    };
    let begun = Instant::now();
    sync(Socket::Hooks).await;
    sync(Socket::Hooks).await;
    assert!(begun.elapsed() >= HOOKS_SPACED);
    let quickest = join_all((0..20).map(|_| sync(Socket::Commands))).await.into_iter().min();
    assert!(quickest < Some(HOOKS_SPACED), "commands wait for no hook: {quickest:?}");
    assert_eq!(server.asked.all().len(), 22);
}
