//! What launchway remembers between runs: per repository, per deployment config, per object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::deployment_config::DeploymentConfigSpec;
use super::ids::{CommitId, ConfigKey, Destination, Digest, RepositoryName, RunId, ServiceKey, ServiceName};
use super::object::{Kind, Object, ObjectKey};
use super::outcome::Outcome;
use super::plan::{Plan, PlanSummary};
use super::run::DeploymentRun;
use super::time::Timestamp;
use super::wanted::{Target, Wanted};

mod object;
mod repository;

pub use object::{Earlier, Handed, Imported, ObjectState, Tagged};
pub use repository::RepositoryState;

/// How many contents of a deployment config are remembered that are not deployed again.
const MOST_QUARANTINED: usize = 5;

/// A value with the version it was read at; 0 is a value that was never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned<T> {
    /// The version.
    pub version: u64,
    /// The value.
    pub value: T,
}

impl<T> Versioned<T> {
    /// The same, for several to have.
    pub fn shared(self) -> Versioned<Arc<T>> {
        Versioned { version: self.version, value: Arc::new(self.value) }
    }
}

/// A deployment config as applied: what serves, what was tried, and what is wanted now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigState {
    /// Its identity.
    pub key: ConfigKey,
    /// The service it is delivered with.
    pub service: ServiceName,
    /// Where its pods live.
    pub destination: Destination,
    /// Which repository declares it.
    pub repository: RepositoryName,
    /// As last declared and accepted.
    pub object: Arc<Object>,
    /// The revision that declared it so: what is deployed of it by hand is that one's.
    pub declared_on: CommitId,
    /// The highest version that was given away; never decremented.
    pub latest_version: u32,
    /// The last complete version: what answers now, or should.
    pub serving: Option<Version>,
    /// What stands beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// The last version that was attempted, if it did not complete.
    pub attempted: Option<Attempt>,
    /// What should run now.
    pub wanted: Wanted,
    /// The replicas that a person asked for, until the files ask for another number of them.
    #[serde(default)]
    pub scaled: Option<Scaled>,
    /// It vanished from the files: forgotten once its pods are gone.
    pub removed: bool,
    /// When the newest revision was planned that has changed it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_at: Option<Timestamp>,
    /// Since when the store lives another life than the one in which this was recorded. What serves may be newer: it serves
    /// on until a deployment of this life takes its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited: Option<Timestamp>,
    /// The newest version of that other life: those after it are of this one, whatever the clock says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited_version: Option<u32>,
    /// What is not deployed again before a person lets it, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<Quarantined>,
    /// The objects that files declare no longer and that what runs of it still needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keeps: Vec<Kept>,
}

/// An object that files declare no longer and that a deployment config keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Which.
    pub key: ObjectKey,
    /// The version that served when it was declared no longer, or the one by which somebody went back since.
    pub since: u32,
}

/// What a deployment config was that Git was rolled back from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    /// What it declared.
    pub content: Digest,
    /// Why, for people.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
}

/// How many replicas a person asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scaled {
    /// So many.
    pub replicas: u32,
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// A version of a deployment config that completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Its number.
    pub number: u32,
    /// The revision it came from.
    pub commit: CommitId,
    /// What was asked.
    pub object: Arc<Object>,
}

impl Version {
    /// The labels of its pods.
    pub fn pod_labels(&self) -> BTreeMap<String, String> {
        let declared = self.object.content.at("/spec/template/metadata/labels");
        let declared = declared.and_then(|labels| serde_json::from_value(labels).ok()).unwrap_or_default();
        self.object.pod_labels(self.number, declared)
    }
}

/// An earlier complete version that stands beside the one that serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// Which.
    pub version: Version,
    /// As what.
    pub standing: Standing,
}

/// What an earlier version has beside the one that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    /// The part of the replicas and of the traffic that A/B leaves it, in percent: until another version comes, or a person
    /// promotes the one that serves.
    Part(u32),
    /// All replicas and none of the traffic, so that going back takes no time: until then.
    Spare(Timestamp),
}

/// A version that is being attempted or did not complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// What was asked.
    pub version: Version,
    /// The sequence run that attempts or attempted it, the last time.
    pub run: RunId,
    /// How it ended; absent while it runs.
    pub outcome: Option<Outcome>,
}

