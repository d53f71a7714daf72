//! One pass over a repository, decided: a new head is planned and what is due is started, or it is refused with a
//! reason. The same for the daemon and for the simulated world.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::names::{self, Taken};
use crate::engine::records::{Lookup, Needs, Records, Undecided};
use crate::engine::rollback::propose;
use crate::engine::sequence::queue;
use crate::engine::transition::Transition;
use crate::model::hold::Lifted;
use crate::model::ids::{CommitId, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName, StageName};
use crate::model::outcome::Outcome;
use crate::model::plan::{Change, Plan, ServicePlan, StagePlan, StageStart};
use crate::model::project::Project;
use crate::model::run::{Run, SequenceRun, SequenceState};
use crate::model::slot::PassedKey;
use crate::model::state::{RepositoryState, RevisionResult, RevisionState};
use crate::model::time::Timestamp;
use crate::model::transaction::Write;
use crate::model::unique_name::UniqueName;
use crate::plan::build::{Applied, Revision};
use crate::plan::order;
use crate::plan::summary::summary;

mod already_there;
mod held;
mod moved;
mod needless;
mod planning;
pub mod refused;
mod stopped;
mod trigger;

pub use planning::Planning;
pub use stopped::FILE;
pub use trigger::{Trigger, trigger};

/// A repository that is watched, as its configuration says.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its name.
    pub name: RepositoryName,
    /// Where it is, without credentials.
    pub url: String,
    /// The branch that is watched.
    pub branch: String,
    /// Whether a head that does not descend from the applied one is taken.
    pub rewrite_allowed: bool,
}

/// A head that was read.
#[derive(Clone, Debug)]
pub struct Head {
    /// The revision.
    pub commit: CommitId,
    /// The first line of its message.
    pub subject: String,
    /// Whether it descends from the applied revision.
    pub descends: bool,
    /// What its files declare, as far as people let it go on, or what is wrong with them, each problem on a line.
    pub declared: Result<Arc<Project>, Vec<String>>,
    /// What people let go on although its file says `paused`.
    pub lifted: Vec<Lifted>,
    /// What may not be meant so in its files, each on a line.
    pub warnings: Vec<String>,
}

/// What is remembered of a head that was read before.
#[derive(Clone, Debug)]
pub struct Known {
    /// What came of it.
    pub revision: RevisionState,
    /// The revisions whose place it took. Once it is planned again it is newer than what took its own, and that takes theirs.
    pub overtaken: Vec<CommitId>,
}

/// What a person allows for one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// It may replace history.
    pub rewrite: Option<CommitId>,
    /// It may delete more than the rule lets go by itself.
    pub prune: Option<CommitId>,
}

impl Allowance {
    /// Has the next sync judge the head anew. What was allowed before and is not named now stays allowed.
    pub fn give(&self, state: &mut RepositoryState) {
        state.plan_again();
        state.accepted_rewrite = self.rewrite.clone().or(state.accepted_rewrite.take());
        state.allowed_prune = self.prune.clone().or(state.allowed_prune.take());
    }
}

