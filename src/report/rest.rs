//! Whether a revision has come to rest, and what it waits for then: the one decision for all who wait for its end. Pure.
//!
//! Whoever waits goes on as long as something passes by itself. What only a person moves ends the wait, with what to do.

use std::collections::BTreeSet;
use std::iter;

use crate::model::hold::{Hold, HoldKind, ProjectHolds};
use crate::model::ids::{ConfigKey, RepositoryName, ServiceName, StageName};
use crate::model::state::{ConfigState, RepositoryState, RevisionState};
use crate::report::line::Next;
use crate::report::service_report::ServiceReport;
use crate::report::status::Facts;

/// What a revision is delivered among.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// The revision.
    pub revision: &'a RevisionState,
    /// Its repository, if anything is known of it.
    pub repository: Option<&'a RepositoryState>,
    /// What its project holds and lets go on.
    pub holds: &'a ProjectHolds,
    /// The deployment configs that rollbacks hold.
    pub configs: &'a [ConfigState],
}

/// What is open of a service in a stage.
#[derive(Clone, Debug)]
pub struct Open {
    stage: StageName,
    service: ServiceName,
    next: Next,
    description: String,
}

/// What a revision that has come to rest waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// Of which kind it is.
    pub kind: WaitKind,
    /// What keeps it waiting.
    pub message: String,
    /// What a person can do.
    pub hint: String,
}

/// What keeps a revision waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitKind {
    /// Its repository was taken down.
    Down,
    /// A hold, of a person or of a rollback.
    Hold,
    /// A file that says `paused`.
    Paused,
    /// A rollout that waits at a step.
    Rollout,
    /// A sequence that waits for approval.
    Approval,
    /// A file that lacks something.
    Plan,
    /// Something that nothing brings.
    Stage,
    /// A stage that a person starts, or something that happens outside: as long as nobody wants that, nothing is amiss.
    ByHand,
}

impl WaitKind {
    /// Its word for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            WaitKind::Down => "down",
            WaitKind::Hold => "hold",
            WaitKind::Paused => "paused",
            WaitKind::Rollout => "rollout",
            WaitKind::Approval => "approval",
            WaitKind::Plan => "plan",
            WaitKind::Stage => "stage",
            WaitKind::ByHand => "byHand",
        }
    }
}

/// What is written where something would start if its repository were not down.
pub(super) fn is_down(repository: &RepositoryName) -> String {
    format!("{repository} is down: {}", brings_back(repository))
}

fn brings_back(repository: &RepositoryName) -> String {
    format!("`launchway sync {repository} --up` brings it back")
}

/// What is open on a revision, of some services in some stages; nothing, as long as something of that goes on by itself: then
/// nobody has to know the rest.
pub fn open(
    around: &Around<'_>,
    facts: &Facts<'_>,
    of: impl Fn(&StageName, &ServiceName) -> bool,
) -> Option<Vec<Open>> {
    let mut found = Vec::new();
    for ServiceReport { service, stages } in facts.services.values() {
        for report in stages.iter().filter(|report| of(&report.stage, service)) {
            let (line, stage) = (facts.line(report), &report.stage);
            let line = line.iter().map(|line| (&line.next, line.description.as_str()));
            let all = line.chain(report.others.iter().map(|next| (next, "")));
            for (next, description) in all.filter(|(next, _)| !matches!(next, Next::Nothing)) {
                if around.goes_on(stage, service, next) {
                    return None;
                }
                let (stage, service) = (stage.clone(), service.clone());
                found.push(Open { stage, service, next: next.clone(), description: description.to_owned() });
            }
        }
    }
    Some(found)
}

/// What a revision waits for where nothing that is open goes on by itself; nothing, if it is about to be planned anew.
pub fn waits(around: &Around<'_>, open: &[Open]) -> Option<Vec<Wait>> {
    if around.is_judged_anew() {
        return None;
    }
    let mut waits: BTreeSet<Wait> = open.iter().filter_map(|open| around.awaited(open)).collect();
    waits.extend(around.down().filter(|_| around.is_head() || !open.is_empty()));
    waits.extend(around.rollbacks().map(held_by));
    if waits.is_empty() {
        waits.extend(open.iter().map(unbrought));
    }
    Some(waits.into_iter().collect())
}