/// A revision that was read and planned, or refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionState {
    /// The repository.
    pub repository: RepositoryName,
    /// The revision.
    pub commit: CommitId,
    /// The first line of its message.
    pub subject: String,
    /// When it was last judged.
    pub at: Timestamp,
    /// What came of it.
    pub result: RevisionResult,
    /// The plan that its commit shows, if that is not the one in `result`: the first that did something.
    pub summary: Option<PlanSummary>,
    /// How often it was read before; each time is a new attempt at it.
    #[serde(default)]
    pub again: u32,
    /// What may not be meant so in its files, each on a line, and no more of it than a person reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl RevisionState {
    /// What it would do, unless it cannot be read or is refused.
    pub fn plan(&self) -> Option<&Plan> {
        match &self.result {
            RevisionResult::Planned(plan) => Some(plan),
            RevisionResult::Broken { .. } | RevisionResult::Refused { .. } => None,
        }
    }
}

/// What came of reading a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RevisionResult {
    /// It has a plan, which may be empty.
    Planned(Box<Plan>),
    /// Its files are broken.
    Broken {
        /// The problems, each on a line.
        problems: Vec<String>,
    },
    /// A rule refuses it: history, prune, signature.
    Refused {
        /// Which and what to do.
        reason: String,
    },
}

/// What planning compares with, for every object of a stage, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedDigest {
    /// The object.
    pub key: ObjectKey,
    /// The digest of what was last declared and accepted.
    pub digest: Digest,
    /// Whether equality with `digest` alone means that there is nothing to say: not if the last attempt did not
    /// complete, nor while the object is being removed.
    pub settled: bool,
}

impl ConfigState {
    /// One that was declared and of which nothing was deployed.
    pub fn new(
        key: ConfigKey,
        destination: Destination,
        repository: RepositoryName,
        object: Arc<Object>,
        declared_on: CommitId,
    ) -> Self {
        Self {
            key,
            service: object.service.clone(),
            destination,
            repository,
            object,
            declared_on,
            latest_version: 0,
            serving: None,
            beside: None,
            attempted: None,
            wanted: Wanted::default(),
            scaled: None,
            removed: false,
            planned_at: None,
            inherited: None,
            inherited_version: None,
            quarantined: Vec::new(),
            keeps: Vec::new(),
        }
    }

    /// Keeps what Git was rolled back from from being deployed again.
    pub fn quarantine(&mut self, bad: Quarantined) {
        self.quarantined.retain(|known| known.content != bad.content);
        self.quarantined.push(bad);
        let many = self.quarantined.len().saturating_sub(MOST_QUARANTINED);
        self.quarantined.drain(..many);
    }

    /// Why what is declared is not deployed again, if so. What serves is there.
    pub fn quarantine_of(&self, declared: &Object) -> Option<&Quarantined> {
        let serves = self.serving.as_ref().is_some_and(|serving| serving.object.digest == declared.digest);
        self.quarantined.iter().find(|known| known.content == declared.digest).filter(|_| !serves)
    }

    /// A version serves from now on. What is kept for one is kept for what goes back to the same.
    pub fn serve(&mut self, version: Version, is_rollback: bool) {
        self.keeps.iter_mut().filter(|_| is_rollback).for_each(|kept| kept.since = version.number);
        self.serving = Some(version);
    }

    /// The service that it is delivered with.
    pub fn service_key(&self) -> ServiceKey {
        let ConfigKey { project, stage, .. } = self.key.clone();
        ServiceKey { project, stage, service: self.service.clone() }
    }

    /// Whether a declaration equal to the last one needs nothing more.
    pub fn is_settled(&self) -> bool {
        !self.removed && self.attempted.is_none() && !self.is_lacking()
    }

    /// Whether a deployment was begun in this life of the store: of a version that another one had not reached, or later.
    pub fn is_of_this_life(&self, run: &DeploymentRun) -> bool {
        let is_newer = self.inherited_version.is_some_and(|version| run.version > version);
        self.inherited.is_none_or(|since| is_newer || run.created_at >= since)
    }

    /// Whether it has pods only while a deployment of it runs.
    pub fn is_test(&self) -> bool {
        self.spec().is_ok_and(|spec| spec.test)
    }

    /// Whether it is a replication controller that does not serve its template: what deploys it has to.
    fn is_lacking(&self) -> bool {
        let serving = self.serving.as_ref().map(|serving| &serving.object);
        serving.is_none_or(|serving| serving.digest != self.object.digest)
            && self.object.is_led()
            && serving.and_then(|serving| serving.template()) != self.object.template()
    }

    /// The labels of the pods that are being brought up or serve.
    pub fn pod_labels(&self) -> BTreeMap<String, String> {
        let attempted = self.attempted.as_ref().map(|attempt| &attempt.version);
        let mut versions = attempted.into_iter().chain(&self.serving);
        let wanted = versions.find(|version| Some(version.number) == self.wanted.version());
        wanted.map(Version::pod_labels).unwrap_or_default()
    }