/// Takes a new head: it is remembered with its plan, and what is due is started; or with why there is none.
///
/// # Errors
/// If something must be read first.
pub fn decide(
    transition: &mut Transition<'_>,
    watched: &Watched,
    head: &Head,
    planning: &Planning,
    known: Option<&Known>,
) -> Result<RevisionResult, Undecided> {
    let applied = planning.applied();
    let stored = transition.records.repositories.get(&watched.name)?.cloned();
    let fresh = || RepositoryState::new(watched.name.clone(), watched.url.clone(), watched.branch.clone());
    let mut state = stored.unwrap_or_else(fresh);
    let is_applied = state.applied.as_ref() == Some(&head.commit);
    let before = state.applied.clone();
    let lived_in = state.namespaces.clone();
    let (result, claimed) = match judge(transition, watched, &state, head, planning)? {
        Err(refused) => (refused.result, refused.name),
        Ok((project, plan)) => {
            names::take(transition, &state, &watched.name, &project)?;
            take_up_passed(transition, &project, applied)?;
            moved::keep_out(transition, &project, &plan, applied)?;
            needless::end(transition, &plan, applied);
            already_there::pass(transition, &project, &plan)?;
            held::carry_over(transition, &state, &project, &head.lifted)?;
            stopped::tell(transition, &plan)?;
            for (config, bad) in propose::close(&mut state, &project, &head.commit, transition.now) {
                if let Some(config) = transition.records.configs.get_mut(&config)? {
                    config.quarantine(bad);
                }
            }
            apply(&mut state, &head.commit, &project, plan.at);
            (RevisionResult::Planned(Box::new(plan)), None)
        }
    };
    state.seen = Some(head.commit.clone());
    state.synced_at = Some(transition.now);
    state.problem = None;
    let waited_for = std::mem::replace(&mut state.refused_name, claimed.clone());
    let (down, left) = (state.down, &lived_in - &state.namespaces);
    transition.records.repositories.put(&watched.name, Some(state))?;
    claimed.map_or(Ok(()), |name| names::claim(transition, &watched.name, &name, waited_for.as_ref()))?;
    left.iter().try_for_each(|namespace| names::left(transition, namespace))?;
    propose::look_after(transition, &watched.name)?;
    let starts_something = match &result {
        RevisionResult::Planned(plan) if !down => start_due(transition, plan)?,
        _ => false,
    };
    let revision = revision(transition, watched, head, result.clone());
    let remembered = known.map(|known| &known.revision);
    let revision = revised(remembered, revision, starts_something);
    if !is_applied || remembered != Some(&revision) {
        transition.write(Write::Revision(Box::new(revision))); // what is written again counts as the newest plan
    }
    // The one before may show what it waits for, or what stopped it: now this one takes its place.
    let overtaken = known.into_iter().flat_map(|known| known.overtaken.clone());
    for commit in before.into_iter().chain(overtaken).chain([head.commit.clone()]) {
        transition.report(watched.name.clone(), commit);
    }
    Ok(result)
}

/// A repository stands at a revision that was planned, and at what its files declare.
fn apply(state: &mut RepositoryState, commit: &CommitId, project: &Project, planned_at: Timestamp) {
    state.namespaces = project.stages.iter().map(|stage| stage.destination.namespace.clone()).collect();
    state.project = Some(project.name.clone());
    state.on_failure = project.on_failure;
    state.environments_wanted = project.previews.clone();
    state.applied = Some(commit.clone());
    state.planned_at = Some(planned_at);
    // A person's word is for one revision: once another is applied, it is used up.
    let is_meant = |word: &CommitId| commit.is_named_by(Some(word));
    state.accepted_rewrite = state.accepted_rewrite.take().filter(is_meant);
    state.allowed_prune = state.allowed_prune.take().filter(is_meant);
}

/// What passed before what was delivered last counts again, so that it is not forgotten while it is declared. What was
/// delivered last and is not declared now is news once it is declared again.
fn take_up_passed(
    transition: &mut Transition<'_>,
    project: &Project,
    applied: &BTreeMap<StageName, Applied>,
) -> Result<(), Undecided> {
    for (stage, seen) in applied {
        let place = |service: &ServiceName| {
            let (project, stage) = (project.name.clone(), stage.clone());
            ServiceKey { project, stage, service: service.clone() }
        };
        for service in seen.passed_before.keys().chain(&seen.withdrawn) {
            if let Some(slot) = transition.records.slots.get_mut(&place(service))? {
                slot.last_delivery = None;
            }
        }
        for (service, content) in &seen.passed_before {
            let key = PassedKey { service: place(service), content: content.clone() };
            if let Some(passed) = transition.records.passed.get_mut(&key)? {
                passed.at = transition.now;
            }
        }
    }
    Ok(())
}

