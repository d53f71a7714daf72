//! What the tests of the packaged program have in common, whatever they install it on.

use std::time::{Duration, Instant};

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is examined meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// A shop with a service on a port that only the privileged may have, out of what the image has.
pub(crate) const SHOP: &str = r#"apiVersion: apps.openshift.io/v1
kind: DeploymentConfig
metadata: {name: web}
spec:
  replicas: 2
  selector: {app: web}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: git:web
          ports: [{containerPort: 8080}]
          readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
          lifecycle: {preStop: {exec: {command: [sh, -c, 'sleep 0.5; echo left > "$HOME/left"']}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"#;

/// Waits for something to be so.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}
