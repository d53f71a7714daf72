//! Why a service is not what was pushed, or that it is.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::drift::{attempted, ended_badly};
use super::run::awaits;
use super::time;
use crate::engine::by_hand::ends_it;
use crate::model::hold::Hold;
use crate::model::ids::{Digest, ServiceKey, StageName};
use crate::model::object::{Kind, ObjectKey};
use crate::model::outcome::Outcome;
use crate::model::plan::{Change, Decision, ServicePlan, StageStart};
use crate::model::pod::{ObservedPod, PodPhase};
use crate::model::proposal::{Proposal, ProposalState};
use crate::model::run::{Run, SequenceRun, SequenceState};
use crate::model::slot::Refused;
use crate::model::state::{ConfigState, RepositoryState, RevisionResult, RevisionState};
use crate::store::OutboxRow;

/// What is known about a service, read at one time.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The repository that declares it.
    pub repository: Option<RepositoryState>,
    /// The last revision that was read.
    pub head: Option<RevisionState>,
    /// All holds.
    pub holds: Vec<Hold>,
    /// The open sequence runs of its slot, oldest first.
    pub slot: Vec<Run>,
    /// The deployments that these wait for.
    pub deployments: Vec<Run>,
    /// The delivery that ended last.
    pub last_delivery: Option<Run>,
    /// The delivery that an event has asked for since and nobody started.
    pub refused: Option<Refused>,
    /// What these and their deployments still ask for.
    pub outbox: Vec<OutboxRow>,
    /// Its deployment configs.
    pub configs: Vec<ConfigState>,
    /// What the last revision wants to change in it, and what starts its stage.
    pub planned: Option<(ServicePlan, StageStart)>,
    /// The digests of the objects that this names beside deployment configs, of those that are applied.
    pub applied: BTreeMap<ObjectKey, Digest>,
    /// Whether the stage before has passed what it must.
    pub passed: bool,
    /// Its pods, if a runtime was asked.
    pub pods: Vec<ObservedPod>,
    /// What keeps deployment configs of it from what is wanted of them, with their names.
    pub hindrances: Vec<(String, String)>,
    /// What keeps `Service` objects from listening that lead to its pods or are delivered with it, with their names.
    pub not_listening: Vec<(String, String)>,
}

/// Why a service is not what was pushed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// `<project>/<stage>/<service>`.
    pub service: String,
    /// Whether it waits for anything.
    pub waiting: bool,
    /// For what, and what else stands out; most important first.
    pub reasons: Vec<Reason>,
}

/// One thing that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// `repository`, `revision`, `hold`, `run`, `retry`, `event`, `stage`, `plan`, `drift`, `proposal`, `pod` or `service`.
    pub kind: String,
    /// What it is.
    pub message: String,
    /// What a person can do, if anything.
    pub hint: Option<String>,
}