/// The run that a write starts, or lets begin with its first task; one that only deletes has ended by then.
pub fn starting(write: Write) -> Option<SequenceRun> {
    let Write::Run(run) = write else { return None };
    let is_new = run.version == 0;
    let Run::Sequence(run) = Arc::unwrap_or_clone(run.value) else { return None };
    let begins = match run.state {
        SequenceState::Queued => is_new,
        SequenceState::Running { .. } | SequenceState::Returning { .. } => true,
        SequenceState::Ended => run.outcome.is_some_and(Outcome::passes),
        SequenceState::Ending { .. } => false,
    };
    begins.then_some(*run)
}

/// Of runs that wait for their turn, those that still do after `writes`, and do not start with them: what is under way ends
/// for them first.
pub fn let_go(waiting: Vec<SequenceRun>, writes: &[Write]) -> Vec<SequenceRun> {
    let written =
        writes.iter().filter_map(|write| if let Write::Run(run) = write { run.value.sequence() } else { None });
    let decided: BTreeSet<&RunId> =
        written.filter(|run| run.state != SequenceState::Queued).map(|run| &run.id).collect();
    waiting.into_iter().filter(|run| !decided.contains(&run.id)).collect()
}

fn revision(transition: &Transition<'_>, watched: &Watched, head: &Head, result: RevisionResult) -> RevisionState {
    RevisionState {
        repository: watched.name.clone(),
        commit: head.commit.clone(),
        subject: head.subject.clone(),
        at: transition.now,
        result,
        summary: None,
        again: 0,
        warnings: head.warnings.clone(),
    }
}

/// The time of a head's plan. Which of two revisions is newer is known by it, also where the clock goes back, or where another
/// repository had the project; one that is planned again is no newer.
fn planned_at(
    records: &Records,
    state: &RepositoryState,
    (head, project): (&Head, &ProjectName),
    now: Timestamp,
) -> Result<Timestamp, Undecided> {
    let last = match state.project.as_ref() == Some(project) {
        true => state.planned_at,
        false => records.moment(Lookup::LastPlanned)?,
    };
    Ok(match last {
        Some(last) if state.applied.as_ref() == Some(&head.commit) => last,
        Some(last) => now.max(Timestamp(last.0 + 1)),
        None => now,
    })
}

/// Why a head has no plan.
struct Refused {
    result: RevisionResult,
    /// The name that another has.
    name: Option<UniqueName>,
}

/// The plan of a head, or why there is none.
fn judge(
    transition: &Transition<'_>,
    watched: &Watched,
    state: &RepositoryState,
    head: &Head,
    planning: &Planning,
) -> Result<Result<(Arc<Project>, Plan), Refused>, Undecided> {
    let no_plan = |result| Ok(Err(Refused { result, name: None }));
    let refused = |reason| no_plan(RevisionResult::Refused { reason });
    if !head.descends && !watched.rewrite_allowed && !head.commit.is_named_by(state.accepted_rewrite.as_ref()) {
        return refused(rewrite_reason(state, &head.commit));
    }
    let project = match &head.declared {
        Ok(project) => project,
        Err(problems) => return no_plan(RevisionResult::Broken { problems: problems.clone() }),
    };
    if let Some(Taken { reason, name }) = names::taken(transition.records, &watched.name, project)? {
        return Ok(Err(Refused { result: RevisionResult::Refused { reason }, name }));
    }
    let revision = Revision {
        repository: watched.name.clone(),
        commit: head.commit.clone(),
        subject: head.subject.clone(),
        at: planned_at(transition.records, state, (head, &project.name), transition.now)?,
        prune_allowed: head.commit.is_named_by(state.allowed_prune.as_ref()),
    };
    let applied = planning.applied();
    match planning.plan(project, &revision) {
        // What earlier deliveries bring of what is declared, and how that ends, is theirs, whatever becomes of them meanwhile;
        // what they bring to a stage that is gone is this revision's to delete, and what it declares for another service is
        // its to end.
        Ok(plan) => {
            let mut about = plan.services();
            about.extend(moved::services(project, applied));
            about.extend(applied.values().flat_map(|seen| &seen.under_way).filter(|it| it.1.leads_out).map(|it| it.0));
            about.extend(needless::services(&plan, applied));
            transition.records.count_on(|service| about.contains(service));
            Ok(Ok((project.clone(), plan)))
        }
        Err(refusal) => {
            transition.records.count_on(|_| true);
            refused(refusal.reason)
        }
    }
}

