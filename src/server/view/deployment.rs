//! Deployment configs and their versions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::drift::drift;
use super::event::scaled;
use super::time;
use crate::model::cause::Cause;
use crate::model::deployment_config::{IMAGE_CHANGE, ImageChangeParams, ImageReference, Trigger};
use crate::model::event::Event;
use crate::model::object::Kind;
use crate::model::outcome::Status;
use crate::model::pod::{ObservedPod, PodPhase, STRANGER};
use crate::model::run::{DeploymentRun, Phase, SequenceRun};
use crate::model::state::{ConfigState, Standing, Version};
use crate::model::wanted::Target;
use crate::store::EventRow;

/// A deployment config: what serves, what was tried, what is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigView {
    /// The project that declares it.
    pub project: String,
    /// The stage it is deployed to.
    pub stage: String,
    /// The service it is delivered with.
    pub service: String,
    /// In which kind it is declared: `DeploymentConfig` or `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Where its pods live.
    pub namespace: String,
    /// The repository that declares it.
    pub repository: String,
    /// The highest version that was given away.
    pub latest_version: u32,
    /// The version whose pods answer.
    pub serving: Option<VersionView>,
    /// The version that was tried last, if it did not complete.
    pub attempted: Option<VersionView>,
    /// What each version gets of the traffic, in percent, where several have a part; oldest first.
    #[serde(default)]
    pub traffic: Vec<TrafficView>,
    /// The version that is kept without traffic, so that going back takes no time.
    #[serde(default)]
    pub kept: Option<KeptView>,
    /// How many pods are wanted.
    pub desired: u32,
    /// How many that are while it is deployed, if there are any only then (`test: true`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during_test: Option<u32>,
    /// How many pods of the wanted versions there are; absent if no runtime was asked.
    pub current: Option<u32>,
    /// Of these, the ready ones.
    pub ready: Option<u32>,
    /// How many pods beside these are there that were started before the store was lost or restored, and whose version it
    /// does not know: they serve until a deployment takes their place.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unrecorded: u32,
    /// Who asked for this number of pods instead of the files'.
    pub scaled_by: Option<String>,
    /// How a new version takes over, as files name it; empty if that cannot be read.
    #[serde(default)]
    pub strategy: String,
    /// What its file says instead, where the stage's `deploymentstrategy` asks for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<String>,
    /// Of a `ReplicationController`: the deployment config that deploys it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed_by: Option<String>,
    /// The replication controllers that it deploys, as they are declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controllers: Vec<String>,
    /// What starts a deployment, as `oc get dc` names it; of a `ReplicationController`, that of what deploys it.
    pub triggers: String,
    /// What its image triggers have brought.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<BroughtView>,
    /// `New`, `Running`, `Complete`, `Failed`, `Cancelled` or `Superseded`: of the last attempt. `Down`, if its repository
    /// was taken down.
    pub status: String,
    /// Why what serves is not what Git says, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<String>,
}

/// A version of a deployment config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionView {
    /// Its number.
    pub version: u32,
    /// The revision it came from.
    pub commit: String,
    /// The run that brought it up.
    pub run: String,
}

/// What an image trigger has brought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroughtView {
    /// The tag that it follows, as `<stream>:<tag>`.
    pub tag: String,
    /// Whether another image starts a deployment; else only people do.
    pub automatic: bool,
    /// The containers that get the image.
    pub containers: Vec<String>,
    /// The image; empty, if it has brought none yet.
    pub image: String,
}

/// A version's part of the traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrafficView {
    /// The version.
    pub version: u32,
    /// So much.
    pub percent: u32,
}

/// A version that is kept for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeptView {
    /// The version.
    pub version: u32,
    /// Until when.
    pub until: String,
}