impl Around<'_> {
    /// Whether what it declares is what is meant to run.
    fn is_head(&self) -> bool {
        let commit = Some(&self.revision.commit);
        self.repository.is_some_and(|state| state.applied.as_ref() == commit || state.seen.as_ref() == commit)
    }

    /// Whether the head is about to be planned anew, as after a release: what was said of it is not the last word.
    fn is_judged_anew(&self) -> bool {
        let due = |state: &RepositoryState| state.seen.is_none() && !state.down && state.problem.is_none();
        self.is_head() && self.repository.is_some_and(due)
    }

    fn goes_on(&self, stage: &StageName, service: &ServiceName, next: &Next) -> bool {
        match next {
            Next::GoesOn => true,
            Next::Turn(context, others) => self.hold(stage, service, context.as_ref(), others).is_none(),
            Next::Start => self.down().is_none(),
            // What was let go is about to be planned anew.
            Next::Paused(target) => {
                let name = target.split_once('/').map_or(&**target, |(_, name)| name);
                let (project, stage) = (self.holds.project.clone(), stage.clone());
                self.holds.has_lifted(&ConfigKey { project, stage, name: name.to_owned() })
            }
            Next::Nothing
            | Next::Another
            | Next::Resume(_)
            | Next::Approve
            | Next::Latest(_)
            | Next::Release(_)
            | Next::Push
            | Next::ByHand
            | Next::Event => false,
        }
    }

    /// What a person has to do for what is open.
    fn awaited(&self, open: &Open) -> Option<Wait> {
        let Open { stage, service, next, description } = open;
        let place = format!("{stage}/{service}: {description}");
        match next {
            Next::Turn(context, others) => self.hold(stage, service, context.as_ref(), others).map(held_by),
            Next::Paused(target) => {
                let hint = format!("`launchway release {target} -s {stage}` lets it go on, as does a push without it");
                Some(Wait { kind: WaitKind::Paused, message: place, hint })
            }
            Next::Resume(target) => {
                let hint =
                    format!("`launchway rollout resume {target} -s {stage}` lets it go on, `rollout cancel` goes back");
                Some(Wait { kind: WaitKind::Rollout, message: place, hint })
            }
            Next::Approve => {
                let hint = format!("`launchway approve {service} -s {stage}` lets it go on, `reject` ends it");
                Some(Wait { kind: WaitKind::Approval, message: place, hint })
            }
            Next::Latest(target) => {
                let hint = format!("`launchway rollout latest {target} -s {stage}` deploys it once");
                Some(Wait { kind: WaitKind::Plan, message: place, hint })
            }
            Next::Release(target) => {
                let hint = format!("`launchway release {target} -s {stage}`, or a change of it");
                Some(Wait { kind: WaitKind::Plan, message: place, hint })
            }
            Next::Push => Some(Wait { kind: WaitKind::Plan, message: place, hint: "push what it lacks".to_owned() }),
            Next::ByHand => {
                let hint = format!("`launchway trigger delivery -s {stage}` starts it");
                Some(Wait { kind: WaitKind::ByHand, message: format!("stage {stage} is started by hand"), hint })
            }
            Next::Event => {
                let hint = format!("`launchway trigger delivery -s {stage}` starts it without");
                Some(Wait { kind: WaitKind::ByHand, message: format!("stage {stage} {}", open.description), hint })
            }
            Next::Nothing | Next::GoesOn | Next::Start | Next::Another => None,
        }
    }

    fn hold(
        &self,
        stage: &StageName,
        service: &ServiceName,
        context: Option<&String>,
        others: &BTreeSet<ServiceName>,
    ) -> Option<&Hold> {
        let covers = |hold: &Hold, service: &ServiceName| {
            hold.scope.covers_context(context, &self.holds.project, stage, service)
        };
        self.holds.holds.iter().find(|hold| iter::once(service).chain(others).any(|service| covers(hold, service)))
    }

    fn down(&self) -> Option<Wait> {
        let state = self.repository.filter(|state| state.down)?;
        let (message, hint) = (format!("{} is down", state.name), brings_back(&state.name));
        Some(Wait { kind: WaitKind::Down, message, hint })
    }

    /// The rollbacks that keep what this revision has brought from serving: they came after it was planned, which else would
    /// have met their holds. One that failed has changed nothing.
    fn rollbacks(&self) -> impl Iterator<Item = &Hold> {
        let holds = self.holds.holds.iter().filter(|hold| hold.kind == HoldKind::Rollback);
        holds.filter(|hold| self.is_head() && self.revision.at <= hold.since && self.has_changed_something(hold))
    }

    fn has_changed_something(&self, hold: &Hold) -> bool {
        let failed = |config: &ConfigState| {
            let attempt = config.attempted.as_ref();
            attempt.and_then(|attempt| attempt.outcome).is_some_and(|outcome| !outcome.passes())
        };
        let covers = |config: &&ConfigState| {
            hold.scope.covers(&config.key.project, &config.key.stage, &config.service) && !config.removed
        };
        self.configs.iter().filter(covers).any(|config| !failed(config))
    }
}

fn held_by(hold: &Hold) -> Wait {
    let message = format!("{} is held by {}: {}", hold.scope, hold.by, hold.reason);
    Wait { kind: WaitKind::Hold, message, hint: format!("`launchway release {}` lifts the hold", hold.id) }
}

/// What nothing on the way brings, such as a stage that another sequence starts.
fn unbrought(open: &Open) -> Wait {
    let Open { stage, service, description, .. } = open;
    let hint = format!("`launchway trigger delivery {service} -s {stage}` starts it");
    Wait { kind: WaitKind::Stage, message: format!("{stage}/{service}: {description}"), hint }
}

#[cfg(test)]
mod tests;
