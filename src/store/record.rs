//! The shape of records on disk, the same in every database: JSON in an envelope with a version.
//!
//! The version is the record's own and grows when its meaning changes; the schema's version is about tables.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Context, Failure, Result};
use crate::model::action::Action;
use crate::model::commit_status::CommitStatus;
use crate::model::event::Event;
use crate::model::hold::ProjectHolds;
use crate::model::ids::{CommitId, PlanId, RepositoryName, ServiceName, StageName};
use crate::model::object::Kind;
use crate::model::plan::{Plan, PlanSummary, ServicePlan};
use crate::model::run::Run;
use crate::model::slot::{PassedState, SlotState};
use crate::model::state::{ConfigState, ObjectState, RepositoryState, RevisionResult, RevisionState};
use crate::model::tag::SeenTags;
use crate::model::time::Timestamp;
use crate::model::unique_name::NameOwner;
use crate::model::webhook_call::WebhookCalls;

/// A value that is stored whole.
pub(super) trait Record: Serialize + DeserializeOwned {
    /// What it is called in messages.
    const NAME: &'static str;
    /// The version of its shape that this program writes.
    const VERSION: u32 = 1;
}

impl Record for Run {
    const NAME: &'static str = "run";
}
impl Record for Event {
    const NAME: &'static str = "event";
}
impl Record for Action {
    const NAME: &'static str = "action";
}
impl Record for ConfigState {
    const NAME: &'static str = "deployment config";
}
impl Record for ObjectState {
    const NAME: &'static str = "object";
}
impl Record for RepositoryState {
    const NAME: &'static str = "repository";
}
impl Record for Plan {
    const NAME: &'static str = "plan";
}
impl Record for SlotState {
    const NAME: &'static str = "slot";
}
impl Record for PassedState {
    const NAME: &'static str = "passed content";
}
impl Record for ProjectHolds {
    const NAME: &'static str = "holds";
}
impl Record for WebhookCalls {
    const NAME: &'static str = "webhooks";
}
impl Record for SeenTags {
    const NAME: &'static str = "tags";
}
impl Record for NameOwner {
    const NAME: &'static str = "claim";
}
impl Record for PlanPart {
    const NAME: &'static str = "part of a plan";
}
impl Record for CommitStatus {
    const NAME: &'static str = "commit status";
}
impl Record for RevisionRecord {
    const NAME: &'static str = "revision";
}

/// What stands in a column.
#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    #[serde(rename = "v")]
    version: u32,
    record: T,
}

/// The part of an envelope that every version has.
#[derive(Deserialize)]
struct Header {
    #[serde(rename = "v")]
    version: u32,
}

/// A record's text.
///
/// # Errors
/// If the value has no JSON form, which is a mistake in the program.
pub(super) fn encode<T: Record>(record: &T) -> Result<String> {
    serde_json::to_string(&Envelope { version: T::VERSION, record })
        .or_stalled(|| format!("cannot write a {} record", T::NAME))
}

/// Reads a record's text.
///
/// # Errors
/// If another version of launchway wrote it in a shape that this one does not know, or if it is damaged.
pub(super) fn decode<T: Record>(text: &[u8]) -> Result<T> {
    match serde_json::from_slice::<Envelope<T>>(text) {
        Ok(envelope) if envelope.version == T::VERSION => Ok(envelope.record),
        Ok(envelope) => Err(unknown_version::<T>(envelope.version)),
        Err(error) => Err(match serde_json::from_slice::<Header>(text) {
            Ok(header) if header.version != T::VERSION => unknown_version::<T>(header.version),
            _ => Failure::stalled(format!("a stored {} record is damaged", T::NAME))
                .because(error)
                .hint("restore a backup with `launchway store restore FILE`"),
        }),
    }
}

fn unknown_version<T: Record>(version: u32) -> Failure {
    let name = T::NAME;
    let known = T::VERSION;
    Failure::stalled(format!("a stored {name} record has version {version}, this launchway reads version {known}"))
        .hint("run the launchway that wrote it, or a newer one")
}

/// What a plan says about one service, by stage. It is stored beside the rest of the plan, so that what follows for a
/// service costs what is about it and not what a push changed in all.
#[derive(Serialize, Deserialize)]
pub(super) struct PlanPart {
    service: ServiceName,
    /// In the order of the stages.
    pub(super) stages: Vec<(StageName, ServicePlan)>,
}

/// Takes a plan apart into what it says of no service, and its parts in the order of the services.
pub(super) fn split_plan(plan: &Plan) -> (Plan, Vec<(ServiceName, PlanPart)>) {
    let mut parts: BTreeMap<ServiceName, Vec<(StageName, ServicePlan)>> = BTreeMap::new();
    let mut rest = plan.clone();
    for stage in &mut rest.stages {
        for part in stage.services.drain(..) {
            parts.entry(part.service.clone()).or_default().push((stage.stage.clone(), part));
        }
    }
    let parts = parts.into_iter().map(|(service, stages)| (service.clone(), PlanPart { service, stages }));
    (rest, parts.collect())
}