impl From<&ConfigState> for ConfigView {
    fn from(state: &ConfigState) -> Self {
        let version = |version: &Version| VersionView {
            version: version.number,
            commit: version.commit.to_string(),
            run: state.key.deployment(version.number).to_string(),
        };
        let spec = state.spec().ok();
        let deployed_by = spec.as_ref().and_then(|spec| spec.controller_of.clone());
        let controllers = spec.iter().flat_map(|spec| spec.controllers.keys().cloned()).collect();
        let strategy = spec.map(|spec| spec.strategy).filter(|_| deployed_by.is_none());
        Self {
            project: state.key.project.to_string(),
            stage: state.key.stage.to_string(),
            service: state.service.to_string(),
            kind: state.object.declared_kind().to_string(),
            name: state.key.name.clone(),
            namespace: state.destination.namespace.to_string(),
            repository: state.repository.to_string(),
            latest_version: state.latest_version,
            serving: state.serving.as_ref().map(version),
            attempted: state.attempted.as_ref().map(|attempt| version(&attempt.version)),
            traffic: traffic(state),
            kept: kept(state),
            desired: state.wanted.desired(),
            during_test: state.spec().ok().filter(|spec| spec.test).map(|spec| state.replicas(&spec)),
            current: None,
            ready: None,
            unrecorded: 0,
            scaled_by: state.scaled.as_ref().map(|scaled| scaled.by.clone()),
            strategy: strategy.as_ref().map(|strategy| strategy.kind.as_str().to_owned()).unwrap_or_default(),
            overrides: strategy.and_then(|strategy| strategy.overrides).map(|own| own.as_str().to_owned()),
            triggers: deployed_by.as_ref().map_or_else(|| triggers(state), |leader| format!("dc/{leader}")),
            deployed_by,
            controllers,
            images: images(state),
            status: status(state).to_owned(),
            drift: None,
        }
    }
}

impl ConfigView {
    /// What people call it in commands.
    pub fn target(&self) -> String {
        let kinds = [Kind::Deployment, Kind::ReplicationController];
        let kind = kinds.into_iter().find(|kind| kind.name() == self.kind).unwrap_or(Kind::DeploymentConfig);
        kind.target(&self.name)
    }

    /// With what became of its repository.
    #[must_use]
    pub fn with_repository(self, is_down: bool) -> Self {
        let status = if is_down { "Down".to_owned() } else { self.status };
        Self { status, ..self }
    }

    /// With why what serves is not what Git says, where deliveries of its service wait.
    #[must_use]
    pub fn with_drift(self, pods: &[ObservedPod], state: &ConfigState, waits: &[SequenceRun]) -> Self {
        Self { drift: drift(state, pods, waits), ..self }
    }

    /// With the number of pods of the wanted versions among `pods`: of the newest one, and of those that have a part of the
    /// traffic beside it.
    #[must_use]
    pub fn with_pods(self, pods: &[ObservedPod], state: &ConfigState) -> Self {
        let has_part = |version: u32| self.traffic.iter().any(|it| it.version == version);
        let counts = |version: u32| state.wanted.version() == Some(version) || has_part(version);
        let wanted =
            |pod: &&ObservedPod| pod.version().is_some_and(|(of, version)| of == &state.key && counts(version));
        let alive = pods.iter().filter(|pod| !matches!(pod.phase, PodPhase::Ended { .. }));
        let unrecorded = alive.clone().filter(|pod| pod.version() == Some((&state.key, STRANGER))).count();
        let alive = alive.filter(wanted);
        let (ready, others): (Vec<_>, Vec<_>) = alive.partition(|pod| matches!(pod.phase, PodPhase::Ready { .. }));
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (ready, current) = (count(ready.len()), count(ready.len() + others.len()));
        Self { ready: Some(ready), current: Some(current), unrecorded: count(unrecorded), ..self }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn traffic(state: &ConfigState) -> Vec<TrafficView> {
    let part = |(version, target): (&u32, &Target)| {
        let percent = target.share.filter(|share| *share > 0)?;
        Some(TrafficView { version: *version, percent })
    };
    let parts: Vec<TrafficView> = state.wanted.targets.iter().filter_map(part).collect();
    if parts.len() > 1 { parts } else { Vec::new() }
}

fn kept(state: &ConfigState) -> Option<KeptView> {
    let beside = state.beside.as_ref()?;
    match beside.standing {
        Standing::Spare(until) => Some(KeptView { version: beside.version.number, until: time(until) }),
        Standing::Part(_) => None,
    }
}

fn status(state: &ConfigState) -> &'static str {
    match (&state.attempted, &state.serving) {
        (Some(attempt), _) => match attempt.outcome {
            None => "Running",
            Some(outcome) if outcome.passes() => "Complete",
            Some(outcome) => match outcome.status {
                Status::Aborted => "Cancelled",
                Status::Superseded => "Superseded",
                Status::Succeeded | Status::Errored | Status::TimedOut | Status::Unknown => "Failed",
            },
        },
        (None, Some(_)) => "Complete",
        (None, None) => "New",
    }
}

fn triggers(state: &ConfigState) -> String {
    let Ok(spec) = state.spec() else { return String::new() };
    let word = |trigger: &Trigger| match (trigger.kind.as_str(), &trigger.image_change_params) {
        ("ConfigChange", _) => Some("config".to_owned()),
        (IMAGE_CHANGE, Some(params)) => params.automatic.then(|| format!("image({})", params.from.name)),
        _ => None,
    };
    spec.triggers.iter().filter_map(word).collect::<Vec<_>>().join(",")
}

fn images(state: &ConfigState) -> Vec<BroughtView> {
    let Ok(spec) = state.spec() else { return Vec::new() };
    let view = |params: &ImageChangeParams| BroughtView {
        tag: params.from.name.clone(),
        automatic: params.automatic,
        containers: params.container_names.clone(),
        image: params.last_triggered_image.clone().unwrap_or_default(),
    };
    spec.image_triggers().map(view).collect()
}

/// A version in a config's history: REVISION, STATUS, CAUSE, and what more there is to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryRow {
    /// The version.
    pub version: u32,
    /// OpenShift's word for its phase.
    pub status: String,
    /// Why it was made.
    pub cause: String,
    /// The same as data.
    #[serde(default)]
    pub details: DetailsView,
    /// The revision it came from.
    pub commit: String,
    /// The run that brought it up.
    pub run: String,
    /// When it was made.
    pub created_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// How it ended.
    pub message: String,
    /// How often a person changed its number of pods, oldest first.
    #[serde(default)]
    pub scalings: Vec<ScalingView>,
}

