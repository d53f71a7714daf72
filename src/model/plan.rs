//! A plan: what a revision would do, per stage, with reasons. Immutable; printed, stored and executed as one value.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::by_digest::ByDigest;
use super::cause::Cause;
use super::deployment_config::CONTROLLERS_POINTER;
use super::ids::{
    CommitId, Destination, Digest, PlanId, ProjectName, RepositoryName, ServiceKey, ServiceName, StageName,
};
use super::object::{Kind, Object, ObjectKey};
use super::project::{Procedures, StatusDetail};
use super::shipyard::{Sequence, SequenceTrigger};
use super::slot::PassedKey;
use super::state::spec_of;
use super::time::Timestamp;

/// What a revision would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Of the whole value without `id` and `at`.
    pub id: PlanId,
    /// Whose revision it is.
    pub repository: RepositoryName,
    /// What it declares itself to be.
    pub project: ProjectName,
    /// The revision.
    pub commit: CommitId,
    /// The first line of its message.
    pub subject: String,
    /// When it was made.
    pub at: Timestamp,
    /// In the shipyard's order; stages in which nothing changes are listed too.
    pub stages: Vec<StagePlan>,
    /// Which statuses are written.
    pub statuses: StatusDetail,
    /// What can run in the revision.
    pub procedures: ByDigest<Procedures>,
}

/// What a commit shows of its plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanSummary {
    /// How many objects are decided how, in the stages in which anything is, in their order.
    pub stages: Vec<(StageName, BTreeMap<Decision, u32>)>,
    /// How many statuses below the stages it leads to.
    pub details: usize,
}

/// What changes in one stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagePlan {
    /// The stage.
    pub stage: StageName,
    /// Where its objects live.
    pub destination: Destination,
    /// How it is started.
    pub start: StageStart,
    /// The delivery sequence as it was when planned; runs keep it whatever is pushed later.
    pub sequence: Option<Sequence>,
    /// The services that change, by name.
    pub services: Vec<ServicePlan>,
    /// The services that lack only what the delivery of an earlier revision is bringing, with that revision.
    #[serde(default, skip_serializing_if = "Carried::is_empty")]
    pub carried: Arc<Carried>,
}

/// Services by name, with the revision whose delivery brings what a later one declares as well.
pub type Carried = BTreeMap<ServiceName, CommitId>;

/// What starts a stage's delivery sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StageStart {
    /// The push itself: the first stage.
    Push,
    /// Another sequence's end.
    After(Vec<SequenceTrigger>),
    /// Events from outside alone.
    Event(Vec<SequenceTrigger>),
    /// A person: other stages have `triggeredOn`, this one has none.
    ByHand,
}

impl StageStart {
    /// Whether nothing that happens to the stages before starts it.
    pub fn is_from_outside(&self) -> bool {
        matches!(self, Self::Event(_) | Self::ByHand)
    }
}

/// What changes for one service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServicePlan {
    /// The service.
    pub service: ServiceName,
    /// Of everything the service declares in this stage, without commit ids: what "passed" is recorded for.
    pub content: Digest,
    /// What of the service's content the previous stage must have passed, if there is one.
    pub previous_stage: Option<PassedContent>,
    /// How many deployment configs the service declares in this stage.
    pub configs: u32,
    /// What to do, most important first; never empty.
    pub changes: Vec<Change>,
    /// Why the sequence runs although nothing differs: its content has not passed here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_again: Option<String>,
}

/// Content of a service that a stage has passed or must pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PassedContent {
    /// The stage.
    pub stage: StageName,
    /// The service's content in that stage.
    pub content: Digest,
    /// The sequence that has to end well for it beside the one that delivers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<String>,
    /// Whether that sequence is all: the stage delivers nothing, or nothing yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
}

impl PassedContent {
    /// Under what it is remembered that a service's content has passed all that it has to.
    pub fn keys(&self, project: &ProjectName, service: &ServiceName) -> Vec<PassedKey> {
        let service = ServiceKey { project: project.clone(), stage: self.stage.clone(), service: service.clone() };
        let delivery = (!self.alone).then(|| PassedKey { service: service.clone(), content: self.content.clone() });
        let sequence = self.sequence.as_ref().map(|it| PassedKey::by_sequence(service, &self.content, it));
        delivery.into_iter().chain(sequence).collect()
    }

    /// What has to let it pass, by its name: a stage, or a sequence of it.
    pub fn by(&self) -> String {
        match &self.sequence {
            Some(sequence) => format!("{}.{sequence}", self.stage),
            None => self.stage.to_string(),
        }
    }

    /// The same with what it is.
    pub fn by_what(&self) -> String {
        let what = if self.sequence.is_some() { "sequence" } else { "stage" };
        format!("{what} `{}`", self.by())
    }
}

