//! A service whose versions tell that they run.

use std::path::{Path, PathBuf};

use super::git;

const CONFIG: &str = "\
apiVersion: apps.openshift.io/v1
kind: DeploymentConfig
metadata: {name: web}
spec:
  replicas: 1
  selector: {app: web}
  triggers: [{type: ConfigChange}]
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'git:web'}]}
";

/// Commits new code, which says that it runs and then does nothing.
pub(crate) fn commit(work: &Path, number: u32) {
    let launch = work.join("web/bin/launch");
    std::fs::create_dir_all(launch.parent().unwrap()).unwrap();
    std::fs::write(work.join("web.yaml"), CONFIG).unwrap();
    let script = format!("#!/bin/sh\n: > {}\nexec sleep 3600\n", mark(work, number).display());
    std::fs::write(&launch, script).unwrap();
    git::run(work, &["add", "--all"]);
    git::run(work, &["update-index", "--chmod=+x", "web/bin/launch"]);
    git::run(work, &["commit", "--quiet", "--message", &format!("Version {number}")]);
}

/// Whether a process of it has started.
pub(crate) fn started(work: &Path, number: u32) -> bool {
    mark(work, number).exists()
}

fn mark(work: &Path, number: u32) -> PathBuf {
    work.with_file_name(format!("started-{number}"))
}
