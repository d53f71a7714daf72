//! What is pushed: one service, a hook before it, two stages.

use crate::work_tree::WorkTree;

const PROJECT: &str = "\
apiVersion: launchway.dev/v1
kind: Project
metadata: {name: shop}
spec:
  stages:
    dev: {path: deploy}
    production: {path: deploy}
";

const SHIPYARD: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}]
    - name: production
      sequences:
        - name: delivery
          triggeredOn: [{event: dev.delivery.finished}]
          tasks: [{name: deployment}]
";

const WEB: &str = "\
apiVersion: apps.openshift.io/v1
kind: DeploymentConfig
metadata: {name: web}
spec:
  replicas: 1
  selector: {app: web}
  triggers: [{type: ConfigChange}]
  strategy:
    type: Rolling
    rollingParams:
      pre:
        failurePolicy: Abort
        execNewPod: {containerName: web, command: [bin/check]}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: web
          image: git:web
          ports: [{name: http, containerPort: 8080}]
          readinessProbe:
            httpGet: {path: /, port: http}
            periodSeconds: 1
";

const LAUNCH: &str = "#!/bin/sh\nexec python3 -m http.server \"$PORT\" --bind 127.0.0.1\n";

/// Commits all of it for the first time.
pub(crate) fn commit(tree: &WorkTree) -> String {
    tree.commit_all(&[
        ("launchway.yaml", PROJECT),
        ("shipyard.yaml", SHIPYARD),
        ("deploy/web.yaml", WEB),
        ("web/bin/launch", LAUNCH),
        ("web/bin/check", "#!/bin/sh\necho the tables fit\n"),
    ])
}

/// Commits another version of the service.
pub(crate) fn commit_change(tree: &WorkTree) -> String {
    tree.commit("web/index.html", "hello again\n")
}

/// Commits what follows from a failure.
pub(crate) fn commit_policy(tree: &WorkTree, on_failure: &str) -> String {
    tree.commit("launchway.yaml", &format!("{PROJECT}  rollback: {{onFailure: {on_failure}}}\n"))
}

/// Commits a version whose hook fails.
pub(crate) fn commit_failure(tree: &WorkTree) -> String {
    tree.commit("web/bin/check", "#!/bin/sh\necho looking for tables\necho there is no table orders\nexit 3\n")
}