/// Starts what a plan starts by itself: stages that a push starts, and later ones for services whose content the stage
/// before has passed already. Says whether that is anything.
fn start_due(transition: &mut Transition<'_>, plan: &Plan) -> Result<bool, Undecided> {
    let (mut any, mut needs) = (false, Needs::default());
    for stage in &plan.stages {
        for part in &stage.services {
            any |= needs.of(start_if_due(transition, plan, stage, part))?.unwrap_or_default();
        }
    }
    needs.none()?;
    Ok(any)
}

fn start_if_due(
    transition: &mut Transition<'_>,
    plan: &Plan,
    stage: &StagePlan,
    part: &ServicePlan,
) -> Result<bool, Undecided> {
    if !is_due(transition.records, plan, stage, part)? {
        return Ok(false);
    }
    let (records, now) = (&mut *transition.records, transition.now);
    let Some(run) = queue::due_delivery(records, now, plan, stage, part, "push".into())? else { return Ok(false) };
    transition.start(run)?;
    Ok(true)
}

fn is_due(records: &Records, plan: &Plan, stage: &StagePlan, part: &ServicePlan) -> Result<bool, Undecided> {
    let previous = match (&stage.start, &part.previous_stage) {
        (StageStart::Push, _) => return Ok(true),
        (StageStart::After(_), Some(previous)) => previous,
        // No stage before has the service, so there is none to wait for.
        (StageStart::After(_), None) => return Ok(order::predecessor(&stage.start).is_some()),
        (StageStart::Event(_) | StageStart::ByHand, _) => return Ok(false),
    };
    let comes = |change: &Change| change.is_held() || change.decision.does_something();
    let runs_first = |before: &StagePlan| {
        let changes = before.service(&part.service).into_iter().flat_map(|part| &part.changes);
        before.carried.contains_key(&part.service) || changes.into_iter().any(comes)
    };
    // The stage before runs first, on this revision or on an earlier one, and its end starts this one.
    Ok(!plan.stage(&previous.stage).is_some_and(runs_first) && queue::is_let_pass(records, &plan.project, part)?)
}

/// What is remembered of a commit that may have been read before. It did what its first plan says: if nothing more is to
/// be done, all of that stays, unless a person has let something go on since that this plan leaves where it is; else what
/// its readers know.
pub fn revised(known: Option<&RevisionState>, revision: RevisionState, starts_something: bool) -> RevisionState {
    let does_nothing = |state: &RevisionState| state.plan().map(Plan::does_nothing);
    let Some(known) = known else { return revision };
    let is_done = !starts_something && does_nothing(&revision) == Some(true) && does_nothing(known) == Some(false);
    if is_done && !brings_other(&revision, known) {
        return known.clone();
    }
    let first = || match &known.result {
        RevisionResult::Planned(plan) if !plan.does_nothing() => Some(summary(plan)),
        _ => None,
    };
    RevisionState { summary: known.summary.clone().or_else(first), again: known.again + 1, ..revision }
}

/// Whether a plan has a stage come to something else than an earlier one of the same files, whose deliveries lead on to what
/// that says: then it has the last word.
fn brings_other(revision: &RevisionState, known: &RevisionState) -> bool {
    let (Some(plan), Some(before)) = (revision.plan(), known.plan()) else { return false };
    plan.stages.iter().any(|stage| {
        let was = |part: &ServicePlan| before.stage(&stage.stage)?.service(&part.service);
        stage.services.iter().any(|part| was(part).is_some_and(|was| was.content != part.content))
    })
}

fn rewrite_reason(state: &RepositoryState, head: &CommitId) -> String {
    let applied = state.applied.as_ref().map(|applied| applied.short().to_owned()).unwrap_or_default();
    let head = head.short();
    format!(
        "history was rewritten: {head} does not descend from {applied}; `launchway sync --accept-rewrite {head}` accepts it"
    )
}

#[cfg(test)]
mod tests;