impl Reason {
    fn new(kind: &str, message: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Says how what executors did for a service has ended: nothing is declared of it, so that there is nothing to compare.
pub fn at_rest(service: &ServiceKey, last: &SequenceRun) -> Explanation {
    let how = last.outcome.map_or_else(String::new, |outcome| format!(" ended: {}", outcome.word()));
    let why = if last.message.is_empty() { String::new() } else { format!(", {}", last.message) };
    let ended =
        Reason::new("run", format!("nothing is under way; {} of {}{how}{why}", last.sequence(), last.commit.short()));
    let ServiceKey { stage, service: name, .. } = service;
    let has_passed = last.outcome.is_some_and(Outcome::passes);
    let ended =
        if has_passed { ended } else { ended.hint(format!("`launchway rerun {name} -s {stage}` runs it again")) };
    Explanation { service: service.to_string(), waiting: false, reasons: vec![ended] }
}

/// Says what a service waits for.
pub fn explain(service: &ServiceKey, facts: &Facts) -> Explanation {
    let mut reasons = Vec::new();
    reasons.extend(facts.repository.iter().filter_map(repository_reason));
    reasons.extend(facts.head.iter().filter_map(revision_reason));
    reasons.extend(hold_reasons(service, &facts.holds));
    reasons.extend(facts.slot.iter().filter_map(|run| run_reason(run, facts)));
    reasons.extend(facts.deployments.iter().filter_map(deployment_reason));
    reasons.extend(facts.outbox.iter().filter_map(outbox_reason));
    reasons.extend(facts.refused.iter().map(|refused| refused_reason(service, refused)));
    if facts.slot.is_empty() {
        reasons.extend(plan_reasons(service, facts));
        reasons.extend(bad_ends(facts));
    }
    reasons.extend(proposal_reasons(facts));
    reasons.extend(facts.pods.iter().filter_map(pod_reason));
    if facts.deployments.is_empty() {
        let hindrances = facts.hindrances.iter();
        reasons.extend(hindrances.map(|(config, problem)| Reason::new("pod", format!("{config}: {problem}"))));
    }
    let not_listening =
        facts.not_listening.iter().filter_map(|(name, problem)| service_reason(name, problem, &reasons));
    reasons.extend(not_listening.collect::<Vec<_>>());
    if reasons.is_empty() {
        reasons.extend(undelivered_reason(service, facts));
    }
    Explanation { service: service.to_string(), waiting: !reasons.is_empty(), reasons }
}

fn repository_reason(state: &RepositoryState) -> Option<Reason> {
    if state.down {
        let reason = Reason::new("repository", format!("repository `{}` was taken down", state.name));
        let hint = format!("`launchway sync {} --up` brings it back; without a daemon, `launchway up`", state.name);
        return Some(reason.hint(hint));
    }
    let problem = state.problem.as_ref()?;
    Some(Reason::new("repository", format!("repository `{}`: {problem}", state.name)))
}

/// A revision that is not deployed: what runs is what was pushed before it.
fn revision_reason(head: &RevisionState) -> Option<Reason> {
    let commit = head.commit.short();
    match &head.result {
        RevisionResult::Planned(_) => None,
        RevisionResult::Broken { problems } => {
            let first = problems.first().map(String::as_str).unwrap_or_default();
            let more = match problems.len() {
                0 | 1 => String::new(),
                several => format!(" (and {} more)", several - 1),
            };
            let reason = Reason::new("revision", format!("{commit} cannot be read: {first}{more}"));
            Some(reason.hint("push a fix; `launchway validate` checks files before a push"))
        }
        RevisionResult::Refused { reason } => {
            let reason = Reason::new("revision", format!("{commit} is refused: {reason}"));
            Some(reason.hint(format!("`launchway status {commit}` shows what is written on it")))
        }
    }
}

fn hold_reasons<'a>(service: &'a ServiceKey, holds: &'a [Hold]) -> impl Iterator<Item = Reason> + 'a {
    let covering = holds.iter().filter(|hold| hold.scope.covers(&service.project, &service.stage, &service.service));
    covering.map(|hold| {
        let message = format!("held by {} since {}: {}", hold.by, time(hold.since), hold.reason);
        Reason::new("hold", message).hint(format!("`launchway release {}` lifts it", hold.id))
    })
}

fn run_reason(run: &Run, facts: &Facts) -> Option<Reason> {
    let run = run.sequence()?;
    let what = format!("{} of {}", run.sequence(), run.commit.short());
    let step = run.task().map_or("its end", |task| task.step.as_str());
    let message = match run.state {
        SequenceState::Queued if run.message.is_empty() => format!("{what} is queued"),
        SequenceState::Queued => format!("{what} is queued: {}", run.message),
        SequenceState::Returning { .. } => format!("{what} waits to go on with `{step}`: {}", run.message),
        SequenceState::Running { .. } => match run.pauses_until() {
            Some(at) => format!("{what} starts `{step}` at {}", time(at)),
            None => match awaits(run) {
                Some(awaited) => format!("{what} is at `{step}`: {awaited}"),
                None => format!("{what} is at `{step}`"),
            },
        },
        SequenceState::Ending { .. } => format!("{what} is ending at `{step}`: {}", run.message),
        SequenceState::Ended => return None,
    };
    let message = match (&run.paused, run.state) {
        (Some(by), SequenceState::Running { .. }) => format!("{message}; paused by {by}, so that no task follows"),
        _ => message,
    };
    let steps = format!("`launchway describe run/{}` tells its steps", run.id);
    let of_run = run.changes().iter().filter(|change| change.key.kind == Kind::DeploymentConfig && !change.is_led());
    let configs = facts.configs.iter();
    let mut targets = configs
        .filter(|config| !config.object.is_led())
        .map(|config| config.object.target())
        .chain(of_run.map(Change::target));
    let ServiceKey { stage, service, .. } = &run.service;
    let hint = match (run.state, targets.next()) {
        _ if run.paused.is_some() && is_stage_paused(run, facts) => {
            format!("`launchway resume -s {stage}` lets all of the stage go on")
        }
        _ if run.paused.is_some() => format!("`launchway resume {service} -s {stage}` lets it go on"),
        _ if run.awaits_approval().is_some() => {
            let meant = meant(run, &facts.slot);
            format!("`launchway approve {service} -s {stage} {meant}` lets it go on, `reject` ends it")
        }
        (SequenceState::Running { .. }, Some(target)) => format!("{steps}, {}", ends_it(&target, &run.service.stage)),
        _ => steps,
    };
    Some(Reason::new("run", message).hint(hint))
}

/// Whether a run is paused with all of its stage.
fn is_stage_paused(run: &SequenceRun, facts: &Facts) -> bool {
    facts.holds.iter().any(|hold| hold.scope.context.is_none() && run.is_paused_by(hold))
}

/// How a person names a run that waits for approval: by its revision, unless another one of that waits too.
fn meant(run: &SequenceRun, slot: &[Run]) -> String {
    let waiting = slot.iter().filter_map(Run::sequence).filter(|other| other.awaits_approval().is_some());
    match waiting.filter(|other| other.commit == run.commit).count() {
        0 | 1 => format!("--revision {}", run.commit.short()),
        _ => format!("--run {}", run.id),
    }
}

/// What holds a deployment back.
fn deployment_reason(run: &Run) -> Option<Reason> {
    let Run::Deployment(run) = run else { return None };
    let held = !run.remark().is_empty();
    held.then(|| Reason::new("run", format!("{} version {}: {}", run.config.name, run.version, run.remark())))
}

/// What does not get on: it failed, waits for something, or was given up.
fn outbox_reason(row: &OutboxRow) -> Option<Reason> {
    let OutboxRow { key, attempts, problem, .. } = row;
    let message = match row.due {
        _ if problem.is_empty() => return None,
        None => format!("`{key}` was given up: {problem}"),
        Some(_) if *attempts == 0 => format!("`{key}` waits: {problem}"),
        Some(due) => format!("`{key}` failed {attempts} times, again at {}: {problem}", time(due)),
    };
    Some(Reason::new("retry", message))
}

/// A delivery that an event asked for: nobody starts it by itself once what was in the way is gone.
fn refused_reason(ServiceKey { stage, service, .. }: &ServiceKey, refused: &Refused) -> Reason {
    let Refused { by, reason, at } = refused;
    let message = format!("{by} asked for a delivery at {}, which was not started: {reason}", time(*at));
    let hint = format!("tell it again once that is over, or `launchway trigger delivery {service} -s {stage}`");
    Reason::new("event", message).hint(hint)
}

fn plan_reasons(service: &ServiceKey, facts: &Facts) -> Vec<Reason> {
    let Some((plan, start)) = &facts.planned else { return Vec::new() };
    let waiting = plan.changes.iter().filter(|change| change.decision == Decision::Wait && !change.is_held());
    let mut reasons: Vec<_> = waiting.map(|change| waiting_reason(change, &service.stage)).collect();
    let stage = &service.stage;
    let any_is_to_come = plan.changes.iter().any(|change| is_to_come(change, facts));
    if let Some(previous) = &plan.previous_stage
        && !facts.passed
        && (any_is_to_come || plan.runs_again.is_some())
    {
        let message = format!("{} has not passed what is to come here", previous.by_what());
        let hint = match &previous.sequence {
            Some(_) => format!(
                "`launchway status` says what stopped it, `launchway trigger delivery {} -s {}` runs it again",
                plan.service, previous.stage
            ),
            None => format!("`launchway why {} -s {}` says what stopped it", asked_by(plan), previous.stage),
        };
        reasons.push(Reason::new("stage", message).hint(hint));
    }
    if start.is_from_outside() && any_is_to_come {
        let hint = format!("`launchway trigger delivery -s {stage}` starts it");
        let by = match start {
            StageStart::Event(triggers) => triggers.iter().map(|it| it.event.as_str()).collect::<Vec<_>>().join(", "),
            _ => "hand".to_owned(),
        };
        reasons.push(Reason::new("stage", format!("this stage is started by {by}")).hint(hint));
    }
    reasons
}

fn waiting_reason(change: &Change, stage: &StageName) -> Reason {
    let reason = Reason::new("plan", format!("{} waits: {}", change.title(), change.cause));
    match change.is_paused() {
        true => reason.hint(format!(
            "`launchway release {} -s {stage}` lets it go on, or set `paused: false` and push",
            change.target()
        )),
        false => reason,
    }
}

/// What `why` is asked about to hear of the service.
fn asked_by(plan: &ServicePlan) -> String {
    let config = plan.changes.iter().find(|change| change.key.kind == Kind::DeploymentConfig && !change.is_led());
    config.map_or_else(|| plan.service.to_string(), Change::target)
}

/// Whether a change that was planned has not been made since.
fn is_to_come(change: &Change, facts: &Facts) -> bool {
    (change.is_held() || change.decision.does_something()) && !is_made(change, facts)
}

/// Whether an object is as a change leaves it.
fn is_made(change: &Change, facts: &Facts) -> bool {
    if change.key.kind != Kind::DeploymentConfig {
        return facts.applied.get(&change.key) == change.digest();
    }
    let mut applied = facts.configs.iter().filter(|config| !config.removed);
    let config = applied.find(|config| config.object.key == change.key);
    let (Some(digest), Some(config)) = (change.digest(), config) else {
        return change.digest().is_none() && config.is_none();
    };
    let serves = || config.serving.as_ref().is_some_and(|version| &version.object.digest == digest);
    match change.is_held() || change.starts_deployment() {
        true => serves(),
        false => &config.object.digest == digest,
    }
}

/// What ended badly and nobody puts right yet. What a delivery has deployed says more than its end; one that was stopped before
/// says why what was pushed last is not there, whatever was attempted before it.
fn bad_ends(facts: &Facts) -> Vec<Reason> {
    let drift: Vec<Reason> = facts.configs.iter().filter_map(|config| drift_reason(config, &facts.pods)).collect();
    let has_deployed = |run: &Run| run.sequence().is_some_and(SequenceRun::deployed);
    let last = facts.last_delivery.iter().filter(|run| drift.is_empty() || !has_deployed(run));
    let last: Vec<Reason> = last.filter_map(|run| delivery_reason(run, facts)).collect();
    last.into_iter().chain(drift).collect()
}

/// Rollbacks that are proposed of its deployment configs, and wait for a person.
fn proposal_reasons(facts: &Facts) -> impl Iterator<Item = Reason> + '_ {
    let proposals = facts.repository.iter().flat_map(|state| &state.proposals);
    let concerns = |proposal: &&Proposal| facts.configs.iter().any(|config| proposal.concerns(&config.key));
    let open = proposals.filter(|proposal| !proposal.is_over()).filter(concerns);
    open.map(|proposal| {
        let hint = match proposal.state {
            ProposalState::Open => "merge it to deploy what ran before, or push a fix",
            ProposalState::Closed => "push a fix, or propose it again: `launchway rollback … --pull-request`",
            _ => return Reason::new("proposal", proposal.remark()),
        };
        Reason::new("proposal", proposal.remark()).hint(hint)
    })
}

/// A delivery that failed although every deployment of it went well, as by a test, or that ended before any began.
fn delivery_reason(run: &Run, facts: &Facts) -> Option<Reason> {
    let Run::Sequence(run) = run else { return None };
    let word = ended_badly(run.outcome?, facts.head.as_ref().is_some_and(|head| head.commit == run.commit))?;
    let message = format!("{} of {} {word}: {}", run.sequence(), run.commit.short(), run.message);
    let ServiceKey { stage, service, .. } = &run.service;
    let rerun = format!("`launchway rerun {service} -s {stage} --sequence {}`", run.sequence());
    Some(Reason::new("drift", message).hint(match may_run_again(run, facts) {
        true => format!("push a fix, or {rerun} goes on from the task that failed"),
        false => "push a fix".to_owned(),
    }))
}

/// Whether nothing else was declared since of what a delivery brings, and nothing of it waits for a person.
fn may_run_again(run: &SequenceRun, facts: &Facts) -> bool {
    let waits = |change: &Change| change.decision == Decision::Wait && !change.is_held();
    let is_declared = |part: &ServicePlan| Some(&part.content) == run.planned_content();
    facts.planned.as_ref().is_none_or(|(part, _)| is_declared(part) && !part.changes.iter().any(waits))
}

/// What the last revision declares and nobody brings, as where its delivery was ended before it began.
fn undelivered_reason(service: &ServiceKey, facts: &Facts) -> Option<Reason> {
    let (plan, _) = facts.planned.as_ref()?;
    let change = plan.changes.iter().find(|change| !change.is_led() && is_to_come(change, facts))?;
    let lacks = match change.key.kind {
        Kind::DeploymentConfig => "does not serve",
        _ => "is not applied",
    };
    let message = format!("what was pushed of {} {lacks}, and nothing brings it", change.title());
    let ServiceKey { stage, service, .. } = service;
    let hint = format!("`launchway trigger delivery {service} -s {stage}` brings it");
    Some(Reason::new("drift", message).hint(hint))
}

fn drift_reason(config: &ConfigState, pods: &[ObservedPod]) -> Option<Reason> {
    let message = attempted(config, pods)?;
    let target = config.object.target();
    let hint =
        format!("push a fix, or try the same again with `launchway rollout retry {target} -s {}`", config.key.stage);
    Some(Reason::new("drift", message).hint(hint))
}

/// A service that does not listen, unless that is what something waits for and was told already.
fn service_reason(name: &str, problem: &str, told: &[Reason]) -> Option<Reason> {
    let message = format!("service `{name}`: {problem}");
    let is_told = told.iter().any(|reason| reason.message.contains(&message));
    (!is_told).then(|| Reason::new("service", message))
}

fn pod_reason(pod: &ObservedPod) -> Option<Reason> {
    // A ready one that says something has ended just before, and may do so again.
    let troubled = !matches!(pod.phase, PodPhase::Ended { .. }) && !pod.message.is_empty();
    troubled.then(|| Reason::new("pod", format!("pod {}: {}", pod.id.name, pod.message)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::engine::fixtures::{NOW, delivery};
    use crate::engine::sequence::machine::{step, task_records};
    use crate::manifest::digest;
    use crate::model::event::Event;
    use crate::model::hold::{HoldKind, HoldScope};
    use crate::model::ids::{CommitId, ConfigKey, Destination, HoldId};
    use crate::model::object::{Location, Object};
    use crate::model::outcome::Outcome;
    use crate::model::plan::{PAUSED, PassedContent};
    use crate::model::project::Procedure;
    use crate::model::shipyard::{Sequence, Shipyard, Task};
    use crate::model::state::{Attempt, Version};
    use crate::model::time::Timestamp;

    fn web() -> ServiceKey {
        ServiceKey { project: "shop".into(), stage: "dev".into(), service: "web".into() }
    }

    fn hold(service: &str) -> Hold {
        let scope = HoldScope { project: "shop".into(), stage: None, service: Some(service.into()), context: None };
        let since = Timestamp(0);
        Hold { id: HoldId::new("h1"), kind: HoldKind::Person, scope, reason: "sale".into(), by: "ann".into(), since }
    }

    #[test]
    fn nothing_in_the_way_is_said_so() {
        let explanation = explain(&web(), &Facts::default());
        assert!(!explanation.waiting && explanation.reasons.is_empty());
    }

    #[test]
    fn a_service_that_does_not_listen_is_told_once() {
        let not_listening = ("web".to_owned(), "port 80 is in use".to_owned());
        let mut facts = Facts { not_listening: vec![not_listening], ..Facts::default() };
        let told = |facts: &Facts| {
            explain(&web(), facts).reasons.into_iter().map(|it| (it.kind, it.message)).collect::<Vec<_>>()
        };
        assert_eq!(told(&facts), [("service".to_owned(), "service `web`: port 80 is in use".to_owned())]);
        facts.hindrances = vec![("web".to_owned(), "service `web`: port 80 is in use".to_owned())];
        assert_eq!(told(&facts).len(), 1);
    }

    #[test]
    fn only_holds_that_cover_the_service_count() {
        let facts = Facts { holds: vec![hold("web"), hold("cart")], ..Facts::default() };
        let reasons = explain(&web(), &facts).reasons;
        assert_eq!(reasons.len(), 1);
        assert!(reasons[0].message.contains("ann") && reasons[0].message.contains("sale"), "{reasons:?}");
        assert!(reasons[0].hint.as_ref().is_some_and(|hint| hint.contains("release h1")));
    }

    /// A sequence of revision `a` that asks for approval.
    fn asking(id: &str) -> Run {
        let sequence = Sequence { name: "check".into(), tasks: vec![Task::named("approval")], ..Sequence::default() };
        let tasks = task_records(&sequence);
        let procedure = digest::stored(Procedure { sequence, ..Procedure::default() });
        let run = SequenceRun { delivery: None, procedure, tasks, ..delivery(id, "a") };
        Run::Sequence(Box::new(step(&run, &Event::Admitted, NOW).0))
    }

    #[test]
    fn how_to_approve_names_one_of_those_that_wait() {
        let hints = |slot: &[Run]| -> Vec<String> {
            let facts = Facts { slot: slot.to_vec(), ..Facts::default() };
            explain(&web(), &facts).reasons.into_iter().filter_map(|reason| reason.hint).collect()
        };
        let alone = hints(&[asking("r1")]);
        assert!(alone.len() == 1 && alone[0].contains("approve web -s dev --revision "), "{alone:?}");
        let both = hints(&[asking("r1"), asking("r2")]);
        assert!(both[0].contains("approve web -s dev --run r1`") && both[1].contains("--run r2`"), "{both:?}");
    }

    fn revision(result: RevisionResult) -> RevisionState {
        let (commit, at) = (CommitId::new("1a2b3c4d5e6f"), Timestamp(0));
        RevisionState {
            repository: "shop".into(),
            commit,
            subject: "Change".into(),
            at,
            result,
            summary: None,
            again: 0,
            warnings: Vec::new(),
        }
    }

    fn planned(change: Change, start: StageStart) -> (ServicePlan, StageStart) {
        let previous = PassedContent { stage: "dev".into(), content: Digest::new("d1"), sequence: None, alone: false };
        let previous_stage = matches!(start, StageStart::After(_)).then_some(previous);
        let content = Digest::new("d2");
        let (changes, runs_again) = (vec![change], None);
        (ServicePlan { service: "web".into(), content, previous_stage, configs: 1, changes, runs_again }, start)
    }

    fn change(decision: Decision, cause: &str) -> Change {
        let object = config(json!({"replicas": 1}));
        let key = object.key.clone();
        Change { cause: cause.into(), object: Some(object), ..Change::of(key, decision) }
    }

    fn config(spec: Value) -> Arc<Object> {
        let content = json!({"kind": "DeploymentConfig", "spec": spec});
        object(Kind::DeploymentConfig, content)
    }

    fn object(kind: Kind, content: Value) -> Arc<Object> {
        let key = ObjectKey { kind, name: "web".into() };
        let digest = digest::of(&content);
        Arc::new(Object {
            key,
            service: "web".into(),
            location: Location::default(),
            content: content.into(),
            digest,
            autoscaled_at: None,
        })
    }

    /// Every way in which a service is not what was pushed is named, with what to do.
    #[test]
    fn each_obstacle_is_named_with_what_to_do() {
        let down = RepositoryState { down: true, ..RepositoryState::new("shop".into(), "/srv/shop.git", "main") };
        let broken = RevisionResult::Broken { problems: vec!["web.yaml:3: no name".into(), "web.yaml:9: no".into()] };
        let refused = RevisionResult::Refused { reason: "history was rewritten".into() };
        let after = || StageStart::After(vec![]);
        let table: [(&str, Facts, &str, &str); 8] = [
            ("down", Facts { repository: Some(down), ..Facts::default() }, "was taken down", "sync shop --up"),
            (
                "broken",
                Facts { head: Some(revision(broken)), ..Facts::default() },
                "1a2b3c4 cannot be read: web.yaml:3: no name (and 1 more)",
                "launchway validate",
            ),
            (
                "refused",
                Facts { head: Some(revision(refused)), ..Facts::default() },
                "1a2b3c4 is refused: history was rewritten",
                "launchway status 1a2b3c4",
            ),
            ("held", Facts { holds: vec![hold("web")], ..Facts::default() }, "held by ann", "launchway release h1"),
            (
                "paused",
                Facts { planned: Some(planned(change(Decision::Wait, PAUSED), StageStart::Push)), ..Facts::default() },
                "waits: paused",
                "paused: false",
            ),
            (
                "stopped by dev",
                Facts {
                    planned: Some(planned(change(Decision::Create, "first deployment"), after())),
                    ..Facts::default()
                },
                "stage `dev` has not passed",
                "launchway why dc/web -s dev",
            ),
            (
                "never deployed, by hand",
                Facts {
                    planned: Some(planned(change(Decision::Create, "first deployment"), StageStart::ByHand)),
                    passed: true,
                    ..Facts::default()
                },
                "started by hand",
                "launchway trigger delivery -s dev",
            ),
            (
                "ended before it began",
                Facts {
                    planned: Some(planned(change(Decision::Create, "first deployment"), StageStart::Push)),
                    passed: true,
                    ..Facts::default()
                },
                "what was pushed of DeploymentConfig/web does not serve",
                "launchway trigger delivery web -s dev",
            ),
        ];
        for (case, facts, message, hint) in table {
            let explanation = explain(&web(), &facts);
            assert_eq!(explanation.reasons.len(), 1, "{case}: {explanation:#?}");
            let reason = &explanation.reasons[0];
            assert!(explanation.waiting && reason.message.contains(message), "{case}: {reason:#?}");
            assert!(reason.hint.as_ref().is_some_and(|said| said.contains(hint)), "{case}: {reason:#?}");
        }
    }

    /// A deployment config of which nothing was deployed.
    fn declared(object: Arc<Object>) -> ConfigState {
        let key = ConfigKey { project: "shop".into(), stage: "dev".into(), name: "web".into() };
        let destination = Destination::local("shop-dev".into());
        let declared = ConfigState::new(key, destination, "shop".into(), object, "1a2b3c4".into());
        ConfigState { latest_version: 1, ..declared }
    }

    fn version(object: Arc<Object>) -> Version {
        Version { number: 1, commit: "1a2b3c4".into(), object }
    }

    /// A deployment config whose first version a person cancelled.
    fn cancelled() -> ConfigState {
        let object = config(json!({}));
        let attempted = Attempt { version: version(object.clone()), run: "r1".into(), outcome: Some(Outcome::ABORTED) };
        ConfigState { attempted: Some(attempted), ..declared(object) }
    }

    fn serving(served: Arc<Object>, object: Arc<Object>) -> ConfigState {
        ConfigState { serving: Some(version(served)), ..declared(object) }
    }

    /// What is applied as the plan says is no reason, of whatever kind it is; anything else is, if nobody brings it.
    #[test]
    fn what_a_plan_has_brought_is_not_to_come() {
        let (one, two) = (config(json!({"replicas": 1})), config(json!({"replicas": 2})));
        let (old, new) = (object(Kind::Service, json!({"port": 1})), object(Kind::Service, json!({"port": 2})));
        let to = |decision: Decision, object: &Arc<Object>| {
            let key = object.key.clone();
            let object = (decision != Decision::Delete).then(|| object.clone());
            Change { object, ..Change::of(key, decision) }
        };
        let configs = |config: ConfigState| Facts { configs: vec![config], ..Facts::default() };
        let applied = |object: &Object| {
            let applied = BTreeMap::from([(object.key.clone(), object.digest.clone())]);
            Facts { applied, ..Facts::default() }
        };
        let removed = ConfigState { removed: true, ..declared(one.clone()) };
        let table: [(&str, Change, Facts, bool); 12] = [
            ("a service that is as pushed", to(Decision::Create, &new), applied(&new), false),
            ("one that is not there", to(Decision::Create, &new), Facts::default(), true),
            ("one as it was before", to(Decision::Update, &new), applied(&old), true),
            ("one that is still there", to(Decision::Delete, &new), applied(&new), true),
            ("one that is gone", to(Decision::Delete, &new), Facts::default(), false),
            ("a config that serves", to(Decision::Create, &one), configs(serving(one.clone(), one.clone())), false),
            ("one that serves what was", to(Decision::Deploy, &two), configs(serving(one.clone(), one.clone())), true),
            ("one that only declares", to(Decision::Deploy, &two), configs(serving(one.clone(), two.clone())), true),
            ("one that was scaled", to(Decision::Scale, &two), configs(serving(one.clone(), two.clone())), false),
            ("one that was not", to(Decision::Scale, &two), configs(serving(one.clone(), one.clone())), true),
            ("one that is being removed", to(Decision::Delete, &one), configs(removed), false),
            ("one that is to stay as it is", to(Decision::None, &two), configs(serving(one.clone(), one)), false),
        ];
        for (case, change, facts, to_come) in table {
            let facts = Facts { planned: Some(planned(change, StageStart::Push)), passed: true, ..facts };
            assert_eq!(explain(&web(), &facts).waiting, to_come, "{case}");
        }
    }

    fn queued() -> Run {
        let sequence = Shipyard::implicit().stages.remove(0).sequences.remove(0);
        let procedure = digest::stored(Procedure { sequence, ..Procedure::default() });
        let revision = ("shop".into(), "2b3c4d5".into());
        let draft = SequenceRun::draft(web(), Destination::local("shop-dev".into()), revision, procedure);
        Run::Sequence(Box::new(SequenceRun { id: "r2".into(), cause: "push".into(), attempt: 1, ..draft }))
    }

    #[test]
    fn what_ended_badly_is_told_until_a_fix_is_under_way() {
        let kinds = |slot: Vec<Run>| {
            let facts = Facts { configs: vec![cancelled()], slot, ..Facts::default() };
            explain(&web(), &facts).reasons.into_iter().map(|reason| reason.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(Vec::new()), ["drift"]);
        assert_eq!(kinds(vec![queued()]), ["run"]);
    }

    #[test]
    fn an_unreachable_repository_comes_first() {
        let repository = RepositoryState {
            problem: Some("cannot reach `/srv/shop.git`".into()),
            ..RepositoryState::new("shop".into(), "/srv/shop.git", "main")
        };
        let facts = Facts { repository: Some(repository), holds: vec![hold("web")], ..Facts::default() };
        let kinds: Vec<_> = explain(&web(), &facts).reasons.into_iter().map(|reason| reason.kind).collect();
        assert_eq!(kinds, ["repository", "hold"]);
    }
}
