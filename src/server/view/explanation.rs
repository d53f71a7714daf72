//! Why a service is not what was pushed, or that it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time;
use crate::model::hold::Hold;
use crate::model::ids::ServiceKey;
use crate::model::outcome::Verdict;
use crate::model::plan::{Decision, ServicePlan, StageStart};
use crate::model::pod::{ObservedPod, PodPhase};
use crate::model::run::{Run, SequenceState};
use crate::model::state::{ConfigState, RepositoryState};
use crate::store::OutboxRow;

/// What is known about a service, read at one time.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The repository that declares it.
    pub repository: Option<RepositoryState>,
    /// All holds.
    pub holds: Vec<Hold>,
    /// The open sequence runs of its slot, oldest first.
    pub slot: Vec<Run>,
    /// The deployments that these wait for.
    pub deployments: Vec<Run>,
    /// What these and their deployments still ask for.
    pub outbox: Vec<OutboxRow>,
    /// Its deployment configs.
    pub configs: Vec<ConfigState>,
    /// What the last revision wants to change in it, and what starts its stage.
    pub planned: Option<(ServicePlan, StageStart)>,
    /// Whether the stage before has passed what it must.
    pub passed: bool,
    /// Its pods, if a runtime was asked.
    pub pods: Vec<ObservedPod>,
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
    /// `repository`, `hold`, `run`, `retry`, `stage`, `plan`, `drift` or `pod`.
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

/// Says what a service waits for.
pub fn explain(service: &ServiceKey, facts: &Facts) -> Explanation {
    let mut reasons = Vec::new();
    reasons.extend(facts.repository.iter().filter_map(repository_reason));
    reasons.extend(hold_reasons(service, &facts.holds));
    reasons.extend(facts.slot.iter().filter_map(run_reason));
    reasons.extend(facts.deployments.iter().filter_map(deployment_reason));
    reasons.extend(facts.outbox.iter().filter_map(outbox_reason));
    if facts.slot.is_empty() {
        reasons.extend(plan_reasons(facts));
    }
    reasons.extend(facts.configs.iter().filter_map(drift_reason));
    reasons.extend(facts.pods.iter().filter_map(pod_reason));
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

fn hold_reasons<'a>(service: &'a ServiceKey, holds: &'a [Hold]) -> impl Iterator<Item = Reason> + 'a {
    let covering = holds.iter().filter(|hold| hold.scope.covers(&service.project, &service.stage, &service.service));
    covering.map(|hold| {
        let message = format!("held by {} since {}: {}", hold.by, time(hold.since), hold.reason);
        Reason::new("hold", message).hint(format!("`launchway release {}` lifts it", hold.id))
    })
}

fn run_reason(run: &Run) -> Option<Reason> {
    let Run::Sequence(run) = run else { return None };
    let revision = run.commit.short();
    let what = format!("{} of {revision}", run.sequence.name);
    let task = |index: usize| run.tasks.get(index).map_or("its end", |task| task.step.as_str());
    let message = match run.state {
        SequenceState::Queued if run.message.is_empty() => format!("{what} is queued"),
        SequenceState::Queued => format!("{what} is queued: {}", run.message),
        SequenceState::Running { task: index } => format!("{what} is at `{}`", task(index)),
        SequenceState::Ending { task: index, .. } => {
            format!("{what} was told to end at `{}`: {}", task(index), run.message)
        }
        SequenceState::Ended => return None,
    };
    Some(Reason::new("run", message).hint(format!("`launchway describe run/{}` tells its steps", run.id)))
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

fn plan_reasons(facts: &Facts) -> Vec<Reason> {
    let Some((plan, start)) = &facts.planned else { return Vec::new() };
    let waiting = plan.changes.iter().filter(|change| change.decision == Decision::Wait);
    let mut reasons: Vec<_> =
        waiting.map(|change| Reason::new("plan", format!("{} waits: {}", change.key, change.cause))).collect();
    match &plan.previous_stage {
        Some(previous) if !facts.passed => {
            let message = format!("stage `{}` has not passed what is to come here", previous.stage);
            reasons.push(Reason::new("stage", message));
        }
        _ if *start == StageStart::ByHand => {
            let hint = "`launchway trigger delivery` starts it";
            reasons.push(Reason::new("stage", "this stage is started by hand").hint(hint));
        }
        _ => {}
    }
    reasons
}

fn drift_reason(config: &ConfigState) -> Option<Reason> {
    let attempt = config.attempted.as_ref()?;
    let word = match attempt.verdict? {
        Verdict::Failure | Verdict::Error => "failed",
        Verdict::Cancelled => "was cancelled",
        Verdict::Success | Verdict::Superseded => return None,
    };
    let serving = match &config.serving {
        Some(version) => format!("version {} serves", version.number),
        None => "nothing serves".to_owned(),
    };
    let name = &config.key.name;
    let message = format!("version {} of {name} {word}, {serving}", attempt.version.number);
    let hint = format!("push a fix, or try the same again with `launchway rollout retry dc/{name}`");
    Some(Reason::new("drift", message).hint(hint))
}

fn pod_reason(pod: &ObservedPod) -> Option<Reason> {
    let troubled = !matches!(pod.phase, PodPhase::Ready { .. } | PodPhase::Ended { .. }) && !pod.message.is_empty();
    troubled.then(|| Reason::new("pod", format!("pod {}: {}", pod.id.name, pod.message)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::hold::HoldScope;
    use crate::model::ids::HoldId;
    use crate::model::time::Timestamp;

    fn web() -> ServiceKey {
        ServiceKey { project: "shop".into(), stage: "dev".into(), service: "web".into() }
    }

    fn hold(service: &str) -> Hold {
        let scope = HoldScope { project: "shop".into(), stage: None, service: Some(service.into()) };
        let since = Timestamp(0);
        Hold { id: HoldId::new("h1"), scope, reason: "sale".into(), by: "ann".into(), since }
    }

    #[test]
    fn nothing_in_the_way_is_said_so() {
        let explanation = explain(&web(), &Facts::default());
        assert!(!explanation.waiting && explanation.reasons.is_empty());
    }

    #[test]
    fn only_holds_that_cover_the_service_count() {
        let facts = Facts { holds: vec![hold("web"), hold("cart")], ..Facts::default() };
        let reasons = explain(&web(), &facts).reasons;
        assert_eq!(reasons.len(), 1);
        assert!(reasons[0].message.contains("ann") && reasons[0].message.contains("sale"), "{reasons:?}");
        assert!(reasons[0].hint.as_ref().is_some_and(|hint| hint.contains("release h1")));
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
