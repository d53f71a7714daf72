//! What of a deployment config may not be meant so, although it is valid. Source of what is worth a word: the analysis of
//! `oc status`.

use super::config_detail::Referred;
use crate::manifest::image_trigger::followed;
use crate::model::deployment_config::{DeploymentConfigSpec, StrategyKind};
use crate::model::pod::PodSpec;
use crate::model::pod::references::lacking;
use crate::model::state::ConfigState;

/// What people should know of what is declared, each a sentence without a period. What a cluster has beside the files nobody
/// knows here.
pub(super) fn warnings(state: &ConfigState, spec: &DeploymentConfigSpec, referred: &Referred) -> Vec<String> {
    let mut found: Vec<String> = unprobed(&spec.template.spec).into_iter().collect();
    found.extend(shared_folders(state, spec));
    if state.destination.is_local() {
        found.extend(unfollowed(state, referred));
        let missing = lacking(&spec.template, &state.destination.namespace, &referred.objects);
        found.extend(missing.map(|missing| format!("its pods do not start: {missing}")));
    }
    found
}

/// Without a probe, a pod counts as ready once its processes run.
fn unprobed(pods: &PodSpec) -> Option<String> {
    let is_unprobed = pods.containers.iter().all(|container| container.readiness_probe.is_none());
    let why = "no container has a readiness probe, so that a rollout cannot tell whether a new pod works";
    is_unprobed.then(|| why.to_owned())
}

/// A folder of the machine is one and the same for all pods that write to it.
fn shared_folders(state: &ConfigState, spec: &DeploymentConfigSpec) -> Vec<String> {
    let several = match (state.replicas(spec), spec.strategy.kind) {
        (0 | 1, StrategyKind::Recreate) => return Vec::new(),
        (0 | 1, _) => "the old and the new pod of a rollout",
        _ => "all pods",
    };
    let pods = &spec.template.spec;
    let mounts = pods.init_containers.iter().chain(&pods.containers).flat_map(|container| &container.volume_mounts);
    let written: Vec<&str> = mounts.filter(|mount| !mount.read_only).map(|mount| mount.name.as_str()).collect();
    let folders = pods.volumes.iter().filter(|volume| volume.host_path.is_some());
    let shared = folders.filter(|volume| written.contains(&volume.name.as_str()));
    let told = |name: &str| format!("volume `{name}` is one folder of the machine, which {several} write to at once");
    shared.map(|volume| told(&volume.name)).collect()
}

/// What image triggers follow and nothing declares.
fn unfollowed(state: &ConfigState, referred: &Referred) -> Vec<String> {
    let followed = followed(&state.object.content.value());
    let told = followed.iter().filter_map(|followed| {
        let (stream, tag) = (followed.stream.as_str(), followed.tag.as_str());
        if !referred.streams.has(stream) {
            return Some(format!(
                "an image trigger follows `{stream}:{tag}`, and the stage declares no such image stream"
            ));
        }
        let is_there = referred.streams.tags(stream).any(|known| known == tag);
        (!is_there).then(|| format!("an image trigger follows `{stream}:{tag}`, and that stream has no such tag yet"))
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::ids::Destination;
    use crate::testing::world::{config_key, deployment_config};

    const PROBE: &str = "readiness probe";

    fn told(replicas: u32, spec: Value, referred: &Referred) -> Vec<String> {
        let object = deployment_config("web", "a", replicas, spec);
        let destination = Destination::local("shop-dev".into());
        let state = ConfigState::new(config_key("dev", "web"), destination, "repo".into(), object.into(), "c1".into());
        let spec = state.spec().expect("a deployment config");
        warnings(&state, &spec, referred)
    }

    fn template(volumes: Value, mounts: Value) -> Value {
        let probe = json!({"tcpSocket": {"port": 80}});
        let container = json!({"name": "web", "image": "a", "readinessProbe": probe, "volumeMounts": mounts});
        json!({"spec": {"containers": [container], "volumes": volumes}})
    }

    fn assert_told(told: &[String], expected: &[&str]) {
        assert_eq!(told.len(), expected.len(), "{told:?}");
        assert!(told.iter().zip(expected).all(|(told, words)| told.contains(words)), "{told:?}");
    }

    #[test]
    fn a_rollout_cannot_judge_what_has_no_probe() {
        let nothing = Referred::default();
        assert_told(&told(1, json!({}), &nothing), &[PROBE]);
        assert_told(&told(1, json!({"template": template(json!([]), json!([]))}), &nothing), &[]);
    }

    #[test]
    fn a_folder_of_the_machine_is_shared_by_pods_that_write_to_it() {
        let volumes = json!([{"name": "data", "hostPath": {"path": "/srv"}}]);
        let mounted = |read_only: bool| {
            template(volumes.clone(), json!([{"name": "data", "mountPath": "/data", "readOnly": read_only}]))
        };
        let recreate = json!({"type": "Recreate"});
        for (replicas, spec, expected) in [
            (1, json!({"template": mounted(false)}), &["the old and the new pod"][..]),
            (2, json!({"template": mounted(false), "strategy": recreate}), &["`data` is one folder"]),
            (1, json!({"template": mounted(false), "strategy": recreate}), &[]),
            (2, json!({"template": mounted(true)}), &[]),
        ] {
            assert_told(&told(replicas, spec, &Referred::default()), expected);
        }
    }

    #[test]
    fn what_is_referred_to_and_not_there_is_named() {
        let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}]);
        let params = json!({"automatic": true, "containerNames": ["web"], "from": {"name": "app:live"}});
        let triggers = json!([{"type": "ImageChange", "imageChangeParams": params}]);
        let spec = json!({"template": template(volumes, json!([])), "triggers": triggers});
        let claim = "persistentvolumeclaim \"disk\" not found";
        let mut referred = Referred::default();
        assert_told(&told(1, spec.clone(), &referred), &["declares no such image stream", claim]);
        referred.streams.declare("app");
        assert_told(&told(1, spec, &referred), &["has no such tag", claim]);
    }
}
