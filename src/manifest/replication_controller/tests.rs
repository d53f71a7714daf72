use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::manifest::files::{Content, FileEntry, FileKind, Files, LARGEST};
use crate::manifest::{Options, Snapshot};
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::project::Project;
use crate::model::seed::Seed;

/// Files in memory.
struct Tree(BTreeMap<String, String>);

impl Files for Tree {
    fn entries(&self) -> crate::error::Result<Vec<FileEntry>> {
        let kind = FileKind::File { executable: false };
        let entry = |(path, text): (&String, &String)| FileEntry { path: path.clone(), kind, id: text.clone() };
        Ok(self.0.iter().map(entry).collect())
    }

    fn read(&self, entry: &FileEntry) -> crate::error::Result<Content> {
        Ok(Content::Whole(self.0[&entry.path].clone().into_bytes()))
    }

    fn limit(&self) -> u64 {
        LARGEST
    }

    fn tree_id(&self, _folder: &str) -> crate::error::Result<Option<String>> {
        Ok(Some("1".to_owned()))
    }

    fn kind(&self, _path: &str) -> crate::error::Result<Option<FileKind>> {
        Ok(Some(FileKind::File { executable: true }))
    }
}

const WEB: &str = "apiVersion: v1\nkind: DeploymentConfig\nmetadata: {name: web}\nspec:\n  strategy: {type: Custom, customParams: {command: [bin/deploy]}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: 'git:web'}]}\n";

/// A replication controller with a label and a part of its spec, both as YAML on one line.
fn controller(name: &str, labels: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ReplicationController\nmetadata: {{name: {name}, labels: {{{labels}}}}}\nspec:\n  {spec}\n  template:\n    \
         metadata: {{labels: {{region: {name}}}}}\n    spec: {{containers: [{{name: web, image: 'git:web'}}]}}\n"
    )
}

fn of_web(name: &str) -> String {
    controller(name, "openshift.io/deployment-config.name: web", "minReadySeconds: 0")
}

fn read(files: &[(&str, String)]) -> Snapshot {
    let tree = Tree(files.iter().map(|(path, text)| ((*path).to_owned(), text.clone())).collect());
    Snapshot::read(&tree, &Options { repository: "shop".into(), seed: Seed::NONE }).expect("it is readable")
}

fn project(files: &[(&str, String)]) -> std::sync::Arc<Project> {
    let outcome = read(files).project().clone();
    outcome.project.unwrap_or_else(|| unreachable!("{:?}", outcome.problems))
}

fn object<'a>(project: &'a Project, name: &str) -> &'a Object {
    let key = ObjectKey { kind: Kind::DeploymentConfig, name: name.to_owned() };
    project.stages[0].objects.get(&key).expect("it is declared")
}

#[test]
fn it_is_a_deployment_config_that_starts_nothing_by_itself() {
    let project = project(&[("a.yaml", WEB.to_owned()), ("east.yaml", of_web("east"))]);
    let east = object(&project, "east");
    assert_eq!((east.declared_kind(), east.service.as_str()), (Kind::ReplicationController, "web"));
    assert_eq!(east.target(), "rc/east");
    let at = |pointer: &str| east.content.at(pointer).unwrap_or_default();
    for (pointer, expected) in [
        ("/spec/replicas", json!(1)),
        ("/spec/selector", json!({"region": "east"})),
        ("/spec/triggers", json!([])),
        ("/spec/controllerOf", json!("web")),
        ("/spec/template/spec/restartPolicy", json!("Always")),
    ] {
        assert_eq!(at(pointer), expected, "{pointer}");
    }
    let web = object(&project, "web");
    assert_eq!(web.content.at("/spec/controllers"), Some(json!({"east": at("/spec/template")})));
}

#[test]
fn a_change_of_its_template_is_one_of_its_deployment_config_and_one_of_its_replicas_is_not() {
    let web = |east: String| object(&project(&[("a.yaml", WEB.to_owned()), ("e.yaml", east)]), "web").digest.clone();
    let label = "openshift.io/deployment-config.name: web";
    let before = web(of_web("east"));
    assert_eq!(web(controller("east", label, "replicas: 3")), before);
    assert_ne!(web(of_web("east").replace("name: web, image", "name: main, image")), before);
    let without = object(&project(&[("a.yaml", WEB.to_owned())]), "web").digest.clone();
    assert_ne!(before, without);
    let forged = WEB.replace("spec:\n  strategy", "spec:\n  controllerOf: x\n  controllers: {east: {}}\n  strategy");
    assert_eq!(object(&project(&[("a.yaml", forged)]), "web").digest, without, "no file says what belongs to it");
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: east}\nspec: {controllerOf: web, template: {}, selector: {app: web}, ports: [{port: 80}]}\n";
    let files = [("a.yaml", WEB.to_owned()), ("s.yaml", service.to_owned())];
    assert_eq!(object(&project(&files), "web").digest, without, "nor does another kind");
}