    /// What each version is to have as long as nothing is exchanged.
    pub fn settled_targets(&self) -> BTreeMap<u32, Target> {
        let Some(serving) = &self.serving else { return BTreeMap::new() };
        let (number, beside) = (serving.number, self.beside.as_ref());
        match beside.map(|beside| (beside.version.number, beside.standing)) {
            None => BTreeMap::from([(number, Target::ALL)]),
            Some((other, Standing::Part(part))) => Target::split((other, part), number),
            Some((other, Standing::Spare(until))) => {
                BTreeMap::from([(other, Target::spare(Some(until))), (number, Target::ALL.with_share(1))])
            }
        }
    }

    /// What a new version takes the place of: what serves, or the version that A/B compares it with.
    pub fn exchanged(&self) -> Option<&Version> {
        let part = self.beside.as_ref().filter(|beside| matches!(beside.standing, Standing::Part(_)));
        part.map(|beside| &beside.version).or(self.serving.as_ref())
    }

    /// The version that was started last, whatever became of it.
    pub fn last_version(&self) -> Option<&Version> {
        self.attempted.as_ref().map(|attempt| &attempt.version).or(self.serving.as_ref())
    }

    /// The attempt that has not ended, if there is one.
    pub fn open_attempt(&self) -> Option<&Attempt> {
        self.attempted.as_ref().filter(|attempt| attempt.outcome.is_none())
    }

    /// The same, to be ended.
    pub fn open_attempt_mut(&mut self) -> Option<&mut Attempt> {
        self.attempted.as_mut().filter(|attempt| attempt.outcome.is_none())
    }

    /// Whether anything is to run of it, or is being attempted.
    pub fn is_at_work(&self) -> bool {
        !self.wanted.targets.is_empty() || self.wanted.owner.is_some() || self.open_attempt().is_some()
    }

    /// The deployments whose records are needed as long as it is so: what serves, is to have pods, or is fallen back to,
    /// and what is attempted.
    pub fn runs_in_use(&self) -> Vec<RunId> {
        let attempted = self.attempted.as_ref().map(|attempt| attempt.version.number);
        let serving = self.serving.as_ref().map(|serving| serving.number);
        let fallback = self.wanted.fallback.map(|fallback| fallback.version);
        let beside = self.beside.as_ref().map(|beside| beside.version.number);
        let named = serving.into_iter().chain(beside).chain(attempted).chain(fallback);
        let versions: BTreeSet<u32> = named.chain(self.wanted.targets.keys().copied()).collect();
        versions.into_iter().map(|version| self.key.deployment(version)).collect()
    }

    /// What it is called in what commands say, as `oc` and `kubectl` do: `deploymentconfig/web` or `deployment.apps/web`.
    pub fn title(&self) -> String {
        let kind = match self.object.declared_kind() {
            Kind::Deployment => "deployment.apps",
            Kind::ReplicationController => "replicationcontroller",
            _ => "deploymentconfig",
        };
        format!("{kind}/{}", self.key.name)
    }

    /// How many old versions its file wants to be kept; nothing, if it does not say.
    pub fn history_limit(&self) -> Option<u32> {
        self.spec().ok().and_then(|spec| spec.revision_history_limit)
    }

    /// The spec as last declared.
    ///
    /// # Errors
    /// If the stored content is not a deployment config's; it was validated before it was stored.
    pub fn spec(&self) -> Result<DeploymentConfigSpec, serde_json::Error> {
        spec_of(&self.object)
    }

    /// How many replicas there should be of what `spec` declares: one, where nobody has ever said.
    pub fn replicas(&self, spec: &DeploymentConfigSpec) -> u32 {
        self.scaled.as_ref().map(|scaled| scaled.replicas).or(spec.replicas).unwrap_or(1)
    }

    /// Takes over what `commit` declares, of which `spec` is the typed view. Where that does not say how many pods there
    /// are to be, or an autoscaler says it, there are as many as before.
    pub fn declare(&mut self, object: &Arc<Object>, spec: &DeploymentConfigSpec, commit: &CommitId, now: Timestamp) {
        let before = self.spec().unwrap_or_default();
        let there_are = self.replicas(&before);
        match (before.asked_replicas(), spec.asked_replicas()) {
            (Some(before), Some(after)) if before == after => {}
            (_, Some(_)) => self.scaled = None,
            (_, None) if before.replicas == spec.replicas => {}
            (_, None) => {
                let by = || format!("revision {}", self.declared_on.short());
                self.scaled.get_or_insert_with(|| Scaled { replicas: there_are, by: by(), at: now });
            }
        }
        self.service = object.service.clone();
        self.object = Arc::clone(object);
        self.declared_on = commit.clone();
        self.removed = false;
    }
}

/// The typed view of a deployment config's content.
///
/// # Errors
/// If the content is not a deployment config's.
pub fn spec_of(object: &Object) -> Result<DeploymentConfigSpec, serde_json::Error> {
    object.spec()
}
