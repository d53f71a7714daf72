//! Plays the scripts of `tests/simulations` with the program itself, and compares what it tells with what was recorded.
//!
//! `UPDATE_STORIES=1` records anew; read the difference before it is committed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use similar::TextDiff;

fn simulate(shipyard: &Path, script: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_launchway"));
    command.arg("simulate").arg(shipyard).arg("--script").arg(script).args(more).output().unwrap()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulations")
}

#[test]
fn every_script_comes_to_what_is_recorded() {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let scripts: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|it| it == "txt")).collect();
    assert!(scripts.len() > 3, "{scripts:?}");
    let mut problems = Vec::new();
    for script in scripts {
        let done = simulate(&script.with_extension("yaml"), &script, &[]);
        let complaint = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.success() && complaint.is_empty(), "{}: {complaint}", script.display());
        let (told, record) = (String::from_utf8(done.stdout).unwrap(), script.with_extension("out"));
        if std::env::var_os("UPDATE_STORIES").is_some() {
            fs::write(&record, &told).unwrap();
        }
        let recorded = fs::read_to_string(&record).unwrap_or_default();
        if told != recorded {
            let difference = TextDiff::from_lines(&recorded, &told);
            problems.push(format!("{}: {}", script.display(), difference.unified_diff()));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn the_same_comes_as_json() {
    let told = simulate(&folder().join("delivery.yaml"), &folder().join("delivery.txt"), &["-o", "json"]);
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    let step = &told["steps"][1];
    assert_eq!((&step["line"], step["command"].as_str().unwrap().split(' ').next()), (&3.into(), Some("trigger")));
    let kinds: Vec<&str> =
        step["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[0], "sh.keptn.event.dev.delivery.triggered");
    assert!(kinds.contains(&"sh.keptn.event.deploy.finished"), "{kinds:?}");
    assert_eq!(step["events"][0]["data"]["labels"], serde_json::json!({"build": "17"}));
    assert_eq!(told["states"].as_array().unwrap().len(), 2, "{:#}", told["states"]);
}

#[test]
fn what_cannot_be_is_said_with_its_place_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name)
    };
    let shipyard = self::folder().join("delivery.yaml");
    let broken =
        path("broken.yaml", "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nspec: {stages: [{sequences: []}]}\n");
    for (shipyard, script, expected) in [
        (&shipyard, "dance\n", "script.txt:1:1: `dance` is no command"),
        (&shipyard, "\n  do test\n", "script.txt:2:3: no task `test` is open to executors then"),
        (&shipyard, "trigger dev.nothing cart\n", "script.txt:1:1: stage `dev` has no sequence `nothing`"),
        (&shipyard, "trigger dev.delivery Cart!\n", "script.txt:1:1: service `Cart!`"),
        (&shipyard, "approve dev/cart\n", "script.txt:1:1: nothing of "),
        (&broken, "", "broken.yaml:3:"),
    ] {
        let done = simulate(shipyard, &path("script.txt", script), &[]);
        let complaint = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{script}: {complaint}");
        assert!(complaint.contains(expected), "{script}: {complaint}");
    }
}

#[test]
fn every_command_is_told_to_people() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/events.md")).unwrap();
    for (usage, does) in launchway::simulation::script::COMMANDS {
        let line = format!("| `{}` | {does} |", usage.replace('|', "\\|"));
        assert!(page.contains(&line), "{line}");
    }
}

#[test]
fn a_repository_is_deployed_by_pods_that_only_pretend() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.txt");
    fs::write(&script, "").unwrap();
    let told = simulate(&root.join("examples-repo"), &script, &[]);
    let text = String::from_utf8(told.stdout).unwrap();
    assert!(told.status.success() && text.contains("> push\n") && text.contains("deployment.finished"), "{text}");
}

#[test]
fn what_pods_of_tasks_write_is_told_and_left_to_those_after_them() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name)
    };
    write(
        "shipyard.yaml",
        "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {name: shop}\nspec:\n  stages:\n  - name: dev\n    \
         sequences: [{name: check, tasks: [{name: test}, {name: release}]}]\n",
    );
    write(
        "test.yaml",
        "apiVersion: launchway.dev/v1\nkind: Task\nmetadata: {name: test}\nspec: {image: host, command: ['true']}\n",
    );
    let elsewhere = tempfile::tempdir().unwrap();
    let script = elsewhere.path().join("script.txt");
    let lines = "pods cart-test works result=warning message=slow test.score=97.5\ntrigger dev.check cart\n\
                 pods cart-test fails 3 result=pass\ntrigger dev.check cart\ndo release\n";
    fs::write(&script, lines).unwrap();
    let told = simulate(folder.path(), &script, &["-o", "json"]);
    let complaint = String::from_utf8(told.stderr).unwrap();
    assert!(told.status.success(), "{complaint}");
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    let events: Vec<&serde_json::Value> =
        told["steps"].as_array().unwrap().iter().flat_map(|step| step["events"].as_array().unwrap()).collect();
    let of = |kind: &str| -> Vec<&serde_json::Value> {
        events.iter().filter(|event| event["type"] == format!("sh.keptn.event.{kind}")).map(|it| &it["data"]).collect()
    };
    let finished = of("test.finished");
    assert_eq!((&finished[0]["result"], &finished[0]["message"]), (&"warning".into(), &"slow".into()));
    assert_eq!(of("release.triggered")[0]["test"]["score"], 97.5);
    assert_eq!((&finished[1]["result"], finished.len()), (&"fail".into(), 2), "a failing exit code never passes");
}