/// Why a version was made, in the shape of upstream's `status.details`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DetailsView {
    /// In words.
    pub message: String,
    /// Each of them; none, if it was made before they were recorded.
    pub causes: Vec<CauseView>,
}

/// A cause of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CauseView {
    /// Upstream's `ConfigChange`, `ImageChange` or `Manual`; or `ContentChange` or `Rollback`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of `ImageChange`: what brought the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_trigger: Option<ImageTriggerView>,
    /// Of `Manual` and `Rollback`: who asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// What brought an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageTriggerView {
    /// The tag.
    pub from: ImageFromView,
}

/// A tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageFromView {
    /// `ImageStreamTag`.
    pub kind: String,
    /// `<stream>:<tag>`.
    pub name: String,
}

impl From<&DeploymentRun> for DetailsView {
    fn from(run: &DeploymentRun) -> Self {
        let from = |tag: &ImageReference| ImageFromView { kind: tag.kind.clone(), name: tag.name.clone() };
        let view = |cause: &Cause| CauseView {
            kind: cause.as_str().to_owned(),
            image_trigger: cause.tag().map(|tag| ImageTriggerView { from: from(tag) }),
            by: cause.by().map(str::to_owned),
        };
        Self { message: run.cause.clone(), causes: run.causes.iter().map(view).collect() }
    }
}

/// A change of the number of pods by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalingView {
    /// From so many.
    pub from: u32,
    /// To so many.
    pub to: u32,
    /// Who.
    pub by: String,
    /// When.
    pub at: String,
}

impl ScalingView {
    /// What happened, for people.
    pub fn message(&self) -> String {
        scaled(self.from, self.to, &self.by)
    }
}

impl From<&DeploymentRun> for HistoryRow {
    fn from(run: &DeploymentRun) -> Self {
        Self {
            version: run.version,
            status: run.phase.as_str().to_owned(),
            cause: if run.cause.is_empty() { "<unknown>".to_owned() } else { run.cause.clone() },
            details: DetailsView::from(run),
            commit: run.commit.to_string(),
            run: run.id.to_string(),
            created_at: time(run.created_at),
            ended_at: run.ended_at.map(time),
            message: run.remark().to_owned(),
            scalings: Vec::new(),
        }
    }
}

impl HistoryRow {
    /// With what people did to its number of pods, among what happened to the config.
    #[must_use]
    pub fn with_scalings(self, events: &[EventRow]) -> Self {
        let scaling = |row: &EventRow| match &row.event {
            Event::Scaled { version, from, to, by } if *version == Some(self.version) => {
                Some(ScalingView { from: *from, to: *to, by: by.clone(), at: time(row.at) })
            }
            _ => None,
        };
        let scalings = events.iter().filter_map(scaling).collect();
        Self { scalings, ..self }
    }

    /// Whether nothing follows.
    pub fn is_ended(&self) -> bool {
        self.status == Phase::Complete.as_str() || self.status == Phase::Failed.as_str()
    }
}
