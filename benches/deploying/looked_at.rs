//! A repository of 2,000 deployment configs with hooks and probes, read, validated and planned by who knows nothing of it.

use std::path::Path;

use crate::support::import::Importer;
use crate::support::{cold, figures, git};

const CONFIGS: u32 = 2_000;
const TIMES: usize = 10;

pub(crate) fn measure() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bare = git::bare(folder.path());
    let mut importer = Importer::start(&bare);
    let code = ("code/README".to_owned(), "Nothing is needed.\n".to_owned());
    importer.commit((0..CONFIGS).map(config).chain([code]));
    importer.end();
    git::run(folder.path(), &["clone", "--quiet", "origin.git", "work"]);
    let work = folder.path().join("work");
    tell("cold `launchway plan`, which reads, validates and plans", &work, &["plan"]);
    tell("cold `launchway validate`", &work, &["validate"]);
}

fn tell(what: &str, work: &Path, arguments: &[&str]) {
    let runs: Vec<_> = (0..TIMES).map(|_| cold::run(work, arguments)).collect();
    let peak = runs.iter().map(|(_, peak)| *peak).max().unwrap();
    figures::tell(&format!("{CONFIGS} deployment configs, {what}"), runs.into_iter().map(|(time, _)| time).collect());
    println!("… at the peak: {} MiB", peak.div_ceil(1024));
}

/// One with most of what such files have.
fn config(number: u32) -> (String, String) {
    let hook = "{failurePolicy: Abort, execNewPod: {containerName: app, command: [sh, -c, ./check]}}";
    let text = format!(
        "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {{name: app-{number}, labels: {{app: app-{number}}}}}\n\
         spec:\n  replicas: 2\n  revisionHistoryLimit: 5\n  selector: {{app: app-{number}}}\n  \
         strategy:\n    type: Rolling\n    rollingParams: {{maxSurge: 1, maxUnavailable: 0, pre: {hook}, post: {hook}}}\n  \
         triggers: [{{type: ConfigChange}}]\n  template:\n    metadata: {{labels: {{app: app-{number}}}}}\n    spec:\n      \
         containers:\n      - name: app\n        image: 'git:code'\n        command: [sleep, '86400']\n        \
         ports: [{{name: http, containerPort: 8080}}]\n        env: [{{name: LEVEL, value: info}}, {{name: NUMBER, value: '{number}'}}]\n        \
         resources: {{requests: {{cpu: 10m, memory: 16Mi}}, limits: {{memory: 64Mi}}}}\n        \
         readinessProbe: {{httpGet: {{path: /healthz, port: http}}, periodSeconds: 5}}\n        \
         livenessProbe: {{httpGet: {{path: /healthz, port: http}}, periodSeconds: 10}}\n"
    );
    (format!("deploy/{}/app-{number}.yaml", number / 100), text)
}
