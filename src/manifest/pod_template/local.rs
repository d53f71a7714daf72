//! What a pod may ask for that the local runtime does not have: refused, so that nothing is left out in silence.
//! What only places pods on machines (affinity, tolerations and the like) means nothing on one machine.

use serde_json::Value;

use super::{CONTAINER_LISTS, items, text_at};
use crate::manifest::findings::Findings;

const VOLUMES: [&str; 6] = ["name", "emptyDir", "hostPath", "configMap", "secret", "persistentVolumeClaim"];

/// Checks a template that stands at `at` of its object.
pub(crate) fn validate(template: &Value, at: &str, findings: &mut Findings<'_>) {
    for (index, volume) in items(template, "/spec/volumes") {
        for source in volume.as_object().into_iter().flat_map(|map| map.keys()) {
            if !VOLUMES.contains(&source.as_str()) {
                refuse(&format!("{at}/spec/volumes/{index}/{source}"), "this kind of volume", findings);
            }
        }
    }
    for list in CONTAINER_LISTS {
        for (index, container) in items(template, list) {
            self::container(container, &format!("{at}{list}/{index}"), findings);
        }
    }
}

fn container(container: &Value, at: &str, findings: &mut Findings<'_>) {
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container.pointer(&format!("/{probe}/grpc")).is_some() {
            refuse(&format!("{at}/{probe}/grpc"), "a gRPC probe", findings);
        }
    }
    for (index, variable) in items(container, "/env") {
        if variable.pointer("/valueFrom/fileKeyRef").is_some() {
            refuse(&format!("{at}/env/{index}/valueFrom/fileKeyRef"), "a variable from a file", findings);
        }
    }
    for (index, mount) in items(container, "/volumeMounts") {
        if !text_at(mount, "/subPathExpr").is_empty() {
            refuse(&format!("{at}/volumeMounts/{index}/subPathExpr"), "an expanded subPath", findings);
        }
    }
    if !text_at(container, "/restartPolicy").is_empty() {
        refuse(&format!("{at}/restartPolicy"), "a container's own restart policy", findings);
    }
    if items(container, "/volumeDevices").next().is_some() {
        refuse(&format!("{at}/volumeDevices"), "a block device", findings);
    }
}

fn refuse(field: &str, what: &str, findings: &mut Findings<'_>) {
    findings.error_at_key(field, "not-supported", format!("{what} is not supported on the local runtime"));
}