/// What happens to one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The object.
    pub key: ObjectKey,
    /// What is done.
    pub decision: Decision,
    /// Why: what differs.
    pub reasons: Vec<Difference>,
    /// In words: `config change`, `first deployment`, `paused`, …
    pub cause: String,
    /// What sets off a version, if that does, as data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// The object as it is to be; absent for `Delete`.
    pub object: Option<Arc<Object>>,
    /// For a retry: the version that is attempted again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<u32>,
    /// For `Delete`: the kind in which it was declared, where that is another than that of its identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<Kind>,
    /// For `Delete` and `Update`: the deployment configs that ran with it as it was when that was planned. It goes, or becomes
    /// another for them, once none does.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needed_by: BTreeSet<String>,
}

/// The cause of what waits because its file says `paused`.
pub const PAUSED: &str = "paused";

/// Begins why what Git was rolled back from waits.
pub const QUARANTINED: &str = "quarantined: ";
/// Begins why what hooks would start again and again waits.
pub const CAME_ROUND: &str = "held: ";
/// What the cause of what waits because it is held begins with; the hold's id follows.
pub const HELD: &str = "hold ";

impl Change {
    /// What happens to an object, of which nothing else is said.
    pub fn of(key: ObjectKey, decision: Decision) -> Self {
        let (reasons, cause, causes, object, retry, was, needed_by) = Default::default();
        Self { key, decision, reasons, cause, causes, object, retry, was, needed_by }
    }

    /// Whether it waits because its file says `paused`.
    pub fn is_paused(&self) -> bool {
        self.decision == Decision::Wait && self.cause == PAUSED
    }

    /// Whether it waits because images came round by hooks: a person may deploy it all the same.
    pub fn came_round(&self) -> bool {
        self.decision == Decision::Wait && self.cause.starts_with(CAME_ROUND)
    }

    /// Whether it waits because Git was rolled back from it: a person may let it be deployed again.
    pub fn is_quarantined(&self) -> bool {
        self.decision == Decision::Wait && self.cause.starts_with(QUARANTINED)
    }

    /// The kind in which the object is or was declared.
    pub fn kind(&self) -> Kind {
        let declared = self.object.as_ref().map(|object| object.declared_kind());
        declared.or_else(|| self.was.clone()).unwrap_or_else(|| self.key.kind.clone())
    }

    /// The object as people know it, as in `Deployment/web`.
    pub fn title(&self) -> String {
        format!("{}/{}", self.kind(), self.key.name)
    }

    /// What people call it in commands, if it is about a deployment config.
    pub fn target(&self) -> String {
        self.kind().target(&self.key.name)
    }

    /// The identity of what it brings; nothing, if it deletes.
    pub fn digest(&self) -> Option<&Digest> {
        self.object.as_ref().map(|object| &object.digest)
    }

    /// Whether it waits because it is held.
    pub fn is_held(&self) -> bool {
        self.decision == Decision::Wait && self.cause.starts_with(HELD)
    }
}

/// What is done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It does not exist yet.
    Create,
    /// A new version of a deployment config.
    Deploy,
    /// Only the number of replicas.
    Scale,
    /// Anything else that differs.
    Update,
    /// Nothing.
    None,
    /// It vanished from the files.
    Delete,
    /// Something must happen first.
    Wait,
    /// The revision is broken or breaks a rule.
    Refuse,
}

impl Decision {
    /// Whether it has an effect.
    pub fn does_something(self) -> bool {
        !matches!(self, Decision::None | Decision::Wait | Decision::Refuse)
    }

    /// The word in tables and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Decision::Create => "create",
            Decision::Deploy => "deploy",
            Decision::Scale => "scale",
            Decision::Update => "update",
            Decision::None => "none",
            Decision::Delete => "delete",
            Decision::Wait => "wait",
            Decision::Refuse => "refuse",
        }
    }
}

/// One value that differs; an absent side is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// JSON pointer into the new content, as in `/spec/template/spec/containers/0/image`; of what is gone, into the old.
    pub pointer: String,
    /// What is applied.
    pub old: Option<Value>,
    /// What is declared.
    pub new: Option<Value>,
}

impl Change {
    /// Whether it declares a template without deploying it: for want of a trigger, a person has to.
    pub fn is_not_deployed(&self) -> bool {
        self.key.kind == Kind::DeploymentConfig
            && !self.is_led()
            && match self.decision {
                Decision::Create => {
                    let spec = self.object.as_ref().and_then(|object| spec_of(object).ok());
                    !spec.is_some_and(|spec| spec.starts_by_itself())
                }
                Decision::Update | Decision::None => {
                    let places = ["/spec/template", CONTROLLERS_POINTER];
                    self.reasons.iter().any(|reason| places.iter().any(|place| reason.pointer.starts_with(place)))
                }
                _ => false,
            }
    }

    /// Whether it is about a replication controller, which the deployment of its deployment config deploys.
    pub fn is_led(&self) -> bool {
        self.kind() == Kind::ReplicationController
    }

    /// Whether a `Service` object is there after it, perhaps as it was.
    pub fn leaves_service(&self) -> bool {
        use Decision::{Create, None, Update};
        self.key.kind == Kind::Service && matches!(self.decision, Create | Update | None)
    }

