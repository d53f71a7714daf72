//! The real program, against the server and against the store alone.

use std::path::Path;
use std::process::Output;

use launchway::server::presence::Presence;
use serde_json::Value;
use tokio::process::Command;

use crate::support::{OPERATOR, Server, shop};

/// Runs the program with this state folder and nothing else of ours.
async fn launchway(state: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_launchway"));
    program.args(arguments).env_clear().env("HOME", state).env("LAUNCHWAY_STATE", state);
    program.output().await.unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Makes the server the daemon of its state folder.
fn announce(server: &Server) {
    let presence = Presence { url: server.url.clone(), pid: std::process::id(), since: None };
    presence.announce(server.folder.path()).unwrap();
    let token = server.folder.path().join("operator-token");
    std::fs::write(&token, OPERATOR).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&token, mode).unwrap();
}

#[tokio::test]
async fn the_daemon_and_the_store_tell_the_same_history() {
    let server = shop().await;
    let arguments = ["history", "dc/web", "-s", "dev", "-o", "json"];
    let from_store = launchway(server.folder.path(), &arguments).await;
    announce(&server);
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
async fn acting_goes_to_the_daemon_with_the_operators_token() {
    let server = shop().await;
    let arguments = ["scale", "dc/web", "-s", "dev", "--replicas", "3"];
    let without = launchway(server.folder.path(), &arguments).await;
    assert_eq!(without.status.code(), Some(3), "{without:?}");
    announce(&server);
    let with = launchway(server.folder.path(), &arguments).await;
    assert_eq!(with.status.code(), Some(0), "{with:?}");
    assert_eq!(server.asked.all().len(), 1);
    let refused = launchway(server.folder.path(), &["rollout", "retry", "dc/web", "-s", "dev"]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("hint: use `rollout latest`"));
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
