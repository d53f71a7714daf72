//! Declared objects: what a file of the repository says should exist in a stage.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::{Digest, ServiceName};
use super::json::Json;
use super::selector::{Labels, selects};

/// What an object is; two API versions of the same thing are one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// `v1` and `apps.openshift.io/v1`.
    DeploymentConfig,
    /// `apps/v1`: a `DeploymentConfig` in other words. It has the identity of one, so that one takes the other's place.
    Deployment,
    /// `v1`, where its labels say which `DeploymentConfig` deploys it: one without triggers and strategy, of whose identity it is.
    ReplicationController,
    /// `v1`.
    Service,
    /// `v1`.
    ConfigMap,
    /// `v1`.
    Secret,
    /// `v1`: where a service without a selector leads.
    Endpoints,
    /// `v1`.
    PersistentVolumeClaim,
    /// `launchway.dev/v1`: how a shipyard task runs.
    Task,
    /// `v1` and `image.openshift.io/v1`: tags that image triggers follow.
    ImageStream,
    /// Anything else, as `<apiVersion>/<kind>`.
    Other(String),
}

impl Kind {
    /// Its word in files, without the API version.
    pub fn name(&self) -> &str {
        match self {
            Kind::DeploymentConfig => "DeploymentConfig",
            Kind::Deployment => "Deployment",
            Kind::ReplicationController => "ReplicationController",
            Kind::Service => "Service",
            Kind::ConfigMap => "ConfigMap",
            Kind::Secret => "Secret",
            Kind::Endpoints => "Endpoints",
            Kind::PersistentVolumeClaim => "PersistentVolumeClaim",
            Kind::Task => "Task",
            Kind::ImageStream => "ImageStream",
            Kind::Other(name) => name.rsplit('/').next().unwrap_or(name),
        }
    }

    /// What people call a deployment config of this kind in commands.
    pub fn target(&self, name: &str) -> String {
        let word = match self {
            Kind::Deployment => "deploy",
            Kind::ReplicationController => "rc",
            _ => "dc",
        };
        format!("{word}/{name}")
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What may stand before the name of a deployment config, as in `dc/web`: as OpenShift and Kubernetes call it, a `Deployment` and a
/// `ReplicationController`.
pub const CONFIG_WORDS: [&str; 11] = [
    "dc",
    "deploymentconfig",
    "deploymentconfigs",
    "deploymentconfig.apps.openshift.io",
    "deploy",
    "deployment",
    "deployments",
    "deployment.apps",
    "rc",
    "replicationcontroller",
    "replicationcontrollers",
];

/// The label of a pod that names its `DeploymentConfig`. Source: OpenShift.
pub const CONFIG_LABEL: &str = "deploymentconfig";

/// The label of a pod that names the version of its `DeploymentConfig`, as `<name>-<version>`. Source: OpenShift.
pub const VERSION_LABEL: &str = "deployment";

/// The annotation that says where in an object's content generated values are: JSON pointers, one a line. Whoever shows
/// content shows these not.
pub const GENERATED: &str = "launchway.dev/generated";

/// The annotation of a deployment config that says which revision of code it deploys, where that lives in another repository:
/// `<repository>@<commit>`, or the commit alone where there is one repository of code.
pub const CODE: &str = "launchway.dev/code";
/// Where it stands.
pub const CODE_POINTER: &str = "/metadata/annotations/launchway.dev~1code";

/// The annotation of a template that stands for the content of what its pods read, where that deploys them anew. Plans show
/// not what it is, only that it is another.
pub const CONTENT: &str = "launchway.dev/content";

/// An object's identity in its stage.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// What it is.
    pub kind: Kind,
    /// `metadata.name`.
    pub name: String,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// Where in the repository something is said; lines and columns count from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Location {
    /// Path from the repository's root.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One object of a stage, defaults applied, images resolved.
///
/// Written down it refers to its content by digest: the store keeps each content once, and fills it in when it reads a
/// record that refers to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Its identity.
    pub key: ObjectKey,
    /// The service it is delivered with.
    pub service: ServiceName,
    /// Where it is declared.
    pub location: Location,
    /// `metadata` and `spec` (or `data` and the like) with every default, without `status`.
    #[serde(skip)]
    pub content: Json,
    /// Of `content` in canonical form, which holds no commit id.
    pub digest: Digest,
    /// Where the autoscaler is declared that says how many pods a deployment config has, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaled_at: Option<Location>,
}

impl Object {
    /// Its `spec` as one of launchway's own shapes.
    ///
    /// # Errors
    /// If it has none, or one of another shape.
    pub fn spec<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        #[derive(Deserialize)]
        struct Declared<T> {
            spec: T,
        }
        self.content.read::<Declared<T>>().map(|declared| declared.spec)
    }

    /// The kind in which it is declared, where that is another than that of its identity.
    pub fn declared_kind(&self) -> Kind {
        #[derive(Deserialize)]
        struct Declared {
            kind: Option<Kind>,
        }
        let declared = self.content.read::<Declared>().ok().and_then(|declared| declared.kind);
        declared.unwrap_or_else(|| self.key.kind.clone())
    }

    /// Whether it is a replication controller, which the deployment of its deployment config deploys.
    pub fn is_led(&self) -> bool {
        self.key.kind == Kind::DeploymentConfig && self.declared_kind() == Kind::ReplicationController
    }

    /// The names of the replication controllers that it deploys beside its own pods, if it is a deployment config that does.
    pub fn controllers(&self) -> Vec<String> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Spec {
            controllers: BTreeMap<String, IgnoredAny>,
        }
        let is_config = self.key.kind == Kind::DeploymentConfig;
        let spec = is_config.then(|| self.spec::<Spec>().ok()).flatten().unwrap_or_default();
        spec.controllers.into_keys().collect()
    }

    /// The labels of its pods of a version, given those that its template declares: a `DeploymentConfig`'s have two more, as in
    /// OpenShift.
    pub fn pod_labels(&self, version: u32, declared: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut labels = declared;
        if self.declared_kind() == Kind::DeploymentConfig {
            let name = &self.key.name;
            labels.extend([
                (CONFIG_LABEL.to_owned(), name.clone()),
                (VERSION_LABEL.to_owned(), format!("{name}-{version}")),
            ]);
        }
        labels
    }

    /// Whether it is a `Service` that leads to pods with these labels.
    pub fn leads_to(&self, labels: &Labels) -> bool {
        let selector = self.content.at("/spec/selector").and_then(|it| serde_json::from_value::<Labels>(it).ok());
        self.key.kind == Kind::Service && selector.is_some_and(|selector| selects(&selector, labels))
    }

    /// What people call a deployment config in commands: `dc/web`, or `deploy/web` where it is declared as a `Deployment`.
    pub fn target(&self) -> String {
        self.declared_kind().target(&self.key.name)
    }

    /// A deployment config's template of its pods, as it was declared, with the fields that launchway does not know.
    pub fn template(&self) -> Option<Value> {
        self.content.at("/spec/template")
    }
}