    /// Whether it gives its deployment config a new version.
    pub fn starts_deployment(&self) -> bool {
        let starts_by_itself = || {
            let spec = self.object.as_ref().and_then(|object| spec_of(object).ok());
            spec.is_some_and(|spec| spec.starts_by_itself() && !spec.paused)
        };
        match self.decision {
            Decision::Deploy => true,
            Decision::Create => self.key.kind == Kind::DeploymentConfig && starts_by_itself(),
            _ => false,
        }
    }

    /// Whether a person asked for a deployment although nothing differs: it is carried out whatever is applied.
    pub fn is_by_hand(&self) -> bool {
        self.decision == Decision::Deploy && self.reasons.is_empty()
    }
}

impl Plan {
    /// Whether there is nothing to do in any stage.
    pub fn is_empty(&self) -> bool {
        self.stages.iter().all(|stage| stage.services.is_empty())
    }

    /// Whether it changes nothing, whatever it says about why.
    pub fn does_nothing(&self) -> bool {
        let mut services = self.stages.iter().flat_map(|stage| &stage.services);
        services.all(|service| {
            service.runs_again.is_none() && service.changes.iter().all(|change| change.decision == Decision::None)
        })
    }

    /// The other revisions whose deliveries bring a part of what this one declares in some of its stages.
    pub fn carriers<'a>(&self, stages: impl IntoIterator<Item = &'a StagePlan>) -> BTreeSet<&'a CommitId> {
        let carriers = stages.into_iter().flat_map(|stage| stage.carried.values());
        carriers.filter(|commit| *commit != &self.commit).collect()
    }

    /// The same plan without what it says of other services.
    pub fn about(&self, service: &ServiceName) -> Self {
        let stages = self.stages.iter().map(|stage| StagePlan {
            services: stage.services.iter().filter(|part| &part.service == service).cloned().collect(),
            ..stage.without_services()
        });
        Self { stages: stages.collect(), ..self.without_stages() }
    }

    /// For each service that it names: what [`about`](Self::about) says.
    pub fn by_service(&self) -> impl Iterator<Item = (&ServiceName, Self)> {
        let mut parts: BTreeMap<&ServiceName, Vec<Option<&ServicePlan>>> = BTreeMap::new();
        for (index, stage) in self.stages.iter().enumerate() {
            for part in &stage.services {
                let in_stages = parts.entry(&part.service).or_insert_with(|| vec![None; self.stages.len()]);
                in_stages[index] = Some(part);
            }
        }
        let outline = self.outline();
        parts.into_iter().map(move |(service, in_stages)| {
            let mut plan = outline.clone();
            for (stage, part) in plan.stages.iter_mut().zip(in_stages) {
                stage.services.extend(part.cloned());
            }
            (service, plan)
        })
    }

    /// The same without what it says of services.
    pub fn outline(&self) -> Self {
        let stages = self.stages.iter().map(StagePlan::without_services).collect();
        Self { stages, ..self.without_stages() }
    }

    fn without_stages(&self) -> Self {
        Self {
            id: self.id.clone(),
            repository: self.repository.clone(),
            project: self.project.clone(),
            commit: self.commit.clone(),
            subject: self.subject.clone(),
            at: self.at,
            stages: Vec::new(),
            statuses: self.statuses,
            procedures: self.procedures.clone(),
        }
    }

    /// The services that it names in any stage.
    pub fn services(&self) -> BTreeSet<&ServiceName> {
        self.stages.iter().flat_map(|stage| &stage.services).map(|part| &part.service).collect()
    }

    /// The part for one stage.
    pub fn stage(&self, name: &StageName) -> Option<&StagePlan> {
        self.stages.iter().find(|stage| &stage.stage == name)
    }
}

impl StagePlan {
    fn without_services(&self) -> Self {
        Self {
            stage: self.stage.clone(),
            destination: self.destination.clone(),
            start: self.start.clone(),
            sequence: self.sequence.clone(),
            services: Vec::new(),
            carried: self.carried.clone(),
        }
    }

    /// The part for one service.
    pub fn service(&self, name: &ServiceName) -> Option<&ServicePlan> {
        self.services.iter().find(|service| &service.service == name)
    }

    /// Whether nothing is left to be done about a service, and nothing under way does it.
    pub fn leaves_alone(&self, service: &ServiceName) -> bool {
        let asks_for_nothing =
            |part: &ServicePlan| !part.goes_on() && part.changes.iter().all(|it| it.cause.is_empty());
        self.service(service).is_none_or(asks_for_nothing) && !self.carried.contains_key(service)
    }
}

impl ServicePlan {
    /// Whether it is going to be delivered, now or once nothing is in its way any more.
    pub fn goes_on(&self) -> bool {
        self.runs_again.is_some() || self.changes.iter().any(|change| change.decision != Decision::None)
    }

    /// The deployment configs among the changes.
    pub fn config_changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.key.kind == Kind::DeploymentConfig)
    }
}