/// Puts a plan together again, or what it says of some services. The parts come in the order of the services.
pub(super) fn join_plan(mut rest: Plan, parts: Vec<PlanPart>) -> Plan {
    for part in parts {
        for (name, planned) in part.stages {
            if let Some(stage) = rest.stages.iter_mut().find(|stage| stage.stage == name) {
                stage.services.push(planned);
            }
        }
    }
    rest
}

/// A [`RevisionState`] whose plan is stored beside it, because plans are also found by their id.
#[derive(Serialize, Deserialize)]
pub(super) struct RevisionRecord {
    repository: RepositoryName,
    commit: CommitId,
    subject: String,
    at: Timestamp,
    result: ResultRecord,
    summary: Option<PlanSummary>,
    again: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ResultRecord {
    Planned { plan: PlanId },
    Broken { problems: Vec<String> },
    Refused { reason: String },
}

impl RevisionRecord {
    /// Takes a revision apart into what is stored for it and its plan.
    pub(super) fn split(state: &RevisionState) -> (Self, Option<&Plan>) {
        let (result, plan) = match &state.result {
            RevisionResult::Planned(plan) => (ResultRecord::Planned { plan: plan.id.clone() }, Some(&**plan)),
            RevisionResult::Broken { problems } => (ResultRecord::Broken { problems: problems.clone() }, None),
            RevisionResult::Refused { reason } => (ResultRecord::Refused { reason: reason.clone() }, None),
        };
        let record = Self {
            repository: state.repository.clone(),
            commit: state.commit.clone(),
            subject: state.subject.clone(),
            at: state.at,
            result,
            summary: state.summary.clone(),
            again: state.again,
            warnings: state.warnings.clone(),
        };
        (record, plan)
    }

    /// Puts a revision and its plan together again.
    ///
    /// # Errors
    /// If the revision has a plan that is not there.
    pub(super) fn join(self, plan: Option<Plan>) -> Result<RevisionState> {
        let result = match (self.result, plan) {
            (ResultRecord::Planned { .. }, Some(plan)) => RevisionResult::Planned(Box::new(plan)),
            (ResultRecord::Planned { plan }, None) => {
                return Err(Failure::stalled(format!("the plan `{plan}` of `{}` is missing", self.commit)));
            }
            (ResultRecord::Broken { problems }, _) => RevisionResult::Broken { problems },
            (ResultRecord::Refused { reason }, _) => RevisionResult::Refused { reason },
        };
        Ok(RevisionState {
            repository: self.repository,
            commit: self.commit,
            subject: self.subject,
            at: self.at,
            result,
            summary: self.summary,
            again: self.again,
            warnings: self.warnings,
        })
    }
}

/// The kinds that have a name of their own; any other is stored as `<apiVersion>/<kind>`, which holds a slash.
const KINDS: [Kind; 8] = [
    Kind::DeploymentConfig,
    Kind::Service,
    Kind::ConfigMap,
    Kind::Secret,
    Kind::Endpoints,
    Kind::PersistentVolumeClaim,
    Kind::Task,
    Kind::ImageStream,
];

/// A kind as a column's value.
pub(super) fn kind_text(kind: &Kind) -> String {
    match kind {
        Kind::Other(name) => name.clone(),
        known => known.name().to_owned(),
    }
}

/// A kind from a column's value.
pub(super) fn kind_from(text: String) -> Kind {
    KINDS.into_iter().find(|kind| kind.name() == text).unwrap_or(Kind::Other(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::Timer;

    #[test]
    fn a_record_is_written_in_an_envelope_with_its_version() {
        let text = encode(&Event::Timer { timer: Timer::Retry }).unwrap();
        assert_eq!(text, r#"{"v":1,"record":{"event":"timer","timer":"retry"}}"#);
        assert_eq!(decode::<Event>(text.as_bytes()).unwrap(), Event::Timer { timer: Timer::Retry });
    }

    #[test]
    fn a_newer_record_is_refused_whether_its_shape_is_known_or_not() {
        for text in [r#"{"v":2,"record":{"event":"admitted"}}"#, r#"{"v":2,"record":{"event":"unheard"},"x":1}"#] {
            let problem = decode::<Event>(text.as_bytes()).unwrap_err().one_line();
            assert!(problem.contains("has version 2") && problem.contains("newer one"), "{problem}");
        }
    }

    #[test]
    fn a_damaged_record_says_what_to_do() {
        let texts: [&[u8]; 5] =
            [b"", b"{}", br#"{"v":1}"#, br#"{"v":1,"record":{"event":"unheard"}}"#, b"{\"v\":1,\"record\":\"\xff\"}"];
        for text in texts {
            let problem = decode::<Event>(text).unwrap_err().one_line();
            assert!(problem.contains("damaged") && problem.contains("store restore"), "{problem}");
        }
    }

    #[test]
    fn every_kind_survives_its_column() {
        for kind in KINDS.into_iter().chain([Kind::Other("batch/v1/Job".into())]) {
            assert_eq!(kind_from(kind_text(&kind)), kind);
        }
    }
}