#[test]
fn in_lists_templates_and_the_words_of_the_proposal_it_is_the_same() {
    let indented = |text: &str| text.replace('\n', "\n  ");
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n- {}\n- {}\n",
        indented(WEB.trim_end()),
        indented(of_web("east").trim_end())
    );
    let template = format!(
        "apiVersion: v1\nkind: Template\nmetadata: {{name: t}}\nobjects:\n- {}\n- {}\n",
        indented(WEB.trim_end()),
        indented(of_web("east").trim_end())
    );
    let older = "apiVersion: v1\nkind: DeploymentConfig\nmetadata: {name: web}\nspec:\n  strategy: {type: Custom, customParams: {command: [bin/deploy]}}\n  controllerTemplate:\n    podTemplate:\n      metadata: {labels: {app: web}}\n      spec: {containers: [{name: web, image: 'git:web'}]}\n";
    let plain = object(&project(&[("a.yaml", WEB.to_owned()), ("e.yaml", of_web("east"))]), "web").digest.clone();
    for files in [
        vec![("all.yaml", list)],
        vec![("all.yaml", template)],
        vec![("a.yaml", older.to_owned()), ("e.yaml", of_web("east"))],
    ] {
        let project = project(&files);
        assert_eq!(object(&project, "web").digest, plain, "{files:?}");
        assert_eq!(object(&project, "east").declared_kind(), Kind::ReplicationController);
    }
}

#[test]
fn an_autoscaler_takes_its_number_out_of_its_hands_and_deploys_nothing() {
    let scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: load}\nspec: {maxReplicas: 9, \
                  scaleTargetRef: {apiVersion: v1, kind: ReplicationController, name: east}}\n";
    let files = [("a.yaml", WEB.to_owned()), ("e.yaml", of_web("east"))];
    let scaled = project(&[&files[..], &[("hpa.yaml", scaler.to_owned())]].concat());
    assert_eq!(object(&scaled, "east").content.at("/spec/autoscaler"), Some(json!("load")));
    assert_eq!(object(&scaled, "web").digest, object(&project(&files), "web").digest);
    let alone = [("e.yaml", controller("east", "app: web", "replicas: 1")), ("hpa.yaml", scaler.to_owned())];
    let told: Vec<String> = read(&alone).project().problems.iter().map(ToString::to_string).collect();
    assert!(told.len() == 2 && told.iter().all(|told| told.contains("is not applied")), "{told:?}");
}

#[test]
fn without_the_label_it_is_left_alone() {
    let outcome = read(&[("a.yaml", WEB.to_owned()), ("e.yaml", controller("east", "app: web", "replicas: 1"))])
        .project()
        .clone();
    let told: Vec<String> = outcome.problems.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("warning: kind: ReplicationController (v1) is not applied"), "{told:?}");
    let project = outcome.project.expect("it is usable");
    assert_eq!(object(&project, "web").content.at("/spec/controllers"), None::<Value>);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let label = |name: &str| format!("openshift.io/deployment-config.name: {name}");
    let rolling = WEB.replace("{type: Custom, customParams: {command: [bin/deploy]}}", "{type: Rolling}");
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: 'git:web'}]}\n";
    let place = "e.yaml:3:";
    let of_label = "metadata.labels.openshift.io/deployment-config.name: ";
    let with_label = |more: &str| controller("east", &format!("{}, {more}", label("web")), "replicas: 1");
    for (web, east, expected) in [
        (
            WEB,
            controller("east", &label("wep"), "replicas: 1"),
            format!(
                "{of_label}stage `default` declares no DeploymentConfig/wep, which would deploy it (did you mean `web`?)"
            ),
        ),
        (
            WEB,
            controller("east", &label("east"), "replicas: 1"),
            format!("{of_label}a replication controller does not deploy itself"),
        ),
        (WEB, controller("east", "'openshift.io/deployment-config.name': ''", "replicas: 1"), format!("{of_label}`` ")),
        (
            &rolling,
            of_web("east"),
            format!(
                "{of_label}DeploymentConfig/web (a.yaml:1:1) is deployed by Rolling, which knows no other controllers"
            ),
        ),
        (deployment, of_web("east"), format!("{of_label}Deployment/web (a.yaml:1:1) deploys no other controllers")),
        (
            WEB,
            with_label("launchway.dev/service: other"),
            "metadata.labels.launchway.dev/service: `other` is not the service of DeploymentConfig/web".to_owned(),
        ),
    ] {
        let told: Vec<String> = read(&[("a.yaml", web.to_owned()), ("e.yaml", east)])
            .project()
            .problems
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(told.iter().any(|it| it.starts_with(place) && it.contains(&expected)), "{expected}: {told:?}");
    }
    for (spec, expected) in [
        (
            "selector: {region: west}",
            "spec.template.metadata.labels: the selector's `region` is not among the template's labels",
        ),
        ("replicas: -1", "spec.replicas: "),
        ("strategy: {}", "spec.strategy: "),
    ] {
        let east = controller("east", &label("web"), spec);
        let problems = read(&[("a.yaml", WEB.to_owned()), ("e.yaml", east)]).project().problems.clone();
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|it| it.starts_with("e.yaml:") && it.contains(expected)), "{expected}: {told:?}");
    }
    let overlapping = of_web("west").replace("region: west", "region: east");
    let files = [("a.yaml", WEB.to_owned()), ("e.yaml", of_web("east")), ("w.yaml", overlapping)];
    let told: Vec<String> = read(&files).project().problems.iter().map(ToString::to_string).collect();
    let expected = "spec.selector: the selectors do not tell its pods from those of ReplicationController/east";
    assert!(told.iter().any(|it| it.starts_with("w.yaml:") && it.contains(expected)), "{told:?}");
    let twice =
        [("a.yaml", WEB.to_owned()), ("e.yaml", of_web("east")), ("w.yaml", WEB.replace("name: web}", "name: east}"))];
    let told: Vec<String> = read(&twice).project().problems.iter().map(ToString::to_string).collect();
    assert!(
        told.iter().any(|it| it.contains("DeploymentConfig/east is the same as ReplicationController/east")),
        "{told:?}"
    );
}
